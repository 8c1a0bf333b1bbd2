'use strict'
// What the methods take, as the words of DUNLIN's commands.

// Those that are there now: a test may replace them to move a clock of its own.
const { clearTimeout, setTimeout } = globalThis

const UNITS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000, seconds: 1_000, milliseconds: 1 }

/** Milliseconds of a number of them, or of an object such as { hours: 1, minutes: 30 }. */
function milliseconds(duration) {
  if (typeof duration === 'number') return duration
  let sum = 0
  for (const [unit, count] of Object.entries(duration)) {
    if (!UNITS[unit]) throw new TypeError(`dunlin: a duration has ${Object.keys(UNITS).join(', ')}, but not ${unit}`)
    sum += UNITS[unit] * count
  }
  return Math.round(sum)
}

const WORLD_OPTIONS = ['seed', 'journal', 'strict', 'load']

/** Refuses options whose names are not there. */
function known(given, names) {
  for (const name of Object.keys(given ?? {})) {
    if (!names.includes(name)) throw new TypeError(`dunlin: there are the options ${names.join(', ')}, but not ${name}`)
  }
}

/** The seed that the variable DUNLIN_SEED has, if it is set. */
function seedOfVariable() {
  const given = process.env.DUNLIN_SEED
  if (!given) return undefined
  if (/^-?\d+$/.test(given)) return given
  throw new Error(`dunlin: the variable DUNLIN_SEED is '${given}', but a seed is a whole number`)
}

/** The words of the options that are there, in the order of their names. */
function options(given, names) {
  known(given, names)
  const words = []
  for (const name of names) {
    if (given[name] === undefined || given[name] === false) continue
    words.push(name.toUpperCase(), ...(given[name] === true ? [] : [given[name]]))
  }
  return words
}

const filter = given => options(given, ['command', 'key', 'client', 'errors', 'redirected'])

/** An expectation and its filter, such as { exactly: 1, command: 'HSET' }. */
function expectation({ none, exactly, atMost, atLeast, ...rest }) {
  const kinds = { NONE: none, EXACTLY: exactly, 'AT-MOST': atMost, 'AT-LEAST': atLeast }
  const given = Object.entries(kinds).filter(([, count]) => count !== undefined && count !== false)
  if (given.length !== 1) throw new TypeError('dunlin: expect takes one of none, exactly, atMost and atLeast')
  const [kind, count] = given[0]
  return [kind, ...(count === true ? [] : [count]), ...filter(rest)]
}

/** Objects from the maps of RESP2, which are arrays of keys and values; `unix-time` becomes `unixTime`. */
function objects(maps) {
  const camelCase = name => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase())
  return maps.map(map => {
    const object = {}
    for (let at = 0; at < map.length; at += 2) object[camelCase(map[at])] = map[at + 1]
    return object
  })
}

/** What the server has found becomes an assertion's error; a mistake in the call stays what it is. */
async function asserted(reply, found) {
  try {
    await reply
  } catch (error) {
    if (!found.test(error.message)) throw error
    const { AssertionError } = require('node:assert') // takes milliseconds to load, which most runs need not pay
    throw new AssertionError({ message: error.message.replace(/^ERR /, ''), stackStartFn: asserted })
  }
}

/** What a promise brings, or an error after some milliseconds of real time. */
async function within(patience, promise, text) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`dunlin: ${text}`)), patience)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

module.exports = {
  asserted,
  expectation,
  filter,
  known,
  milliseconds,
  objects,
  options,
  seedOfVariable,
  within,
  WORLD_OPTIONS
}
