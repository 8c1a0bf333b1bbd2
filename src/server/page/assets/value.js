/**
 * Value: a key as what it is. The head has its type, size, deadline and place in a cluster; below is what fits its
 * type. What another client changes is shown at once, as the server tells which keys have changed.
 */
import { html, useLayoutEffect, useSignal } from './vendor/preact.js'
import { ask, changes, send } from './link.js'
import { Hash, List, Set as SetView, SortedSet } from './collections.js'
import { bytesOf, count, errorOf, idOf, number, shown, size, slotOf, split, textOf, weightOf, wordOfId } from './words.js'
import { bitsIn, hexRows, isEditable, isHyperLogLog, json, messagePack, pickle, pieceOf, waysFor } from './decode.js'
import { Deadline, Field, idIn, keyAddress, Problem, Send, SendForm, Tabs } from './parts.js'
import { Stream } from './streams.js'
import { VectorSet } from './vectors.js'

/** @typedef {import('./words.js').Word} Word */

/** The most bytes of a string that are asked for at a time. */
const PIECE = 64 << 10
/** The most bytes of a key in a request, which names it some times: the server takes a MiB. */
const KEY_BYTES = 200_000

/** What is known of every key, whatever its type. @param {Word} key */
function useFacts(key) {
  const facts = useSignal(/** @type {any} */ (null))
  // Not after the paint, as other effects: a key takes two requests one after the other.
  useLayoutEffect(() => {
    let isCurrent = true
    send([['TYPE', key], ['PEXPIRETIME', key], ['OBJECT', 'ENCODING', key], ['MEMORY', 'USAGE', key]]).then(found => {
      const [type, at, encoding, bytes] = found
      if (isCurrent) facts.value = { problem: errorOf(type) ? type : null, type: shown(type?.status ?? ''), at: number(at), encoding: textOf(errorOf(encoding) ? '' : encoding), bytes: number(bytes) }
    })
    return () => void (isCurrent = false)
  }, [idOf(key), changes.value])
  return facts.value
}

/** Bits as a grid, the first 4,096 of them. @param {{bytes: Uint8Array}} props */
function Bits({ bytes }) {
  const set = bitsIn(bytes)
  const shownBytes = bytes.subarray(0, 512)
  const squares = /** @type {string[]} */ ([])
  shownBytes.forEach((byte, at) => {
    for (let bit = 0; bit < 8; bit += 1) if (byte & (128 >> bit)) squares.push(`M${((at * 8 + bit) % 64) * 10 + 1} ${Math.floor((at * 8 + bit) / 64) * 10 + 1}h8v8h-8z`)
  })
  const rows = Math.max(1, Math.ceil(shownBytes.length / 8))
  return html`<p><b>${count(set)}</b> of ${count(bytes.length * 8)} bits are 1${bytes.length > 512 && '; the first 4,096 are drawn'}. Each row has 64.</p>
    <svg class="bits" viewBox=${`0 0 640 ${rows * 10}`} role="img" aria-label=${`${set} bits are 1`}>
      <path class="off" d=${`M0 0h640v${rows * 10}H0z`} /><path class="on" d=${squares.join('')} /></svg>`
}

/** A number that INCRBY moves. */
const Counter = (/** @type {{value: Word, word: Word}} */ { value, word }) => html`<p class="figure">${BigInt(shown(word)).toLocaleString('en')}</p>
  <div class="line">${['-100', '-10', '-1', '1', '10', '100'].map(step => html`<${Send} key=${step} words=${['INCRBY', value, step]}>${step.startsWith('-') ? step.replace('-', '−') : `+${step}`}<//>`)}</div>`

/**
 * What is typed instead of a string, the text that was there first, and how that was shown.
 * @typedef {{text: string, first: string, way: string}} Edit
 * @typedef {import('./vendor/preact.js').Signal<Edit | null>} EditSignal
 */

/**
 * A text that can be edited in place, unless a field would change it. What is typed stays when the value changes.
 * @param {{value: Word, text: string, isWhole: boolean, way: string, edit: EditSignal}} props
 */
function Editor({ value, text, isWhole, way, edit }) {
  const edited = edit.value?.way === way ? edit.value : null
  if (!edited && !(isWhole && isEditable(text))) return html`<pre class="content" tabindex="0">${text}</pre>`
  const typed = (/** @type {any} */ event) => {
    const first = edited?.first ?? text
    edit.value = event.currentTarget.value === first ? null : { text: event.currentTarget.value, first, way }
  }
  const save = () => edited && ['SET', value, edited.text, 'KEEPTTL']
  return html`<textarea class="content" aria-label="Value" spellcheck=${false} value=${edited?.text ?? text} onInput=${typed}></textarea>
    <div class="line"><${Send} words=${save} isOff=${!edited} onReply=${(/** @type {any} */ reply) => { if (!errorOf(reply)) edit.value = null }}>Save<//>
      <button type="button" disabled=${!edited} onClick=${() => (edit.value = null)}>Undo</button>
      ${edited && edited.first !== text && html`<span class="meanwhile" role="status">changed meanwhile: to save replaces that</span>`}</div>`
}

/** One way to show a string. */
function Way(/** @type {any} */ { way, value, word, piece, offset, isWhole, facts, edit }) {
  const bytes = bytesOf(word)
  if (way === 'Counter') return html`<${Counter} value=${value} word=${word} />`
  if (way === 'JSON') return html`<${Editor} value=${value} text=${json(word) ?? textOf(word)} isWhole=${isWhole} way=${way} edit=${edit} />`
  if (way === 'MessagePack') return html`<pre class="content" tabindex="0">${messagePack(bytes)}</pre>`
  if (way === 'Pickle') return html`<pre class="content" tabindex="0">${pickle(bytes)}</pre>`
  if (way === 'HyperLogLog') return html`<p class="figure">≈ ${count(facts.estimate)}</p><p class="quiet">different elements, as PFCOUNT estimates; ${facts.isSparse ? 'sparse' : 'dense'} form</p>`
  if (way === 'Bits') return html`<${Bits} bytes=${bytes} />`
  if (way === 'Hex') return html`<pre class="content hex" tabindex="0">${hexRows(bytes, offset)}</pre>`
  return html`<${Editor} value=${value} text=${textOf(piece)} isWhole=${isWhole} way=${way} edit=${edit} />`
}

/** A string, in pieces if it is long. */
function Text(/** @type {{value: Word}} */ { value }) {
  const place = useSignal(0)
  const from = place.value * PIECE
  const found = useSignal(/** @type {any} */ (null))
  const chosen = useSignal('')
  const edit = useSignal(/** @type {Edit | null} */ (null))
  useLayoutEffect(() => {
    let isCurrent = true
    const look = async () => {
      const [length, word] = await send([['STRLEN', value], ['GETRANGE', value, String(from), String(from + PIECE - 1)]])
      const estimate = !errorOf(word) && isHyperLogLog(bytesOf(word)) ? await ask('PFCOUNT', value) : null
      if (isCurrent) found.value = { problem: errorOf(word) ? word : null, from, length: number(length), word, estimate: number(estimate) }
    }
    look()
    return () => void (isCurrent = false)
  }, [idOf(value), from, changes.value])
  if (!found.value) return null
  const { problem, length, word, from: at } = found.value
  if (problem) return html`<${Problem} reply=${problem} />`
  const isWhole = length <= PIECE
  const piece = pieceOf(word, at === 0, at + PIECE >= length)
  const ways = waysFor(piece, isWhole)
  const way = ways.includes(chosen.value) ? chosen.value : edit.value?.way ?? ways[0]
  const facts = { ...found.value, isSparse: bytesOf(word)[4] === 1 }
  const pieces = Math.ceil(length / PIECE)
  return html`<div class="line"><${Tabs} name="Shown as" all=${[...new Set([...ways, way])]} chosen=${way} onChoose=${(/** @type {string} */ each) => (chosen.value = each)} />
      ${!isWhole && html`<span class="pager"><button type="button" disabled=${!place.value} onClick=${() => (place.value -= 1)}>Before</button>
        <span>${size(from)} to ${size(Math.min(length, from + PIECE))} of ${size(length)}</span>
        <button type="button" disabled=${place.value + 1 >= pieces} onClick=${() => (place.value += 1)}>After</button></span>`}</div>
    <${Way} way=${way} value=${value} word=${word} piece=${piece} offset=${at} isWhole=${isWhole} facts=${facts} edit=${edit} />`
}

/** The commands that would create the key, as DUNLIN DUMP writes them. */
function AsCommands(/** @type {{value: Word}} */ { value }) {
  const text = useSignal(/** @type {string | null} */ (null))
  const problem = useSignal(/** @type {any} */ (null))
  const show = async () => {
    const reply = await ask('DUNLIN', 'DUMP', 'KEY', value)
    problem.value = reply
    text.value = errorOf(reply) ? null : textOf(reply).replace(/^SELECT .*\n/, '').trimEnd()
  }
  return html`<details class="commands" onToggle=${(/** @type {any} */ event) => event.currentTarget.open && show()}><summary>As commands</summary>
    <${Problem} reply=${problem.value} />${text.value !== null && html`<pre tabindex="0">${text.value}</pre>`}</details>`
}

const KINDS = /** @type {Record<string, any>} */ ({ string: Text, list: List, set: SetView, hash: Hash, zset: SortedSet, stream: Stream, vectorset: VectorSet })
const TYPES = /** @type {Record<string, string>} */ ({ string: 'string', list: 'list', set: 'set', hash: 'hash', zset: 'sorted set', stream: 'stream', vectorset: 'vector set' })

/** Steps for a deadline, from now on. */
const DEADLINES = [['1 min', '60'], ['1 h', '3600'], ['1 day', '86400']]

function Facts(/** @type {{value: Word, facts: any}} */ { value, facts }) {
  const { slot, tag } = slotOf(value)
  const rename = (/** @type {FormData} */ data) => ['RENAMENX', value, String(data.get('name'))]
  const expire = (/** @type {FormData} */ data) => ['EXPIRE', value, String(data.get('seconds'))]
  const renamed = (/** @type {any} */ reply, /** @type {Word[]} */ words) => {
    if (number(reply) === 1) location.hash = keyAddress(words[2])
  }
  return html`<header class="facts">
    <h2 class="keyname">${shown(value, 500)}</h2>
    <dl><div><dt>Type</dt><dd><span class=${`type ${facts.type}`}>${TYPES[facts.type] ?? facts.type}</span></dd></div>
      ${facts.encoding && html`<div><dt>Encoding</dt><dd>${facts.encoding}</dd></div>`}
      ${Number.isFinite(facts.bytes) && html`<div><dt>Memory</dt><dd>${size(facts.bytes)}</dd></div>`}
      <div><dt>Slot</dt><dd>${slot}${tag && html` <span class="quiet">by {${shown(tag, 40)}}</span>`}</dd></div>
      <div><dt>Deadline</dt><dd>${facts.at > 0 ? html`<${Deadline} at=${facts.at} />` : 'none'}</dd></div></dl>
    <div class="line"><span class="quiet" aria-hidden="true">Expire</span>${DEADLINES.map(([name, seconds]) => html`<${Send} key=${name} words=${['EXPIRE', value, seconds]} name=${`Expire in ${name}`}>in ${name}<//>`)}
      <${SendForm} label="Expire" words=${expire}><${Field} name="seconds" label="Seconds" type="number" min="1" required width="7" hasLabel=${false} placeholder="seconds" /><//>
      ${facts.at > 0 && html`<${Send} words=${['PERSIST', value]}>Persist<//>`}
      <span class="space"></span>
      <${SendForm} label="Rename" words=${rename} onReply=${renamed}><${Field} name="name" label="New name" required hasLabel=${false} placeholder="new name" /><//>
      <${Send} kind="danger" words=${['UNLINK', value]}>Delete<//></div>
  </header>`
}

/** Where no key is named: asks for one. */
function Ask() {
  const find = (/** @type {any} */ event) => {
    event.preventDefault()
    const words = split(String(new FormData(event.currentTarget).get('key')))
    if (words?.length) location.hash = keyAddress(words[0])
  }
  return html`<div class="note"><h2>Which key?</h2><form class="line" onSubmit=${find}>
    <${Field} name="key" label="Key" width="28" data-search placeholder="user:1" /><button>Show</button></form>
    <p>Or choose one in <a href="#keys">Keys</a> or in the <a href="#feed">Feed</a>.</p></div>`
}

export default function Value(/** @type {{parameters: URLSearchParams}} */ { parameters }) {
  const id = idIn(parameters)
  if (!id) return html`<${Ask} />`
  const value = wordOfId(id)
  return weightOf(value) > KEY_BYTES ? html`<${TooLongKey} value=${value} />` : html`<${OfKey} value=${value} key=${id} />`
}

/** A key that the requests of the page have no room for. */
const TooLongKey = (/** @type {{value: Word}} */ { value }) => html`<h2 class="keyname">${shown(value, 500)}</h2>
  <div class="note"><h2>This key is too long for the page</h2>
    <p>Its name has ${size(bytesOf(value).length)}. A request of the page names a key several times, and has room for names of up to ${size(KEY_BYTES)}: ask for it with a client.</p></div>`

function OfKey(/** @type {{value: Word}} */ { value }) {
  const facts = useFacts(value)
  if (!facts) return null
  if (facts.problem) return html`<h2 class="keyname">${shown(value, 500)}</h2><${Problem} reply=${facts.problem} />`
  if (facts.type === 'none') return html`<${Missing} value=${value} />`
  const Kind = KINDS[facts.type]
  return html`<${Facts} value=${value} facts=${facts} />
    <div class="value">${Kind ? html`<${Kind} value=${value} key=${facts.type} />` : html`<p>This type has no view of its own.</p>`}</div>
    <${AsCommands} value=${value} />`
}

/** A key that is not there, and how to make it. */
function Missing(/** @type {{value: Word}} */ { value }) {
  const make = (/** @type {FormData} */ data) => ['SET', value, String(data.get('text'))]
  return html`<h2 class="keyname">${shown(value, 500)}</h2><div class="note"><h2>There is no such key</h2>
    <p>It may have expired, or was deleted. When a client makes it, it is shown here.</p>
    <${SendForm} label="SET" words=${make}><${Field} name="text" label="Value" width="28" /><//></div>`
}

