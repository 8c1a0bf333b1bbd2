/**
 * A command as a line of each launcher, so that what was clicked can be pasted into a test. Commands of the test kit
 * are written as the launcher's methods where it has one; all others by its `call`. Where a language has no short way
 * to write bytes that are no text, it has no line.
 */
import { bytesOf, isBinary, line } from './words.js'

/** @typedef {import('./words.js').Word} Word */
/** @typedef {{Python?: string, 'Node.js'?: string, Java?: string, Go?: string, Rust?: string}} Lines */

export const LANGUAGES = ['redis-cli', 'Python', 'Node.js', 'Java', 'Go', 'Rust']

const text = (/** @type {Word} */ word) => JSON.stringify(word)
const single = (/** @type {Word} */ word) => `'${text(word).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
const list = (/** @type {Word[]} */ words, quote = text) => words.map(quote).join(', ')

/** Rust and Go have other escapes for control characters than JSON. */
const rust = (/** @type {Word} */ word) => text(word).replace(/\\u([0-9a-f]{4})/g, '\\u{$1}').replace(/\\([bf])/g, (_, letter) => `\\x0${letter === 'b' ? 8 : 'c'}`)

const bytesIn = (/** @type {Word} */ word) => Array.from(bytesOf(word), byte => `\\x${byte.toString(16).padStart(2, '0')}`).join('')

/** What has no argument, by its name in each language. */
const BARE = /** @type {Record<string, string[]>} */ ({
  FREEZE: ['freeze()', 'freeze()', 'freeze()', 'Freeze()', 'freeze()'],
  RESUME: ['resume()', 'resume()', 'resume()', 'Resume()', 'resume()'],
  'ADVANCE-TO-NEXT': ['advance_to_next()', 'advanceToNext()', 'advanceToNext()', 'AdvanceToNext()', 'advance_to_next()'],
  TEMPLATE: ['make_template()', 'makeTemplate()', 'makeTemplate()', '', 'make_template()'],
  DUMP: ['dump()', 'dump()', 'dump()', 'Dump()', 'dump()'],
})

/** What takes one text. */
const NAMED = /** @type {Record<string, string[]>} */ ({
  SNAPSHOT: ['snapshot', 'snapshot', 'snapshot', 'Snapshot', 'snapshot'],
  ROLLBACK: ['rollback', 'rollback', 'rollback', 'Rollback', 'rollback'],
  'DROP-SNAPSHOT': ['drop_snapshot', 'dropSnapshot', 'dropSnapshot', '', 'drop_snapshot'],
  'FAULT REMOVE': ['remove_fault', 'removeFault', 'removeFault', 'RemoveFault', 'remove_fault'],
})

/** @param {string[]} calls a call for Python, Node.js, Java, Go and Rust; an empty one is left out @returns {Lines} */
function lines([python, node, java, go, rusty], fails = false) {
  return {
    Python: `dunlin.${python}`,
    'Node.js': `await dunlin.${node}`,
    Java: `dunlin.${java};`,
    ...(go && { Go: `dunlin.${go}` }),
    Rust: `server.${rusty}${fails ? '?' : ''};`,
  }
}

/** @param {string} name @param {Word[]} rest @returns {Lines | undefined} */
function ofKit(name, rest) {
  if (BARE[name] && !rest.length) return lines(BARE[name])
  const names = NAMED[name] ?? NAMED[`${name} ${rest[0]}`]
  const argument = rest[rest.length - 1]
  if (names && typeof argument === 'string') {
    const calls = names.map((each, at) => each && `${each}(${[text, single, text, text, rust][at](argument)})`)
    return lines(calls, ['ROLLBACK', 'DROP-SNAPSHOT'].includes(name))
  }
  if (name === 'ADVANCE') {
    return lines([
      `advance(milliseconds=${argument})`, `advance(${argument})`, `advance(Duration.ofMillis(${argument}))`,
      `Advance(${argument} * time.Millisecond)`, `advance(Duration::from_millis(${argument}))`,
    ])
  }
  if (name === 'SPEED') {
    const factor = String(argument)
    const real = factor.includes('.') ? factor : `${factor}.0`
    return lines([`speed(${factor})`, `setSpeed(${factor})`, `speed(${factor})`, `Speed(${factor})`, `set_speed(${real})`])
  }
  return undefined
}

/** @param {Word[]} words @returns {Lines} */
function ofCall(words) {
  const python = words.map(word => (isBinary(word) ? `b"${bytesIn(word)}"` : text(word))).join(', ')
  const node = words.map(word => (isBinary(word) ? `Buffer.from('${word.base64}', 'base64')` : single(word))).join(', ')
  const go = words.map(word => (isBinary(word) ? `"${bytesIn(word)}"` : text(word))).join(', ')
  /** @type {Lines} */
  const all = { Python: `dunlin.call(${python})`, 'Node.js': `await dunlin.call(${node})`, Go: `dunlin.Call(${go})` }
  if (words.some(isBinary)) return all
  return { ...all, Java: `dunlin.call(${list(words)});`, Rust: `server.client()?.call([${list(words, rust)}])?;` }
}

/** The command in a language, or undefined where that would not be one short line. @param {Word[]} words */
export function lineIn(/** @type {string} */ language, words) {
  if (language === 'redis-cli') return line(words)
  const isKit = String(words[0]).toUpperCase() === 'DUNLIN' && words.length > 1
  const all = (isKit && ofKit(String(words[1]).toUpperCase(), words.slice(2))) || ofCall(words)
  return all[/** @type {keyof Lines} */ (language)]
}
