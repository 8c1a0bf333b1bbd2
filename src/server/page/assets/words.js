/**
 * Words of commands, and replies, as people read and write them: redis-cli's quoting, its way to show replies, sizes
 * and durations.
 *
 * A word is a text, or, where its bytes are no UTF-8, an object with them in base64; so a key that is no text can be
 * shown, sent back, and put into an address without a loss. A long word of a reply may have come without its end: it is
 * shown, and cannot be sent back. Nothing here touches the page or the network.
 */

/** @typedef {string | {base64: string}} Word */
/** A reply as POST /command returns it: see docs/page.md. @typedef {any} Reply */

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** Characters that would be invisible, or would change the order of others, where a word is shown in one line. */
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu

/** @param {any} word @returns {word is {base64: string}} */
export const isBinary = word => typeof word === 'object' && word !== null && typeof word.base64 === 'string'

/** @param {any} word @returns {word is {cut: Word, length: number}} */
export const isCut = word => typeof word === 'object' && word !== null && 'cut' in word

/** @param {Word} word @returns {Uint8Array} */
export function bytesOf(word) {
  if (!isBinary(word)) return encoder.encode(String(word))
  return Uint8Array.from(atob(word.base64), letter => letter.charCodeAt(0))
}

/** @param {Uint8Array} bytes @returns {Word} */
export function wordOf(bytes) {
  try {
    return utf8.decode(bytes)
  } catch {
    let letters = ''
    for (const byte of bytes) letters += String.fromCharCode(byte)
    return { base64: btoa(letters) }
  }
}

/** A word's bytes as one value that compares by them. @param {Word} word @returns {string} */
export const idOf = word => (isBinary(word) ? `b${word.base64}` : isCut(word) ? `c${word.length} ${idOf(word.cut)}` : `t${word}`)

/** The word of such a value. @param {string} id @returns {Word} */
export const wordOfId = id => (id.startsWith('b') ? { base64: id.slice(1) } : id.slice(1))

/** The bytes of a word in a request. @param {Word} word */
export const weightOf = word => encoder.encode(JSON.stringify(word)).length

const hex = (/** @type {number} */ byte) => `\\x${byte.toString(16).padStart(2, '0')}`
const escaped = (/** @type {string} */ letter) => Array.from(encoder.encode(letter), hex).join('')

/** The slot of a key in a cluster, and the tag that decides it if there is one. @param {Word} key */
export function slotOf(key) {
  const bytes = bytesOf(key)
  const open = bytes.indexOf(123)
  const close = bytes.indexOf(125, open + 1)
  const tag = open >= 0 && close > open + 1 ? bytes.subarray(open + 1, close) : null
  let sum = 0
  for (const byte of tag ?? bytes) {
    sum ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 0x8000 ? ((sum << 1) ^ 0x1021) & 0xffff : sum << 1
  }
  return { slot: sum % 16384, tag: tag && wordOf(tag) }
}

/** A word in one line, with what is invisible escaped, cut after so many characters. @param {any} word @returns {string} */
export function shown(word, most = 300) {
  if (isCut(word)) return `${shown(word.cut, most).replace(/…$/, '')}… (${size(word.length)})`
  const text = isBinary(word) ? binaryShown(firstBytes(word, most)) : String(word)
  const line = text.slice(0, most).replace(INVISIBLE, letter => ({ '\n': '\\n', '\r': '\\r', '\t': '\\t' })[letter] ?? escaped(letter))
  return text.length > most ? `${line}…` : line
}

/** The first bytes of a word, without a look at the others. @param {{base64: string}} word @param {number} most */
const firstBytes = ({ base64 }, most) => bytesOf({ base64: base64.slice(0, 4 * Math.ceil(most / 3)) }).subarray(0, most)

function binaryShown(/** @type {Uint8Array} */ bytes) {
  return Array.from(bytes, byte => (byte > 31 && byte < 127 && byte !== 92 ? String.fromCharCode(byte) : hex(byte))).join('')
}

/** A word as redis-cli's prompt takes it. @param {any} word @returns {string} */
export function quoted(word, most = Infinity) {
  if (isCut(word)) return `${quoted(word.cut)}…`
  if (isBinary(word)) return `"${binaryShown(firstBytes(word, most)).replaceAll('"', '\\"')}"`
  const text = String(word)
  const part = text.slice(0, most)
  const end = text.length > most ? '…' : ''
  if (part && !/[\s"'\\]/.test(part) && part.search(INVISIBLE) < 0) return part + end
  const inside = part.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')
  return `"${inside.replace(INVISIBLE, escaped)}${end}"`
}

/** A command as a line for redis-cli. @param {any[]} words */
export const line = (words, most = Infinity) => words.map(word => quoted(word, most)).join(' ')

const ESCAPES = /** @type {Record<string, number>} */ ({ n: 10, r: 13, t: 9, b: 8, a: 7 })

/**
 * The words of a line as redis-cli reads it, or null where a quote is not closed or followed by a letter.
 * @param {string} text @returns {Word[] | null}
 */
export function split(text) {
  const words = []
  let at = 0
  for (;;) {
    while (at < text.length && /\s/.test(text[at])) at += 1
    if (at === text.length) return words
    const read = readWord(text, at)
    if (!read) return null
    words.push(read.word)
    at = read.end
  }
}

/** @param {string} text @param {number} start */
function readWord(text, start) {
  const bytes = []
  let at = start
  let quote = ''
  for (; quote || (at < text.length && !/\s/.test(text[at])); ) {
    if (at >= text.length) return null
    const letter = String.fromCodePoint(/** @type {number} */ (text.codePointAt(at)))
    if (quote && letter === quote) {
      if (at + 1 < text.length && !/\s/.test(text[at + 1])) return null
      quote = ''
      at += 1
    } else if (!quote && (letter === '"' || letter === "'")) {
      quote = letter
      at += 1
    } else if (quote === '"' && letter === '\\' && at + 1 < text.length) {
      const code = /^\\x([0-9a-f]{2})/i.exec(text.slice(at, at + 4))
      if (code) bytes.push(parseInt(code[1], 16))
      else bytes.push(...(text[at + 1] in ESCAPES ? [ESCAPES[text[at + 1]]] : encoder.encode(text[at + 1])))
      at += code ? 4 : 2
    } else if (quote === "'" && text.startsWith("\\'", at)) {
      bytes.push(39)
      at += 2
    } else {
      bytes.push(...encoder.encode(letter))
      at += letter.length
    }
  }
  return { word: wordOf(Uint8Array.from(bytes)), end: at }
}

/** The error's text, or undefined. @param {Reply} reply @returns {string | undefined} */
export const errorOf = reply => (reply !== null && typeof reply === 'object' ? reply.error : undefined)

/** A number in a reply, whatever its type, or NaN. @param {Reply} reply */
export function number(reply) {
  if (reply === null || reply === undefined) return NaN
  if (typeof reply !== 'object') return Number(reply)
  return Number(reply.integer ?? reply.double ?? reply.big ?? NaN)
}

/** The items of an array, a set or a push; empty for anything else. @param {Reply} reply @returns {Reply[]} */
export function items(reply) {
  if (Array.isArray(reply)) return reply
  return reply?.set ?? reply?.push ?? []
}

/** The pairs of a map, also of one that is a flat array. @param {Reply} reply @returns {[Reply, Reply][]} */
export function pairs(reply) {
  if (!Array.isArray(reply) && reply?.map) return reply.map
  const flat = items(reply)
  if (flat.length && Array.isArray(flat[0])) return /** @type {[Reply, Reply][]} */ (flat)
  return Array.from({ length: flat.length >> 1 }, (_, at) => [flat[2 * at], flat[2 * at + 1]])
}

/** A map whose names are texts, as an object. @param {Reply} reply @returns {Record<string, Reply>} */
export const fields = reply => Object.fromEntries(pairs(reply).map(([name, value]) => [shown(name), value]))

/** The text of a reply that is one, with its lines. @param {Reply} reply @returns {string} */
export function textOf(reply) {
  if (reply === null || reply === undefined) return ''
  if (typeof reply !== 'object') return String(reply)
  if (isBinary(reply)) return binaryShown(bytesOf(reply))
  return String(reply.text ?? reply.status ?? reply.integer ?? reply.double ?? reply.big ?? reply.error ?? '')
}

/** What is shown for each element beside its own letters. */
const ELEMENT = 8

/**
 * The beginning of a reply, so that a long one need not be quoted to its end. `budget.left` is how many letters it may
 * have; below zero afterwards, something was left out.
 * @param {Reply} reply @param {{left: number}} budget @returns {Reply}
 */
export function beginning(reply, budget) {
  if (reply === null || typeof reply === 'boolean') return reply
  if (typeof reply === 'string') return spend(reply, budget)
  if (isBinary(reply)) {
    const most = 4 * Math.ceil(Math.max(0, budget.left) / 3)
    budget.left -= Math.ceil(0.75 * reply.base64.length)
    return { base64: reply.base64.slice(0, most) }
  }
  if (isCut(reply)) return { ...reply, cut: beginning(reply.cut, budget) }
  if (Array.isArray(reply)) return beginningOf(reply, budget, beginning)
  if (reply.map) return { map: beginningOf(reply.map, budget, (pair, rest) => [beginning(pair[0], rest), beginning(pair[1], rest)]) }
  if (reply.set) return { set: beginningOf(reply.set, budget, beginning) }
  if (reply.push) return { push: beginningOf(reply.push, budget, beginning) }
  return reply.text === undefined ? reply : { ...reply, text: spend(reply.text, budget) }
}

/** @param {string} text @param {{left: number}} budget */
function spend(text, budget) {
  const most = Math.max(0, budget.left)
  budget.left -= text.length
  return text.slice(0, most)
}

/** @param {any[]} list @param {{left: number}} budget @param {(item: any, budget: {left: number}) => any} begin */
function beginningOf(list, budget, begin) {
  const found = []
  for (const item of list) {
    budget.left -= ELEMENT
    if (budget.left < 0) break
    found.push(begin(item, budget))
  }
  return found
}

/** A reply as redis-cli shows it. @param {Reply} reply @returns {string} */
export function asCli(reply, indent = '') {
  if (reply === null || reply === undefined) return '(nil)'
  if (typeof reply === 'boolean') return reply ? '(true)' : '(false)'
  if (typeof reply === 'string' || isBinary(reply)) return `"${quotedInside(reply)}"`
  if (Array.isArray(reply) || reply.push) return many(items(reply), indent, ')', asCli, 'array')
  if (reply.map) return many(reply.map, indent, '#', ([name, value], deep) => `${asCli(name, deep)} => ${asCli(value, deep)}`, 'hash')
  if (reply.set) return many(reply.set, indent, '~', asCli, 'set')
  if (reply.integer !== undefined) return `(integer) ${reply.integer}`
  if (reply.double !== undefined) return `(double) ${reply.double}`
  if (reply.error !== undefined) return `(error) ${reply.error}`
  if (reply.cut !== undefined) return `${asCli(reply.cut, indent)}… (${size(reply.length)})`
  if (reply.elements !== undefined) return `(${count(reply.elements)} elements)`
  if (reply.lines !== undefined) return reply.lines
  return textOf(reply)
}

const quotedInside = (/** @type {Word} */ word) => {
  const text = quoted(word)
  return text.startsWith('"') && text.endsWith('"') && text.length > 1 ? text.slice(1, -1) : text
}

/**
 * @template T
 * @param {T[]} list @param {string} indent @param {string} mark
 * @param {(item: T, indent: string) => string} show @param {string} kind
 */
function many(list, indent, mark, show, kind) {
  if (!list.length) return `(empty ${kind})`
  const width = String(list.length).length
  const deep = indent + ' '.repeat(width + 2)
  const lines = list.map((item, at) => `${String(at + 1).padStart(width)}${mark} ${show(item, deep)}`)
  return lines.join(`\n${indent}`)
}

/** A reply as JSON without the marks of its types. @param {Reply} reply @returns {any} */
export function plain(reply) {
  if (reply === null || typeof reply !== 'object') return reply
  if (Array.isArray(reply)) return reply.map(plain)
  if (reply.map) return Object.fromEntries(reply.map.map((/** @type {any} */ [name, value]) => [textOf(name), plain(value)]))
  if (reply.set || reply.push) return items(reply).map(plain)
  if (reply.integer !== undefined) return Number.isSafeInteger(Number(reply.integer)) ? Number(reply.integer) : reply.integer
  if (reply.double !== undefined) return Number.isFinite(Number(reply.double)) ? Number(reply.double) : reply.double
  if (reply.status !== undefined) return reply.status
  return reply.text ?? reply
}

/**
 * Parts of a list, each of which weighs at most so much, unless one item alone weighs more.
 * @template T
 * @param {T[]} all @param {(item: T) => number} weigh @param {number} most @returns {T[][]}
 */
export function parts(all, weigh, most) {
  const found = /** @type {T[][]} */ ([])
  let left = 0
  for (const item of all) {
    const weight = weigh(item)
    if (!found.length || weight > left) {
      found.push([])
      left = most
    }
    found[found.length - 1].push(item)
    left -= weight
  }
  return found
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A number of bytes: `1.5 KiB`. @param {number} bytes */
export function size(bytes) {
  let value = bytes
  let unit = 0
  for (; value >= 1024 && unit < UNITS.length - 1; unit += 1) value /= 1024
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`
}

/** A number with its thousands apart. @param {number} value */
export const count = value => (Number.isFinite(value) ? value.toLocaleString('en') : '–')

/** A time that passes, by its two largest units: `2 h 5 min`. @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.ceil(ms))} ms`
  const seconds = Math.floor(ms / 1000)
  if (seconds < 10) return `${(ms / 1000).toFixed(1)} s`
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
  return `${count(Math.floor(seconds / 86_400))} d ${Math.floor((seconds % 86_400) / 3600)} h`
}

/** A duration of a command. @param {number} microseconds */
export function brief(microseconds) {
  if (!(microseconds >= 1000)) return `${Math.round(microseconds)} µs`
  if (microseconds < 1e6) return `${(microseconds / 1000).toFixed(microseconds < 1e4 ? 1 : 0)} ms`
  return `${(microseconds / 1e6).toFixed(1)} s`
}

/** A moment in UTC, as the server counts: `2026-11-25 18:30:00`. @param {number} ms */
export function moment(ms, isShort = false) {
  const date = new Date(ms)
  if (!Number.isFinite(date.getTime())) return String(ms)
  const text = date.toISOString()
  return isShort ? text.slice(11, 23) : `${text.slice(0, -14)} ${text.slice(-13, -5)}`
}
