/**
 * Keys: the namespaces of the database as a tree, with how many keys are below each. The server counts (DUNLIN TREE),
 * so nothing is sampled. A server without the test kit has no such command: there the page walks over all keys by
 * SCAN, to the end, and counts itself.
 */
import { html, useEffect, useRef, useSignal } from './vendor/preact.js'
import { ask, changes, ROW_BYTES, send } from './link.js'
import { Choice, Deadline, Field, Key, keyAddress, Problem, Table, TooLong, useLook } from './parts.js'
import { bytesOf, count, errorOf, fields, idOf, isBinary, isCut, items, number, pairs, shown, size, wordOf, wordOfId } from './words.js'

/** @typedef {import('./words.js').Word} Word */
/**
 * A child of a namespace: a namespace itself, or a key. Of a long name the beginning has come.
 * @typedef {{word: any, name: string, isKey: boolean, keys: number, bytes: number, types: [string, number][]}} Child
 * The children of a namespace that are known, the keys that it has in all, and what the children left out have.
 * @typedef {{children: Child[], keys: number, more: {children: number, keys: number, bytes: number}}} Known
 */

/** Keys with more letters are shown without their details: they may be more than a request can have. */
const LONGEST = 1000
/** The most children that are asked for at a time, and the most keys that a search shows. */
const MOST = 1000
const DELIMITERS = [':', '/', '.', '|', '-']

/** The keys that are asked for at a time, and how many where these are too long for one answer. */
const MANY = '10000'
const FEW = '500'

/** The part of a word after a prefix. @param {any} word @param {Word} prefix @returns {string} */
function after(word, prefix) {
  if (isCut(word)) return `${after(word.cut, prefix)}… (${size(word.length)})`
  if (typeof word === 'string' && typeof prefix === 'string') return word.slice(prefix.length)
  return shown(wordOf(bytesOf(word).subarray(bytesOf(prefix).length)))
}

/** Reads the reply of DUNLIN TREE. @param {any} reply @param {Word} prefix @returns {Known} */
function readTree(reply, prefix) {
  const top = fields(reply)
  const children = items(top.children).map(each => {
    const child = fields(each)
    const types = pairs(child.types).map(pair => /** @type {[string, number]} */ ([shown(pair[0]), number(pair[1])]))
    return { word: child.name, name: after(child.name, prefix), isKey: child.kind === 'key', keys: number(child.keys), bytes: number(child.bytes), types }
  })
  const more = fields(top.more)
  return { children, keys: number(top.keys), more: { children: number(more.children) || 0, keys: number(more.keys), bytes: number(more.bytes) } }
}

/** All keys of the database, by SCAN to its end. */
async function scanned(/** @type {string[]} */ options, /** @type {(found: Word[], isEnd: boolean) => boolean} */ onPart) {
  /** @type {Word[]} */
  const found = []
  let most = MANY
  for (let cursor = '0'; ; ) {
    const [reply] = await send([['SCAN', cursor, ...options, 'COUNT', most]], ROW_BYTES)
    if (most === MANY && errorOf(reply)?.includes('too long')) {
      most = FEW
      continue
    }
    if (!Array.isArray(reply)) return reply
    found.push(...reply[1])
    cursor = shown(reply[0])
    if (!onPart(found, cursor === '0') || cursor === '0') return null
  }
}

/** The children of a prefix among keys, as DUNLIN TREE counts them. @param {Word[]} keys @param {string} prefix @param {string} delimiter */
function counted(keys, prefix, delimiter) {
  const children = /** @type {Map<string, Child>} */ (new Map())
  for (const word of keys) {
    const key = typeof word === 'string' ? word : shown(word, 1e6)
    if (!key.startsWith(prefix)) continue
    const end = key.indexOf(delimiter, prefix.length)
    const isKey = end < 0
    const name = isKey ? key : key.slice(0, end + 1)
    const id = isKey ? `k${name}` : `n${name}`
    const child = children.get(id)
    if (child) child.keys += 1
    else children.set(id, { word: isKey ? word : name, name: name.slice(prefix.length), isKey, keys: 1, bytes: NaN, types: [] })
  }
  return [...children.values()].sort((one, other) => Number(one.isKey) - Number(other.isKey) || (one.name < other.name ? -1 : 1))
}

/** @param {Child[]} children @returns {Known} */
const walkedOver = children => ({ children, keys: children.reduce((sum, child) => sum + child.keys, 0), more: { children: 0, keys: 0, bytes: 0 } })

/** What the tree shows, one row below the other. */
function flattened(/** @type {Map<string, Known>} */ known, /** @type {Set<string>} */ open) {
  const rows = /** @type {{child?: Child, more?: Known['more'], level: number, parent: number, of: number}[]} */ ([])
  const add = (/** @type {string} */ id, /** @type {number} */ level, /** @type {number} */ parent) => {
    const found = known.get(id)
    if (!found) return
    for (const child of found.children) {
      rows.push({ child, level, parent, of: found.keys })
      if (!child.isKey && open.has(idOf(child.word))) add(idOf(child.word), level + 1, rows.length - 1)
    }
    if (found.more.children) rows.push({ more: found.more, level, parent, of: found.keys })
  }
  add('t', 1, -1)
  return rows
}

const COLUMNS = ['Name', { name: 'Keys', kind: 'number' }, 'Share', { name: 'Bytes', kind: 'number' }, 'Type', 'Deadline']

/** The namespaces that are open outlive the view. */
const opened = new Set(/** @type {string[]} */ ([]))

/** The children of all open namespaces, asked for again when data change. */
function useTree(/** @type {string} */ delimiter) {
  const known = useSignal(/** @type {Map<string, Known>} */ (new Map()))
  const open = useSignal(opened)
  const problem = useSignal(/** @type {any} */ (null))
  const walked = useSignal(/** @type {{keys: Word[], isEnd: boolean} | null} */ (null))
  const isUnknown = useRef(false)
  const look = async (/** @type {() => boolean} */ isCurrent) => {
    const ids = ['t', ...open.value]
    const words = ids.map(wordOfId)
    if (!isUnknown.current) {
      const replies = await send(words.map(prefix => ['DUNLIN', 'TREE', prefix, 'DELIMITER', delimiter, 'LIMIT', String(MOST)]), ROW_BYTES)
      if (!isCurrent()) return
      isUnknown.current = /unknown (sub)?command/.test(errorOf(replies[0]) ?? '')
      if (!isUnknown.current) {
        problem.value = errorOf(replies[0]) ? replies[0] : null
        known.value = new Map(ids.flatMap((id, at) => (errorOf(replies[at]) ? [] : [[id, readTree(replies[at], words[at])]])))
        return
      }
    }
    problem.value = await scanned([], (keys, isEnd) => {
      if (!isCurrent()) return false
      walked.value = { keys: isEnd ? keys : keys.slice(), isEnd }
      known.value = new Map(ids.map((id, at) => [id, walkedOver(counted(keys, shown(words[at], 1e6), delimiter))]))
      return true
    })
  }
  useLook(look, JSON.stringify([delimiter, ...open.value]))
  return { known, open, problem, walked }
}

/** The types and deadlines of the keys among the rows that are in the page. */
function useDetails() {
  const details = useSignal(/** @type {Map<string, {type: string, at: number, bytes: number}>} */ (new Map()))
  const last = useRef(/** @type {Word[]} */ ([]))
  const find = async (/** @type {Word[]} */ keys) => {
    const wanted = keys.filter(key => idOf(key).length < LONGEST)
    if (!wanted.length) return
    const replies = await send(wanted.flatMap(key => [['TYPE', key], ['PEXPIRETIME', key], ['MEMORY', 'USAGE', key]]))
    const all = new Map(details.peek())
    wanted.forEach((key, at) => {
      const [type, deadline, bytes] = replies.slice(3 * at, 3 * at + 3)
      all.set(idOf(key), { type: errorOf(type) ? '' : shown(type?.status ?? ''), at: number(deadline) > 0 ? number(deadline) : NaN, bytes: number(bytes) })
    })
    details.value = all
  }
  useLook(() => find(last.current), '')
  const look = (/** @type {Word[]} */ keys) => {
    last.current = keys
    find(keys.filter(key => !details.peek().has(idOf(key))))
  }
  return { details, look }
}

const Share = (/** @type {{part: number}} */ { part }) => html`<span class="share"><span class="bar" aria-hidden="true"><span style=${{ width: `${100 * part}%` }}></span></span>${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %</span>`

/** The cells of a child. */
function cells(/** @type {any} */ { child, level, of, isOpen, detail, toggle }) {
  const pad = { paddingLeft: `${(level - 1) * 18}px` }
  const types = child.types.length ? child.types : detail?.type ? [[detail.type, 1]] : []
  const isLong = isCut(child.word)
  return [
    html`<span class="node" style=${pad}>${child.isKey || isLong ? html`<span class="leaf" aria-hidden="true"></span><${Key} word=${child.word} />` : html`<button type="button" tabindex="-1" class="fold" aria-hidden="true" onClick=${toggle}>${isOpen ? '▾' : '▸'}</button><b class="namespace" onClick=${toggle}>${shown(child.name)}</b>`}</span>`,
    child.isKey ? '' : count(child.keys),
    child.isKey ? '' : html`<${Share} part=${of ? child.keys / of : 0} />`,
    Number.isFinite(child.bytes) ? size(child.bytes) : detail && Number.isFinite(detail.bytes) ? size(detail.bytes) : '',
    html`<span class="types">${isLong && html`<${TooLong} />`}${types.map((/** @type {any} */ [type, number]) => html`<span class=${`type ${type}`} key=${type}>${type}${child.isKey ? '' : ` ${count(number)}`}</span>`)}</span>`,
    detail && Number.isFinite(detail.at) ? html`<${Deadline} at=${detail.at} />` : '',
  ]
}

/** Whether it can be opened: one whose name has not come to its end cannot be asked for. @param {Child} child */
const isNamespace = child => !child.isKey && !isCut(child.word)

function Tree(/** @type {{delimiter: string}} */ { delimiter }) {
  const { known, open, problem, walked } = useTree(delimiter)
  const { details, look } = useDetails()
  const active = useSignal(0)
  const box = useRef(/** @type {HTMLDivElement | null} */ (null))
  const rows = flattened(known.value, open.value)
  const toggle = (/** @type {Child} */ child, wanted = !open.value.has(idOf(child.word))) => {
    if (wanted) opened.add(idOf(child.word))
    else opened.delete(idOf(child.word))
    open.value = new Set(opened)
  }
  const go = (/** @type {number} */ at) => {
    active.value = Math.max(0, Math.min(rows.length - 1, at))
    requestAnimationFrame(() => {
      const element = box.current?.querySelector(/** @type {'tr'} */ (`[data-at="${active.value}"]`))
      element?.focus()
      element?.scrollIntoView({ block: 'nearest' })
    })
  }
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const { child, parent } = rows[active.value] ?? {}
    const isOpen = child && open.value.has(idOf(child.word))
    if (event.key === 'ArrowDown') go(active.value + 1)
    else if (event.key === 'ArrowUp') go(active.value - 1)
    else if (event.key === 'Home') go(0)
    else if (event.key === 'End') go(rows.length - 1)
    else if (event.key === 'ArrowRight' && child && isNamespace(child)) isOpen ? go(active.value + 1) : toggle(child, true)
    else if (event.key === 'ArrowLeft' && child && isOpen) toggle(child, false)
    else if (event.key === 'ArrowLeft' && parent !== undefined && parent >= 0) go(parent)
    else if (event.key === 'Enter' && child && isNamespace(child)) toggle(child)
    else if (event.key === 'Enter' && child && !isCut(child.word)) location.hash = keyAddress(child.word)
    else return
    event.preventDefault()
  }
  const rowProps = (/** @type {number} */ at) => {
    const { child, level } = rows[at]
    return {
      'data-at': at, 'aria-level': level, 'aria-expanded': child && isNamespace(child) ? open.value.has(idOf(child.word)) : undefined,
      tabindex: at === Math.min(active.value, rows.length - 1) ? 0 : -1, onFocus: () => (active.value = at),
    }
  }
  const row = (/** @type {number} */ at) => {
    const { child, more, level, of } = rows[at]
    if (more) {
      const pad = { paddingLeft: `${(level - 1) * 18}px` }
      return [html`<span class="quiet" style=${pad}>${count(more.children)} more; search for them by a glob</span>`, count(more.keys), html`<${Share} part=${of ? more.keys / of : 0} />`, size(more.bytes), '', '']
    }
    if (!child) return null
    const isOpen = open.value.has(idOf(child.word))
    return cells({ child, level, of, isOpen, detail: child.isKey && details.value.get(idOf(child.word)), toggle: () => toggle(child) })
  }
  const place = useRef([0, 0])
  const range = (/** @type {number} */ from, /** @type {number} */ to) => {
    place.current = [from, to]
    look(rows.slice(from, to).flatMap(each => (each.child?.isKey ? [each.child.word] : [])))
  }
  useEffect(() => range(place.current[0], place.current[1]), [known.value])
  const isWalking = walked.value && !walked.value.isEnd
  return html`<${Problem} reply=${problem.value} />
    ${walked.value && html`<p class="quiet state" role="status">${isWalking ? `Walking over the keys by SCAN: ${count(walked.value.keys.length)} so far` : `${count(walked.value.keys.length)} keys, walked over by SCAN to the end, as this server has no DUNLIN TREE`}</p>`}
    <div class="fill" ref=${box}><${Table} name="Namespaces" kind="keys" role="treegrid" columns=${COLUMNS} count=${rows.length} row=${row}
      rowProps=${rowProps} onKeyDown=${pressed} onRange=${range} problem=${problem.value} empty=${known.value.has('t') && !isWalking ? 'This database has no keys.' : ''} /></div>`
}

/** What a glob finds, up to a number of keys. */
function Found(/** @type {{glob: string}} */ { glob }) {
  const found = useSignal(/** @type {{keys: Word[], isEnd: boolean, problem?: any}} */ ({ keys: [], isEnd: false }))
  const { details, look } = useDetails()
  useLook(async isCurrent => {
    // What was found stays until it has been searched for again.
    const isFirst = !found.peek().isEnd
    const problem = await scanned(['MATCH', glob], (keys, isLast) => {
      const isEnd = isLast || keys.length >= MOST
      if (isCurrent() && (isFirst || isEnd)) found.value = { keys: keys.slice(0, MOST), isEnd }
      return isCurrent() && !isEnd
    })
    if (isCurrent() && problem) found.value = { keys: [], isEnd: true, problem }
  }, glob)
  const { keys, isEnd, problem } = found.value
  const row = (/** @type {number} */ at) => {
    const detail = details.value.get(idOf(keys[at]))
    const type = isCut(keys[at]) ? html`<${TooLong} />` : detail?.type ? html`<span class=${`type ${detail.type}`}>${detail.type}</span>` : ''
    const deadline = detail && Number.isFinite(detail.at) ? html`<${Deadline} at=${detail.at} />` : ''
    return [html`<${Key} word=${keys[at]} />`, type, detail && Number.isFinite(detail.bytes) ? size(detail.bytes) : '', deadline]
  }
  return html`<${Problem} reply=${problem} />
    <p class="quiet state" role="status">${errorOf(problem) ? '' : !isEnd ? 'Searching…' : `${count(keys.length)}${keys.length >= MOST ? ' or more' : ''} keys like ${glob}`}</p>
    <div class="fill"><${Table} name="Keys found" columns=${['Key', 'Type', { name: 'Bytes', kind: 'number' }, 'Deadline']} count=${keys.length} row=${row}
      onRange=${(/** @type {number} */ from, /** @type {number} */ to) => void look(keys.slice(from, to))} problem=${problem} empty=${isEnd ? 'No key is like that.' : 'Searching…'} /></div>`
}

export default function Keys(/** @type {{parameters: URLSearchParams}} */ { parameters }) {
  const glob = parameters.get('glob') ?? ''
  const delimiter = useSignal(DELIMITERS[0])
  const total = useSignal(NaN)
  useEffect(() => {
    ask('DBSIZE').then(reply => (total.value = number(reply)))
  }, [changes.value])
  const search = (/** @type {any} */ event) => {
    event.preventDefault()
    const wanted = String(new FormData(event.currentTarget).get('glob')).trim()
    const isGlob = /[*?[]/.test(wanted)
    location.hash = wanted ? `keys?${new URLSearchParams({ glob: isGlob ? wanted : `*${wanted}*` })}` : 'keys'
  }
  return html`<div class="tools"><form class="line" role="search" onSubmit=${search}>
      <${Field} name="glob" label="Search" type="search" value=${glob} placeholder="user:*  (press /)" width="24" data-search key=${glob} /><button>Search</button>
      ${glob && html`<a class="button" href="#keys">All keys</a>`}</form>
      <div class="line">${!glob && html`<${Choice} name="delimiter" label="Namespaces end at" options=${DELIMITERS} value=${delimiter.value} onChange=${(/** @type {string} */ each) => (delimiter.value = each)} />`}
      <span class="total"><b>${count(total.value)}</b> keys</span></div></div>
    ${glob ? html`<${Found} glob=${glob} key=${glob} />` : html`<${Tree} delimiter=${delimiter.value} />`}`
}
