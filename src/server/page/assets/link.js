/**
 * What the page knows of its server: commands by POST /command, events by GET /stream, the clock, the world and the
 * database that are looked at.
 *
 * The token comes in the address after `#`, which no server and no other site sees, and stays in this tab. The stream
 * is read by `fetch`, since EventSource cannot send a header; a stream that breaks off is opened again.
 */
import { batch, computed, signal } from './vendor/preact.js'
import { errorOf, line } from './words.js'

/** @typedef {import('./words.js').Word} Word */
/** @typedef {import('./words.js').Reply} Reply */
/** Where a command runs. @typedef {{world: string, database: number}} Place */

const kept = (/** @type {string} */ name) => sessionStorage.getItem(`dunlin.${name}`)
const keep = (/** @type {string} */ name, /** @type {string} */ value) => sessionStorage.setItem(`dunlin.${name}`, value)

/** Takes the token that the address has, and returns whether it has one. */
function takeToken() {
  const inAddress = new URLSearchParams(location.hash.slice(1)).get('token')
  if (!inAddress) return false
  keep('token', inAddress)
  history.replaceState(null, '', `${location.pathname}#feed`)
  return true
}
takeToken()

export const world = signal(kept('world') ?? 'default')
export const database = signal(Number(kept('database') ?? 0))
/** Whether the stream is open: 'opening', 'open' or 'lost'. */
export const stream = signal('opening')
/** A sentence on why the server gives no stream; empty where it gives one, or does not say. */
export const refusal = signal('')
/** A sentence on why the server does not answer; empty if it does. */
export const trouble = signal('')
/** Whether a user and a password are needed first. */
export const mustLogIn = signal(false)
/** The command that the strip at the foot shows, and what became of it. */
export const command = signal(/** @type {{words: Word[], place: Place, reply?: Reply, isSent: boolean} | null} */ (null))
/** Counts what may have changed the data, so that views know when to ask again. */
export const changes = signal(0)
/** Counts changes of keys that the view does not show. */
export const otherChanges = signal(0)
/** Whether the server has the test kit; undefined before anything was asked of it. */
export const hasKit = signal(/** @type {boolean | undefined} */ (undefined))

let login = kept('login')

/** @param {string} user @param {string} password */
export function logIn(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`)
  login = btoa(String.fromCharCode(...bytes))
  keep('login', login)
  batch(() => {
    mustLogIn.value = false
    changes.value += 1
  })
  openStream()
}

/**
 * Asks for a user and a password, after an answer to a request that was sent with a login. An answer that comes after
 * another login tells nothing about that one.
 * @param {string | null} sentWith
 */
function askForLogin(sentWith) {
  if (sentWith === login) mustLogIn.value = true
}

function headers() {
  return { 'X-Dunlin': kept('token') ?? 'none', ...(login && { Authorization: `Basic ${login}` }) }
}

/** Goes to a world, and a database in it. */
export function enter(/** @type {string} */ name, index = 0) {
  batch(() => {
    world.value = name
    database.value = index
    changes.value += 1
  })
  keep('world', name)
  keep('database', String(index))
  openStream()
}

/** The most bytes of a string in a row of a view: more than a row shows, and than is edited there. */
export const ROW_BYTES = 16_384

/**
 * Sends commands in one batch, and returns their replies. An error of the server is a reply; that the server cannot be
 * reached is one too, for each of the commands, so that no view has to treat it apart. Strings of more than `cut` bytes
 * come without their end.
 * @param {Word[][]} commands @param {number} [cut] @returns {Promise<Reply[]>}
 */
export async function send(commands, cut) {
  const failed = (/** @type {string} */ why) => {
    trouble.value = why
    return commands.map(() => ({ error: why }))
  }
  const sentWith = login
  try {
    const answer = await fetch('/command', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers() },
      body: JSON.stringify({ world: world.value, database: database.value, cut, commands }),
    })
    if (answer.status === 401) {
      askForLogin(sentWith)
      return failed('A user and a password are needed.')
    }
    if (answer.status === 404 && world.value !== 'default') {
      enter('default')
      return failed('This world has ended.')
    }
    const body = await answer.json()
    if (!answer.ok) return failed(body.error ?? `The server answers ${answer.status}.`)
    trouble.value = ''
    for (const [at, reply] of body.replies.entries()) learn(commands[at], reply)
    return body.replies
  } catch {
    return failed('The server cannot be reached.')
  }
}

/** Sends one command. @param {...(Word | number)} words @returns {Promise<Reply>} */
export const ask = async (...words) => (await send([words.map(word => (typeof word === 'number' ? String(word) : word))]))[0]

/** What is counted soon. */
const due = new Set(/** @type {import('./vendor/preact.js').Signal<number>[]} */ ([]))

/** Makes those look again soon who do at a count: changed names come ten times a second, and they look five times. */
export function lookSoon(counted = changes) {
  if (due.has(counted)) return
  due.add(counted)
  setTimeout(() => {
    due.delete(counted)
    counted.value += 1
  }, 200)
}

/** Shows a command in the strip, with its reply if it was sent. @param {Word[]} words @param {Reply} [reply] */
export function showCommand(words, reply, place = { world: world.value, database: database.value }) {
  command.value = { words, place, reply, isSent: reply !== undefined }
}

/** Sends a command that a person asked for: the strip shows it, and views look again. @param {Word[]} words */
export async function act(words) {
  const place = { world: world.value, database: database.value }
  showCommand(words, undefined, place)
  const reply = await ask(...words)
  batch(() => {
    showCommand(words, reply, place)
    changes.value += 1
  })
  return reply
}

/** What a reply tells about the server besides. @param {Word[]} words @param {Reply} reply */
function learn(words, reply) {
  if (String(words[0]).toUpperCase() !== 'DUNLIN') return
  hasKit.value = !errorOf(reply)?.startsWith('ERR unknown command')
}

/** The server's clock: its time when the page's own showed `since`. */
export const clock = signal({ time: NaN, since: 0, isFrozen: false, speed: 1 })
const tick = signal(0)

/** The server's time in milliseconds; what reads it is drawn anew as it passes. */
export const now = computed(() => {
  const { time, since, isFrozen, speed } = clock.value
  return isFrozen ? time : time + Math.max(0, tick.value - since) * speed
})

/** @param {number} time @param {boolean} isFrozen @param {number} speed */
function setClock(time, isFrozen, speed) {
  if (!Number.isFinite(time)) return
  batch(() => {
    tick.value = performance.now()
    clock.value = { time, since: tick.value, isFrozen, speed }
  })
}

const isStill = matchMedia('(prefers-reduced-motion: reduce)')
setInterval(() => {
  if (!document.hidden && !clock.value.isFrozen) tick.value = performance.now()
}, isStill.matches ? 1000 : 250)

/** Asks for the time, where no stream tells it. */
export async function readClock() {
  const reply = await ask('TIME')
  if (Array.isArray(reply)) setClock(Number(reply[0]) * 1000 + Number(reply[1]) / 1000, clock.value.isFrozen, clock.value.speed)
}

/** @typedef {(name: string, data: any) => void} Listener */
const listeners = new Set(/** @type {Listener[]} */ ([]))

/** Calls back for each event of the stream, until the returned function is called. @param {Listener} listener */
export function listen(listener) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** What the stream leaves out, as the parameters of its address. */
let filter = new URLSearchParams()
let current = new AbortController()
let retries = 0
/** Whether the stream was open and broke off since. */
let isAway = false

// The address of a server that was started anew, opened in the same tab.
addEventListener('hashchange', () => {
  if (!takeToken()) return
  changes.value += 1
  openStream()
})

/** Opens the stream anew with other filters. */
export function filterStream(/** @type {URLSearchParams} */ parameters) {
  if (String(parameters) === String(filter)) return
  filter = parameters
  openStream()
}

/** Opens the one stream of this page, instead of an earlier one. */
export async function openStream() {
  current.abort()
  const mine = (current = new AbortController())
  stream.value = 'opening'
  try {
    await readStream(mine)
  } catch {
    // It broke off, or could not be opened: both are what follows.
  }
  if (mine.signal.aborted) return
  isAway ||= stream.value === 'open'
  stream.value = 'lost'
  retries = Math.min(retries + 1, 6)
  setTimeout(() => mine === current && openStream(), 100 * 2 ** retries)
}

/** @param {AbortController} mine */
async function readStream(mine) {
  const parameters = new URLSearchParams(filter)
  parameters.set('world', world.value)
  const sentWith = login
  const answer = await fetch(`/stream?${parameters}`, { headers: headers(), signal: mine.signal })
  if (answer.status === 401) askForLogin(sentWith)
  refusal.value = answer.ok ? '' : (await answer.json()).error
  if (!answer.ok || !answer.body) return
  stream.value = 'open'
  retries = 0
  trouble.value = ''
  if (isAway) tellAway()
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ; ) {
    const { value, done } = await reader.read()
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    batch(() => blocks.forEach(deliver))
  }
}

/** Tells those who listen that the stream is back, and what it would have told is missing: views look again. */
function tellAway() {
  isAway = false
  for (const listener of listeners) listener('away', {})
  changes.value += 1
}

/** Hands an event to those who listen. @param {string} block */
function deliver(block) {
  let name = 'message'
  let data = ''
  for (const row of block.split('\n')) {
    if (row.startsWith('event:')) name = row.slice(6).trim()
    else if (row.startsWith('data:')) data += row.slice(5)
  }
  if (!data) return
  const event = JSON.parse(data)
  if (name === 'clock') setClock(event.time, event.frozen, event.speed)
  for (const listener of listeners) listener(name, event)
}

/** A sentence for an error: what is missing, where that can be told. @param {string} error */
export function explain(error) {
  const right = /^NOPERM (?:User (\S+) has no permissions to run the '([^']+)' command)/.exec(error)
  if (right) return `The user ${right[1]} may not run ${right[2].toUpperCase()}: the right +${right[2]} is missing (ACL SETUSER ${right[1]} +${right[2]}).`
  if (/^NOPERM .*key/.test(error)) return 'This user may not use this key: a key pattern that fits it is missing (ACL SETUSER … ~pattern).'
  if (/^NOPERM .*channel/.test(error)) return 'This user may not use this channel: a pattern that fits it is missing (ACL SETUSER … &pattern).'
  if (/^NOPERM/.test(error)) return `A right is missing: ${error}`
  if (/^ERR unknown (sub)?command/.test(error)) return `This server does not have this command: ${error}`
  return error
}

/** Whether a command ends or exposes something, so that it needs a second click. @param {Word[]} words */
export function needsConfirmation(words) {
  const text = line(words.slice(0, 2)).toUpperCase()
  return /^(SHUTDOWN|FLUSHALL|FLUSHDB|DEBUG|CONFIG (SET|REWRITE)|ACL (SETUSER|DELUSER|LOAD)|DUNLIN (DROP-WORLD|LOAD)|MIGRATE|REPLICAOF|SLAVEOF|MODULE|CLUSTER (RESET|FAILOVER)|FAILOVER)\b/.test(text)
}
