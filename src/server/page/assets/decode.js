/**
 * What the bytes of a string may be: text, JSON, MessagePack, a pickle of Python, a counter, bits. Each reader takes
 * bytes of any kind and returns undefined for what it is not; none of them runs anything that it reads.
 */
import { bytesOf, isBinary, shown, wordOf } from './words.js'

/** @typedef {import('./words.js').Word} Word */

/** JSON with its lines indented; numbers stay as they are written. @param {Word} word */
export function json(word) {
  if (isBinary(word) || !/^\s*[[{"]/.test(word)) return undefined
  try {
    const value = JSON.parse(word)
    // Where a number would be rounded, what is stored is shown as it is.
    return /\d{16}/.test(word) ? word : JSON.stringify(value, null, 2)
  } catch {
    return undefined
  }
}

/**
 * A piece of a long string as text where it is one but for characters that the piece ends within: these are left out.
 * @param {Word} word @param {boolean} isFirst @param {boolean} isLast @returns {Word}
 */
export function pieceOf(word, isFirst, isLast) {
  if (!isBinary(word)) return word
  const bytes = bytesOf(word)
  const isInside = (/** @type {number} */ at) => (bytes[at] & 0xc0) === 0x80
  let from = 0
  while (!isFirst && from < 3 && isInside(from)) from += 1
  let start = bytes.length - 1
  while (start > bytes.length - 4 && isInside(start)) start -= 1
  const lead = bytes[start] ?? 0
  const width = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
  const isCut = !isLast && start + width > bytes.length
  const text = wordOf(bytes.subarray(from, isCut ? start : bytes.length))
  return isBinary(text) ? word : text
}

/** Whether a field for text keeps it as it is: of control characters it has place for tabs and line breaks alone. */
export const isEditable = (/** @type {Word} */ word) => typeof word === 'string' && !/[\0-\x08\x0b-\x1f]/.test(word)

/** Whether INCR takes it. @param {Word} word */
export const isCounter = word => typeof word === 'string' && /^(0|-?[1-9]\d{0,18})$/.test(word)

/** Bytes as rows of sixteen: their offset, their hexadecimal digits, and the letters among them. @param {Uint8Array} bytes */
export function hexRows(bytes, offset = 0) {
  const rows = []
  for (let at = 0; at < bytes.length; at += 16) {
    const part = bytes.subarray(at, at + 16)
    const digits = Array.from(part, byte => byte.toString(16).padStart(2, '0')).join(' ')
    const letters = Array.from(part, byte => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '·')).join('')
    rows.push(`${(offset + at).toString(16).padStart(8, '0')}  ${digits.padEnd(47)}  ${letters}`)
  }
  return rows.join('\n')
}

/** What the header of a pickle says, without loading it: that could run anything. @param {Uint8Array} bytes */
export function pickle(bytes) {
  if (bytes[0] !== 0x80 || bytes.length < 4 || bytes[1] < 2 || bytes[1] > 5 || bytes[bytes.length - 1] !== 0x2e) return undefined
  const names = new Set()
  const letters = Array.from(bytes, byte => String.fromCharCode(byte)).join('')
  for (const found of letters.matchAll(/c([\w.]+)\n(\w+)\n/g)) names.add(`${found[1]}.${found[2]}`)
  for (const found of letters.matchAll(/\x8c[\x01-\xff]([\w.]{2,})\x94\x8c[\x01-\xff](\w{2,})\x94\x93/g)) names.add(`${found[1]}.${found[2]}`)
  const classes = names.size ? [...names].join(', ') : 'none besides the built-in ones'
  return `Python pickle, protocol ${bytes[1]}, ${bytes.length} bytes\nclasses: ${classes}\n\nIts content is not loaded: a pickle can run code.`
}

/** The most items that are read of a MessagePack, and the most of its levels. */
const MOST_ITEMS = 100_000
const DEEPEST = 64

/** The value of a MessagePack map or array, as indented JSON. @param {Uint8Array} bytes */
export function messagePack(bytes) {
  const first = bytes[0]
  const isMany = (first >= 0x80 && first <= 0x9f) || (first >= 0xdc && first <= 0xdf)
  if (!isMany || bytes.length < 2) return undefined
  const reader = { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), at: 0, items: 0 }
  try {
    const value = unpack(reader, 0)
    return reader.at === bytes.length ? JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each), 2) : undefined
  } catch {
    return undefined
  }
}

/** @typedef {{bytes: Uint8Array, view: DataView, at: number, items: number}} Reader */

/** @param {Reader} reader @param {number} length */
function take(reader, length) {
  if (reader.at + length > reader.bytes.length) throw new RangeError('it ends too early')
  reader.at += length
  return reader.at - length
}

/** @param {Reader} reader @param {1 | 2 | 4} width */
function lengthOf(reader, width) {
  const at = take(reader, width)
  return width === 1 ? reader.view.getUint8(at) : width === 2 ? reader.view.getUint16(at) : reader.view.getUint32(at)
}

const textAt = (/** @type {Reader} */ reader, /** @type {number} */ length) => {
  const at = take(reader, length)
  return shown(wordOf(reader.bytes.subarray(at, at + length)), 1e6)
}

/** @param {Reader} reader @param {number} depth @returns {any} */
function unpack(reader, depth) {
  reader.items += 1
  if (depth > DEEPEST || reader.items > MOST_ITEMS) throw new RangeError('it is too much to show')
  const kind = reader.bytes[take(reader, 1)]
  if (kind < 0x80) return kind
  if (kind >= 0xe0) return kind - 256
  if (kind < 0x90) return mapOf(reader, kind & 15, depth)
  if (kind < 0xa0) return arrayOf(reader, kind & 15, depth)
  if (kind < 0xc0) return textAt(reader, kind & 31)
  return unpackWide(reader, kind, depth)
}

/** @param {Reader} reader @param {number} kind @param {number} depth */
function unpackWide(reader, kind, depth) {
  const { view } = reader
  const width = /** @type {1 | 2 | 4} */ (1 << (kind & 3))
  switch (kind) {
    case 0xc0: return null
    case 0xc2: return false
    case 0xc3: return true
    case 0xc4: case 0xc5: case 0xc6: return textAt(reader, lengthOf(reader, width))
    case 0xca: return view.getFloat32(take(reader, 4))
    case 0xcb: return view.getFloat64(take(reader, 8))
    case 0xcc: return view.getUint8(take(reader, 1))
    case 0xcd: return view.getUint16(take(reader, 2))
    case 0xce: return view.getUint32(take(reader, 4))
    case 0xcf: return view.getBigUint64(take(reader, 8))
    case 0xd0: return view.getInt8(take(reader, 1))
    case 0xd1: return view.getInt16(take(reader, 2))
    case 0xd2: return view.getInt32(take(reader, 4))
    case 0xd3: return view.getBigInt64(take(reader, 8))
    case 0xd9: return textAt(reader, lengthOf(reader, 1))
    case 0xda: return textAt(reader, lengthOf(reader, 2))
    case 0xdb: return textAt(reader, lengthOf(reader, 4))
    case 0xdc: return arrayOf(reader, lengthOf(reader, 2), depth)
    case 0xdd: return arrayOf(reader, lengthOf(reader, 4), depth)
    case 0xde: return mapOf(reader, lengthOf(reader, 2), depth)
    case 0xdf: return mapOf(reader, lengthOf(reader, 4), depth)
    default: throw new RangeError('an extension')
  }
}

/** @param {Reader} reader @param {number} length @param {number} depth */
function arrayOf(reader, length, depth) {
  const list = []
  for (let at = 0; at < length; at += 1) list.push(unpack(reader, depth + 1))
  return list
}

/** @param {Reader} reader @param {number} length @param {number} depth */
function mapOf(reader, length, depth) {
  const pairs = []
  for (let at = 0; at < length; at += 1) pairs.push([String(unpack(reader, depth + 1)), unpack(reader, depth + 1)])
  return Object.fromEntries(pairs)
}

/** Whether bytes begin as a HyperLogLog of Redis does: HYLL. @param {Uint8Array} bytes */
export const isHyperLogLog = bytes => bytes[0] === 72 && bytes[1] === 89 && bytes[2] === 76 && bytes[3] === 76

/** The number of bits that are 1. @param {Uint8Array} bytes */
export function bitsIn(bytes) {
  let sum = 0
  for (let byte of bytes) for (; byte; byte &= byte - 1) sum += 1
  return sum
}

/** The ways to show bytes, the best one first. @param {Word} word @param {boolean} isWhole */
export function waysFor(word, isWhole) {
  const bytes = bytesOf(word)
  const ways = []
  if (isWhole && isCounter(word)) ways.push('Counter')
  if (isWhole && json(word) !== undefined) ways.push('JSON')
  if (isWhole && isBinary(word) && messagePack(bytes) !== undefined) ways.push('MessagePack')
  if (isWhole && pickle(bytes) !== undefined) ways.push('Pickle')
  if (isHyperLogLog(bytes)) ways.push('HyperLogLog')
  const isText = !isBinary(word) && !/[\0-\x08\x0e-\x1f]/.test(word)
  return [...ways, ...(isText ? ['Text', 'Hex', 'Bits'] : ['Bits', 'Hex', ...(isBinary(word) ? [] : ['Text'])])]
}
