/**
 * The views of lists, sets, hashes and sorted sets. However many elements a key has, at most two hundred rows are in
 * the page: lists and sorted sets are asked for what is looked at, sets and hashes are read on as one scrolls.
 */
import { html, useEffect, useLayoutEffect, useRef, useSignal } from './vendor/preact.js'
import { changes, now, ROW_BYTES, send } from './link.js'
import { Deadline, Field, Problem, Send, SendForm, Table, Tabs, TooLong, WINDOW } from './parts.js'
import { isEditable } from './decode.js'
import { count, errorOf, idOf, isBinary, isCut, items, number, pairs, parts, shown, textOf, weightOf } from './words.js'

/** @typedef {import('./words.js').Word} Word */
/** @typedef {import('./words.js').Reply} Reply */

/**
 * Elements that are asked for by their places, as the window comes to them.
 * @param {Word[]} lengthWords @param {(from: number, to: number) => Word[]} rangeWords @param {(reply: Reply) => any[]} read
 */
export function useRange(lengthWords, rangeWords, read) {
  const state = useSignal({ length: NaN, found: /** @type {Map<number, any>} */ (new Map()), problem: /** @type {Reply} */ (null) })
  const range = useRef({ from: 0, to: WINDOW })
  const asked = useRef(0)
  const key = JSON.stringify([lengthWords, rangeWords(0, 1)])
  const look = async () => {
    const { from, to } = range.current
    const mine = (asked.current += 1)
    const [length, list] = await send([lengthWords, rangeWords(from, to - 1)], ROW_BYTES)
    if (mine !== asked.current) return
    const found = new Map(read(list).map((item, at) => [from + at, item]))
    state.value = { length: number(length), found, problem: errorOf(list) ? list : null }
  }
  useLayoutEffect(() => void look(), [key, changes.value])
  const onRange = (/** @type {number} */ from, /** @type {number} */ to) => {
    if (from === range.current.from && to <= range.current.to) return
    range.current = { from, to: from + WINDOW }
    look()
  }
  return { ...state.value, onRange }
}

/**
 * Elements in the order in which the server walks over them, a page after the other, and how many there are in all.
 * @param {Word[]} lengthWords @param {(cursor: string) => Word[]} words @param {(reply: Reply) => any[]} read
 */
function useScan(lengthWords, words, read) {
  const state = useSignal({ length: NaN, found: /** @type {any[]} */ ([]), cursor: '0', isEnd: false, problem: /** @type {Reply} */ (null) })
  const isBusy = useRef(false)
  /** Whether something changed while elements were read. */
  const isStale = useRef(false)
  const key = JSON.stringify(words('0'))
  const look = async (/** @type {number} */ wanted, isAgain = false) => {
    if (isBusy.current) {
      isStale.current ||= isAgain
      return
    }
    isBusy.current = true
    isStale.current = false
    let { found, cursor, isEnd } = isAgain ? { found: /** @type {any[]} */ ([]), cursor: '0', isEnd: false } : state.peek()
    let problem = null
    let length = state.peek().length
    while (!isEnd && found.length < wanted && !problem) {
      const [reply, total] = await send([words(cursor), lengthWords], ROW_BYTES)
      length = number(total)
      if (errorOf(reply)) problem = reply
      else {
        cursor = shown(reply[0])
        isEnd = cursor === '0'
        found = [...found, ...read(reply[1])]
      }
    }
    state.value = { length, found, cursor, isEnd, problem }
    isBusy.current = false
    if (isStale.current) again()
  }
  const again = () => void look(Math.min(5000, Math.max(WINDOW, state.peek().found.length)), true)
  useLayoutEffect(again, [key, changes.value])
  return { ...state.value, onRange: (/** @type {number} */ _, /** @type {number} */ to) => void (to + 60 > state.value.found.length && look(to + WINDOW)) }
}

/** The longest value that is edited in its row. */
const LONGEST = 4096

/**
 * A value in a row, which a click turns into a field. What is typed there stays when the value changes meanwhile. An
 * unchanged text is not sent.
 * @param {{word: Word, words: (text: string) => Word[], name: string}} props
 */
export function Editable({ word, words, name }) {
  const edited = useSignal(/** @type {{first: string, text: string} | null} */ (null))
  const close = () => (edited.value = null)
  if (!edited.value) {
    return html`<span class="editable"><span class="text" title=${shown(word, 2000)}>${shown(word, 400)}</span>
      ${isEditable(word) && textOf(word).length < LONGEST && html`<button type="button" class="small" aria-label=${`Edit ${name}`} onClick=${() => (edited.value = { first: textOf(word), text: textOf(word) })}>Edit</button>`}</span>`
  }
  const { first, text } = edited.value
  const lines = first.split('\n').length
  return html`<${SendForm} label="Save" name=${`Edit ${name}`} words=${() => (text === first ? null : words(text))} onReply=${(/** @type {Reply} */ reply) => !errorOf(reply) && close()}>
    <${Field} label=${name} hasLabel=${false} value=${first} width="24" lines=${lines > 1 ? Math.min(8, lines) : 0} isFirst
      onInput=${(/** @type {any} */ event) => (edited.value = { first, text: event.currentTarget.value })} />
    ${isBinary(word) || textOf(word) !== first ? html`<span class="meanwhile" role="status">changed meanwhile</span>` : ''}
    <button type="button" onClick=${close}>Cancel</button><//>`
}

const text = (/** @type {FormData} */ data, /** @type {string} */ name) => String(data.get(name))

export function List(/** @type {{value: Word}} */ { value }) {
  const { length, found, problem, onRange } = useRange(['LLEN', value], (from, to) => ['LRANGE', value, String(from), String(to)], items)
  const row = (/** @type {number} */ at) => {
    if (!found.has(at)) return null
    const word = found.get(at)
    return [at, html`<${Editable} word=${word} name=${`element ${at}`} words=${(/** @type {string} */ new_) => ['LSET', value, String(at), new_]} />`,
      at === 0 ? 'head' : at === length - 1 ? 'tail' : '']
  }
  return html`<${Problem} reply=${problem} />
    <div class="ends"><div class="line"><span class="quiet">Head</span>
      <${SendForm} label="LPUSH" words=${(/** @type {FormData} */ data) => ['LPUSH', value, text(data, 'element')]}><${Field} name="element" label="New element at the head" hasLabel=${false} placeholder="element" required /><//>
      <${Send} words=${['LPOP', value]}>LPOP<//></div>
    <span class="total"><b>${count(length)}</b> elements</span>
    <div class="line"><${Send} words=${['RPOP', value]}>RPOP<//>
      <${SendForm} label="RPUSH" words=${(/** @type {FormData} */ data) => ['RPUSH', value, text(data, 'element')]}><${Field} name="element" label="New element at the tail" hasLabel=${false} placeholder="element" required /><//>
      <span class="quiet">Tail</span></div></div>
    <div class="fill"><${Table} name="Elements" kind="list" columns=${[{ name: 'Place', kind: 'number' }, 'Element', 'End']} count=${length || 0} row=${row} onRange=${onRange} empty="" /></div>`
}

export function Set(/** @type {{value: Word}} */ { value }) {
  const { length, found, isEnd, problem, onRange } = useScan(['SCARD', value], cursor => ['SSCAN', value, cursor, 'COUNT', '200'], items)
  const row = (/** @type {number} */ at) => [html`<span class="text" title=${shown(found[at], 2000)}>${shown(found[at], 400)}</span>`,
    isCut(found[at]) ? html`<${TooLong} />` : html`<${Send} kind="small" words=${['SREM', value, found[at]]} name=${`Remove ${shown(found[at], 60)}`}>Remove<//>`]
  return html`<${Problem} reply=${problem} />
    <div class="line"><${SendForm} label="SADD" words=${(/** @type {FormData} */ data) => ['SADD', value, text(data, 'member')]}><${Field} name="member" label="New member" hasLabel=${false} placeholder="member" required /><//>
      <span class="total"><b>${count(length)}</b> members${!isEnd && `, ${count(found.length)} read so far`}</span></div>
    <div class="fill"><${Table} name="Members" kind="set" columns=${['Member', { name: 'Actions', title: '' }]} count=${found.length} row=${row} onRange=${onRange} empty="" /></div>`
}

/** The most bytes of the words of a command, and of the commands of a request, as JSON: the server takes a MiB. */
const COMMAND_BYTES = 200_000
const REQUEST_BYTES = 800_000
/** The most fields that a command names. */
const COMMAND_FIELDS = 200

/**
 * Fields of a key as requests of commands that name some each; those that have not come to their end are left out.
 * @param {Word} key @param {Word[]} fields
 */
function inRequests(key, fields) {
  const weigh = (/** @type {Word} */ field) => Math.max(weightOf(field), COMMAND_BYTES / COMMAND_FIELDS)
  const commands = parts(fields.filter(field => !isCut(field)), weigh, COMMAND_BYTES)
  return parts(commands, command => command.reduce((sum, field) => sum + weightOf(field), weightOf(key)), REQUEST_BYTES)
}

/** The deadlines of fields, by the fields. @param {Word} value @param {[Word, Word][]} found */
function useFieldDeadlines(value, found) {
  const deadlines = useSignal(/** @type {Map<string, number>} */ (new Map()))
  useEffect(() => {
    let isCurrent = true
    const look = async () => {
      const known = new Map()
      for (const request of inRequests(value, found.map(pair => pair[0]))) {
        const replies = await send(request.map(fields => ['HPEXPIRETIME', value, 'FIELDS', String(fields.length), ...fields]))
        replies.forEach((reply, at) => items(reply).forEach((/** @type {Reply} */ each, /** @type {number} */ place) => known.set(idOf(request[at][place]), number(each))))
      }
      if (isCurrent) deadlines.value = known
    }
    look()
    return () => void (isCurrent = false)
  }, [found])
  return deadlines.value
}

export function Hash(/** @type {{value: Word}} */ { value }) {
  const { length, found, isEnd, problem, onRange } = useScan(['HLEN', value], cursor => ['HSCAN', value, cursor, 'COUNT', '200'], pairs)
  const deadlines = useFieldDeadlines(value, found)
  const row = (/** @type {number} */ at) => {
    const [field, word] = found[at]
    const deadline = deadlines.get(idOf(field)) ?? -1
    const name = shown(field, 60)
    if (isCut(field)) return [html`<b title=${shown(field, 2000)}>${shown(field, 200)}</b>`, html`<span class="text">${shown(word, 400)}</span>`, '', html`<${TooLong} />`]
    return [html`<b title=${shown(field, 2000)}>${shown(field, 200)}</b>`,
      html`<${Editable} word=${word} name=${name} words=${(/** @type {string} */ new_) => change(field, new_)} />`,
      html`<span class="line tight">${deadline > 0 ? html`<${Deadline} at=${deadline} /><${Send} kind="small" words=${['HPERSIST', value, 'FIELDS', '1', field]} name=${`Persist ${name}`}>Persist<//>`
        : html`<span class="quiet">none</span><${Send} kind="small" words=${['HEXPIRE', value, '60', 'FIELDS', '1', field]} name=${`Expire in 1 min: ${name}`}>Expire in 1 min<//>`}</span>`,
      html`<${Send} kind="small" words=${['HDEL', value, field]} name=${`Delete ${name}`}>Delete<//>`]
  }
  // HSET would end the deadline of the field.
  const change = (/** @type {Word} */ field, /** @type {string} */ text) => (deadlines.get(idOf(field)) === -1 ? ['HSET', value, field, text] : ['HSETEX', value, 'KEEPTTL', 'FIELDS', '1', field, text])
  const expire = (/** @type {FormData} */ data) => ['HEXPIRE', value, text(data, 'seconds'), 'FIELDS', '1', text(data, 'field')]
  return html`<${Problem} reply=${problem} />
    <div class="line"><${SendForm} label="HSET" words=${(/** @type {FormData} */ data) => ['HSET', value, text(data, 'field'), text(data, 'text')]}>
      <${Field} name="field" label="Field" hasLabel=${false} placeholder="field" required /><${Field} name="text" label="Value" hasLabel=${false} placeholder="value" width="20" /><//>
      <${SendForm} label="HEXPIRE" words=${expire}><${Field} name="field" label="Field to expire" hasLabel=${false} placeholder="field" required width="8" /><${Field} name="seconds" label="Seconds" type="number" min="1" hasLabel=${false} placeholder="seconds" required width="6" /><//>
      <span class="total"><b>${count(length)}</b> fields${!isEnd && `, ${count(found.length)} read so far`}</span></div>
    <div class="fill"><${Table} name="Fields" kind="hash" columns=${['Field', 'Value', 'Deadline', { name: 'Actions', title: '' }]} count=${found.length} row=${row} keyOf=${(/** @type {number} */ at) => idOf(found[at][0])} onRange=${onRange} empty="" /></div>`
}

/** What scores count, if they look like moments near to the server's time: 1000 for seconds, 1 for milliseconds. */
export function unitOf(/** @type {number[]} */ scores, /** @type {number} */ time) {
  const near = 20 * 365 * 86_400_000
  return [1000, 1].find(unit => scores.length > 0 && scores.every(score => score > 1e8 && Math.abs(score * unit - time) < near))
}

/** Whether scores look like those of GEOADD: whole numbers of 52 bits. */
const arePlaces = (/** @type {number[]} */ scores) => scores.length > 0 && scores.every(score => Number.isInteger(score) && score > 2 ** 44 && score < 2 ** 52)

/**
 * How many members of a sorted set are due, also of those that were not read, asked for again each second.
 * @param {Word} value @param {number} unit
 */
function useDue(value, unit) {
  const due = useSignal(NaN)
  const second = Math.floor(now.value / 1000)
  useEffect(() => {
    let isCurrent = true
    send([['ZCOUNT', value, '-inf', String(now.peek() / unit)]]).then(([reply]) => isCurrent && (due.value = number(reply)))
    return () => void (isCurrent = false)
  }, [second, unit, changes.value])
  return due.value
}

/** Moments on a line, with the server's time among them, and how many are due of all. */
function TimeLine(/** @type {{value: Word, moments: number[], unit: number, length: number}} */ { value, moments, unit, length }) {
  const time = now.value
  const due = useDue(value, unit)
  const first = Math.min(time, ...moments)
  const last = Math.max(time, ...moments)
  const x = (/** @type {number} */ at) => 10 + (980 * (at - first)) / (last - first || 1)
  return html`<svg class="timeline" viewBox="0 0 1000 60" role="img" aria-label=${`${count(due)} of ${count(length)} are due`}>
    <path class="axis" d="M10 36H990" />${moments.map((at, place) => html`<circle key=${place} class=${at <= time ? 'due' : ''} cx=${x(at)} cy="36" r="5" />`)}
    <path class="now" d=${`M${x(time)} 18V54`} /><text x=${Math.min(960, Math.max(30, x(time)))} y="13" text-anchor="middle">now</text></svg>
    <p class="quiet">${count(due)} due, ${count(length - due)} to come, by the server's clock${moments.length < length && `; ${count(moments.length)} of all are drawn`}</p>`
}

/** Places as points between their own bounds. */
function Places(/** @type {{value: Word, members: Word[]}} */ { value, members }) {
  const found = useSignal(/** @type {{word: Word, x: number, y: number}[]} */ ([]))
  useEffect(() => {
    let isCurrent = true
    send([['GEOPOS', value, ...members]]).then(([reply]) => {
      const places = items(reply).flatMap((/** @type {Reply} */ place, /** @type {number} */ at) => (place ? [{ word: members[at], x: number(place[0]), y: number(place[1]) }] : []))
      if (isCurrent) found.value = places
    })
    return () => void (isCurrent = false)
  }, [JSON.stringify(members)])
  if (!found.value.length) return null
  const bounds = (/** @type {number[]} */ all) => ({ least: Math.min(...all), width: Math.max(...all) - Math.min(...all) || 1 })
  const [xs, ys] = [bounds(found.value.map(place => place.x)), bounds(found.value.map(place => place.y))]
  const x = (/** @type {number} */ at) => 90 + (720 * (at - xs.least)) / xs.width
  const y = (/** @type {number} */ at) => 350 - (310 * (at - ys.least)) / ys.width
  const lines = [0, 0.25, 0.5, 0.75, 1]
  return html`<svg class="places" viewBox="0 0 900 390" role="img" aria-label=${`${found.value.length} places, by longitude and latitude`}>
    ${lines.map(part => html`<g key=${part}><path class="axis" d=${`M${90 + 720 * part} 30V360M80 ${350 - 310 * part}H820`} />
      <text x=${90 + 720 * part} y="380" text-anchor="middle">${(xs.least + xs.width * part).toFixed(2)}°</text><text x="72" y=${355 - 310 * part} text-anchor="end">${(ys.least + ys.width * part).toFixed(2)}°</text></g>`)}
    ${found.value.map(place => html`<g key=${idOf(place.word)}><circle cx=${x(place.x)} cy=${y(place.y)} r="5" /><text class="label" x=${x(place.x) + 9} y=${y(place.y) + 5}>${shown(place.word, 24)}</text></g>`)}</svg>`
}

export function SortedSet(/** @type {{value: Word}} */ { value }) {
  const chosen = useSignal('')
  const fitting = useSignal('Leaderboard')
  const way = chosen.value || fitting.value
  const isHighFirst = way === 'Leaderboard'
  const order = isHighFirst ? ['REV'] : []
  const { length, found, problem, onRange } = useRange(['ZCARD', value], (from, to) => ['ZRANGE', value, String(from), String(to), ...order, 'WITHSCORES'], pairs)
  const scores = [...found.values()].map(pair => number(pair[1]))
  const unit = unitOf(scores, now.peek())
  const places = arePlaces(scores)
  const ways = ['Leaderboard', 'Lowest first', ...(unit ? ['Time line'] : []), ...(places ? ['Places'] : [])]
  useEffect(() => {
    if (scores.length) fitting.value = unit ? 'Time line' : places ? 'Places' : 'Leaderboard'
  }, [scores.length > 0, unit, places])
  const most = Math.max(...scores.map(Math.abs), 1e-9)
  const row = (/** @type {number} */ at) => {
    const pair = found.get(at)
    if (!pair) return null
    const [member, reply] = pair
    const score = number(reply)
    const name = shown(member, 60)
    const text = html`<span class="text" title=${shown(member, 2000)}>${shown(member, 300)}</span>`
    if (isCut(member)) return [at + 1, text, textOf(reply), '', html`<${TooLong} />`]
    return [at + 1, text,
      html`<${Editable} word=${textOf(reply)} name=${`the score of ${name}`} words=${(/** @type {string} */ new_) => ['ZADD', value, 'XX', new_, member]} />`,
      unit ? html`<${Deadline} at=${score * unit} />` : !places && html`<span class="bar" aria-hidden="true"><span style=${{ width: `${(100 * Math.abs(score)) / most}%` }}></span></span>`,
      html`<span class="line tight"><${Send} kind="small" words=${['ZINCRBY', value, '1', member]} name=${`1 more for ${name}`}>+1<//><${Send} kind="small" words=${['ZREM', value, member]} name=${`Remove ${name}`}>Remove<//></span>`]
  }
  const add = (/** @type {FormData} */ data) => ['ZADD', value, text(data, 'score'), text(data, 'member')]
  return html`<${Problem} reply=${problem} />
    <div class="line"><${Tabs} name="Shown as" all=${ways} chosen=${way} onChoose=${(/** @type {string} */ each) => (chosen.value = each)} />
      <span class="space"></span><${SendForm} label="ZADD" words=${add}><${Field} name="score" label="Score" hasLabel=${false} placeholder="score" required width="8" /><${Field} name="member" label="Member" hasLabel=${false} placeholder="member" required /><//>
      <span class="total"><b>${count(length)}</b> members</span></div>
    ${way === 'Time line' && unit && html`<${TimeLine} value=${value} moments=${scores.map(score => score * unit)} unit=${unit} length=${length} />`}
    ${way === 'Places' && html`<${Places} value=${value} members=${[...found.values()].map(pair => pair[0]).filter(member => !isCut(member))} />`}
    <div class="fill"><${Table} name="Members" kind="zset" columns=${[{ name: 'Rank', kind: 'number' }, 'Member', 'Score', unit ? 'Due' : { name: 'Bar', title: '' }, { name: 'Actions', title: '' }]}
      count=${length || 0} row=${row} keyOf=${(/** @type {number} */ at) => (found.has(at) ? idOf(found.get(at)[0]) : `at ${at}`)} onRange=${onRange} empty="" /></div>`
}
