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

/** How each of the languages writes a text: Python, Node.js, Java, Go and Rust. */
const QUOTES = [text, single, text, text, rust]

/** `some-name` in the way of a language. @param {string} name */
const snake = name => name.toLowerCase().replaceAll('-', '_')
const camel = (/** @type {string} */ name) => name.toLowerCase().replace(/-(\w)/g, (_, letter) => letter.toUpperCase())
const pascal = (/** @type {string} */ name) => camel(name).replace(/^\w/, letter => letter.toUpperCase())

/** What has no argument, by its name in each language; an empty one is missing there. */
const BARE = /** @type {Record<string, string[]>} */ ({
  FREEZE: ['freeze()', 'freeze()', 'freeze()', 'Freeze()', 'freeze()'],
  RESUME: ['resume()', 'resume()', 'resume()', 'Resume()', 'resume()'],
  'ADVANCE-TO-NEXT': ['advance_to_next()', 'advanceToNext()', 'advanceToNext()', 'AdvanceToNext()', 'advance_to_next()'],
  TEMPLATE: ['make_template()', 'makeTemplate()', 'makeTemplate()', '', 'make_template()'],
  'DROP-TEMPLATE': ['drop_template()', 'dropTemplate()', 'dropTemplate()', '', 'drop_template()'],
  DUMP: ['dump()', 'dump()', 'dump()', 'Dump()', 'dump()'],
  'FAULT CLEAR': ['clear_faults()', 'clearFaults()', 'clearFaults()', 'ClearFaults()', 'clear_faults()'],
  'STRICT CLEAR': ['strict.clear()', 'strict.clear()', 'strict().clear()', 'ClearFindings()', 'strict().clear()'],
  'STRICT CHECK': ['strict.check()', 'strict.check()', 'strict().check()', '', 'strict().assert_none()'],
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
    ...(python && { Python: `dunlin.${python}` }),
    ...(node && { 'Node.js': `await dunlin.${node}` }),
    ...(java && { Java: `dunlin.${java};` }),
    ...(go && { Go: `dunlin.${go}` }),
    ...(rusty && { Rust: `server.${rusty}${fails ? '?' : ''};` }),
  }
}

/** A number of milliseconds as a duration of each language. @param {string} ms */
const durations = ms => [`milliseconds=${ms}`, ms, `Duration.ofMillis(${ms})`, `${ms} * time.Millisecond`, `Duration::from_millis(${ms})`]

/** SET-TIME, for the times that all languages can write. @param {string} ms */
function ofTime(ms) {
  const time = Number(ms)
  if (!(time >= 0 && time < 253_402_300_800_000)) return undefined
  const iso = new Date(time).toISOString()
  return lines([`set_time(datetime.fromisoformat("${iso.replace('Z', '+00:00')}"))`, `setTime(new Date('${iso}'))`, `setTime(Instant.parse("${iso}"))`,
    `SetTime(time.UnixMilli(${ms}))`, `set_time(UNIX_EPOCH + Duration::from_millis(${ms}))`])
}

const STATES = /** @type {Record<string, string>} */ ({ LOADING: 'Loading', BUSY: 'Busy', READONLY: 'ReadOnly', OOM: 'OutOfMemory', MASTERDOWN: 'MasterDown', CLUSTERDOWN: 'ClusterDown', TRYAGAIN: 'TryAgain', CROSSSLOT: 'CrossSlot' })

/** How commands fail, as the last method of each language. @param {string} failure @param {string[]} more */
function failureIn(failure, more) {
  const inGo = failure === 'OOM' ? failure : (STATES[failure] ?? pascal(failure))
  const all = [snake(failure), camel(failure), camel(failure), inGo]
  if (failure === 'DELAY') return [...all, 'delay'].map((name, at) => `${name}(${durations(more[0])[at]})`)
  if (failure === 'ERROR') return [...all, 'error'].map((name, at) => `${name}(${QUOTES[at](more[0])})`)
  if (failure === 'MOVED' || failure === 'ASK') {
    return [...all.map((name, at) => `${name}(${more[0]}, ${QUOTES[at](more[1])})`), `state(State::${pascal(failure)} { slot: ${more[0]}, node: ${rust(more[1])}.into() })`]
  }
  return [...all.map(name => `${name}()`), STATES[failure] ? `state(State::${STATES[failure]})` : `${snake(failure)}()`]
}

/** What a fault matches, by pairs of a word and its value, and where these end. @param {string[]} words */
function matchesIn(words) {
  const found = /** @type {[string, string][]} */ ([])
  let at = 0
  for (; /^(COMMAND|KEY|CLIENT|NTH|TIMES|PERCENT)$/.test(words[at]) && at + 1 < words.length; at += 2) found.push([words[at].toLowerCase(), words[at + 1]])
  return { found, failure: words[at], more: words.slice(at + 1) }
}

/** FAULT ADD for commands. @param {Word[]} words */
function ofFault([name, ...rest]) {
  if (isBinary(name) || rest.some(isBinary) || rest[0] === 'DISK') return undefined
  const { found, failure, more } = matchesIn(/** @type {string[]} */ (rest))
  const isNumber = (/** @type {string} */ match) => /^(nth|times|percent)$/.test(match)
  const value = (/** @type {[string, string]} */ [match, each], /** @type {number} */ at) => (isNumber(match) ? each : QUOTES[at](each))
  const fails = failureIn(failure, more)
  const [python, node] = [found.map(each => `, ${each[0]}=${value(each, 0)}`).join(''), found.map(each => `${each[0]}: ${value(each, 1)}`).join(', ')]
  const chain = (/** @type {number} */ at, /** @type {(match: string) => string} */ nameOf) => found.map(each => `.${nameOf(each[0])}(${each[0] === 'percent' && at === 4 ? real(each[1]) : value(each, at)})`).join('')
  return lines([`fault(${text(name)}${python}).${fails[0]}`, `fault(${single(name)}${node && `, { ${node} }`}).${fails[1]}`,
    `fault(${text(name)})${chain(2, match => match)}.${fails[2]}`, `Fault(${text(name)})${chain(3, pascal)}.${fails[3]}`, `fault(${rust(name)})${chain(4, match => match)}.${fails[4]}`])
}

/** A number as Rust writes one that is no integer. @param {string} factor */
const real = factor => (factor.includes('.') ? factor : `${factor}.0`)

/** STRICT SET and STRICT ALLOW: rules, and a level or a glob. @param {string} name @param {Word[]} words */
function ofStrict(name, [rule, argument]) {
  if (isBinary(argument) || isBinary(rule)) return undefined
  const isAll = rule === 'ALL'
  const inRust = /^(ALL|CLUSTER)$/.test(rule) ? '' : `Rule::${pascal(rule)}, `
  if (name === 'ALLOW') {
    return lines([`strict.allow(${text(argument)}${isAll ? '' : `, ${text(rule)}`})`, `strict.allow(${single(rule)}, ${single(argument)})`,
      `strict().allow(${text(rule)}, ${text(argument)})`, `StrictAllow(${text(rule)}, ${text(argument)})`, inRust && `strict().allow(${inRust}${rust(argument)})`])
  }
  const level = `Level::${pascal(argument)}`
  return lines([`strict.set(${text(argument)}${isAll ? '' : `, ${text(rule)}`})`, `strict.set(${single(rule)}, ${single(argument)})`,
    `strict().set(${isAll ? '' : `${text(rule)}, `}Level.${argument.toUpperCase()})`, `Strict(${text(rule)}, ${text(argument)})`,
    inRust ? `strict().set(${inRust}${level})` : `strict().set_${rule.toLowerCase()}(${level})`])
}

/** @param {string} name @param {Word[]} rest @returns {Lines | undefined} */
function ofKit(name, rest) {
  if (BARE[name] && !rest.length) return lines(BARE[name])
  const two = `${name} ${rest[0]}`
  if (BARE[two] && rest.length === 1) return lines(BARE[two])
  const argument = rest[rest.length - 1]
  if (isBinary(argument)) return undefined
  const names = NAMED[name] ?? NAMED[two]
  if (names) return lines(names.map((each, at) => each && `${each}(${QUOTES[at](argument)})`), ['ROLLBACK', 'DROP-SNAPSHOT'].includes(name))
  if (name === 'ADVANCE') return lines(['advance', 'advance', 'advance', 'Advance', 'advance'].map((each, at) => `${each}(${durations(argument)[at]})`))
  if (name === 'SPEED') return lines([`speed(${argument})`, `setSpeed(${argument})`, `speed(${argument})`, `Speed(${argument})`, `set_speed(${real(argument)})`])
  if (name === 'SET-TIME') return ofTime(argument)
  if (two === 'FAULT ADD') return ofFault(rest.slice(1))
  if (two === 'STRICT SET' || two === 'STRICT ALLOW') return ofStrict(String(rest[0]), rest.slice(1))
  return undefined
}

/** Enters a world: its connection would end with the call, so there is a line where a server has worlds by name. @param {Word} name @returns {Lines} */
function ofWorld(name) {
  if (isBinary(name)) return {}
  return { Python: `server.world(${text(name)})`, Java: `server.world(${text(name)});`, Rust: `server.world(${rust(name)})?;` }
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

/** Commands that are about the whole server, wherever they are sent. */
const ANYWHERE = /^(DUNLIN (WORLD|DROP-WORLD|DROP-TEMPLATE)|SHUTDOWN)\b/i

/**
 * The world and the database of a command, where these are not the usual ones and the command depends on them.
 * @param {Word[]} words @param {import('./link.js').Place} place
 */
function placeOf(words, { world, database }) {
  const first = line(words.slice(0, 2))
  if (ANYWHERE.test(first)) return []
  const isOfWorld = /^DUNLIN /i.test(first)
  return [...(world !== 'default' ? [['world', world]] : []), ...(database && !isOfWorld ? [['database', String(database)]] : [])]
}

/**
 * The command in a language, or undefined where that would not be one short line. For redis-cli lines go before it that
 * lead to its world and its database; in a language a comment names these, as there they are those of an object.
 * @param {string} language @param {Word[]} words @param {import('./link.js').Place} [place]
 */
export function lineIn(language, words, place = { world: 'default', database: 0 }) {
  const where = placeOf(words, place)
  if (language === 'redis-cli') return [...where.map(([kind, name]) => line(kind === 'world' ? ['DUNLIN', 'WORLD', name] : ['SELECT', name])), line(words)].join('\n')
  const subcommand = String(words[0]).toUpperCase() === 'DUNLIN' ? String(words[1]).toUpperCase() : ''
  const name = /** @type {keyof Lines} */ (language)
  const all = subcommand === 'WORLD' && words.length > 2 ? ofWorld(words[2]) : { ...ofCall(words), ...(subcommand && ofKit(subcommand, words.slice(2))) }
  const found = all[name]
  const comment = where.map(each => each.join(' ')).join(', ')
  return found && comment ? `${found}  ${language === 'Python' ? '#' : '//'} in ${comment}` : found
}
