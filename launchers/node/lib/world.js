'use strict'
// A world: a private server behind the port of another, with its own data, clock, settings and journal. The connection
// here keeps a temporary world alive while the application has none.

const { locate } = require('./packages.js')
const { Refusal, named, unread } = require('./connection.js')
const { asserted, expectation, filter, milliseconds, objects, options, seedOfVariable, within } = require('./words.js')

const WAIT_MS = 5_000
const LEAVE_MS = 1_000
const SHOWN_COMMANDS = 20

// Names are never used twice on a server, whatever processes make worlds there. The module node:crypto would take
// longer to load than a world takes.
const { floor, random } = Math
const PREFIX = `test-${hex(process.hrtime()[1], 8)}${hex(floor(random() * 2 ** 32), 8)}`
let opened = 0

function hex(number, digits) {
  return number.toString(16).padStart(digits, '0')
}

class World {
  #connection
  #clients = []
  #waits = new Set()
  #port
  #dropped
  #reconnecting

  /** Enters a new world of the server of that pool, or its default world if `name` is null. */
  static async open(pool, name = `${PREFIX}-${++opened}`, given = {}) {
    const world = new this(pool, name)
    await world.#enter(given)
    return world
  }

  constructor(pool, name) {
    this.pool = pool
    this.host = pool.address.host
    this.name = name ?? 'default'
    this.journal = new Journal(this)
    this.strict = new Strict(this)
  }

  async #enter({ journal = true, seed = seedOfVariable() ?? floor(random() * 2 ** 32), strict, load }) {
    this.lastSeed = String(seed)
    const commands = [...this.#entrance, ['DUNLIN', 'SEED', seed]]
    if (journal) commands.push(['DUNLIN', 'JOURNAL', 'START'])
    this.#connection = await this.pool.enter(commands)
    try {
      // Not before: where nobody may enter the world, these would change the default one.
      const levels = typeof strict === 'string' ? { all: strict } : (strict ?? {})
      const settings = Object.entries(levels).map(([rule, level]) => this.strict.set(rule, level))
      if (load || settings.length > 0) await Promise.all([load && this.load(load), ...settings])
    } catch (error) {
      this.#connection.close()
      throw error
    }
  }

  get #entrance() {
    return this.isDefault ? [] : [['DUNLIN', 'WORLD', this.name, 'TEMPORARY']]
  }

  get isDefault() {
    return this.name === 'default'
  }

  /** What an application connects to. Its user name leads into this world. */
  get url() {
    const { address, password } = this.pool
    const secret = encodeURIComponent(password || 'any')
    const login = this.isDefault ? (password ? `:${secret}@` : '') : `temporary-world.${this.name}:${secret}@`
    if (address.port === undefined) return `unix://${login}${encodeURIComponent(address.socket).replaceAll('%2F', '/')}`
    return `redis://${login}${address.host}:${address.port}`
  }

  /** The host, and a port whose clients are in this world without a user name, until it is dropped. */
  async listen() {
    this.#port ??= this.isDefault ? this.pool.address.port : this.dunlin('LISTEN', this.name)
    return { host: this.host, port: await this.#port }
  }

  /** The reply to any command in this world. */
  async call(...words) {
    if (this.#dropped) throw new Error(`dunlin: no reply to ${named(words)}, as ${this.#whatIsDropped}`)
    if (!this.#connection.isOpen) await this.#reconnect(this.#connection)
    const connection = this.#connection
    try {
      return await connection.call(words)
    } catch (error) {
      if (!error.isUnread || this.#dropped) throw error
      await this.#reconnect(connection)
      return this.#connection.call(words)
    }
  }

  get #whatIsDropped() {
    return this.isDefault ? 'the server has been stopped' : `the world ${this.name} has been dropped`
  }

  /** Enters this world again, on another connection than one that has ended; once for all calls that it has failed. */
  async #reconnect(lost) {
    if (this.#connection !== lost) return
    this.#reconnecting ??= within(LEAVE_MS, this.#enterAgain(), 'the server does not let in')
    try {
      this.#connection = await this.#reconnecting
    } finally {
      this.#reconnecting = undefined
    }
  }

  async #enterAgain() {
    const connection = await this.pool.open()
    try {
      const worlds = objects(await connection.call(['DUNLIN', 'WORLDS']))
      // Entering would make an empty one of its name.
      const isThere = worlds.some(({ name }) => name === this.name)
      if (!isThere) throw unread(`the world ${this.name} has ended with its last connection`)
      if (!this.isDefault) await connection.send(this.#entrance)
      return connection
    } catch (error) {
      connection.close()
      throw error
    }
  }

  dunlin(...words) {
    return this.call('DUNLIN', ...words)
  }

  /** A client of the package ioredis, which ends with this world. */
  client(given = {}) {
    if (this.#dropped) throw new Error(`dunlin: there is no client, as ${this.#whatIsDropped}`)
    const file = locate('ioredis')
    if (!file) {
      throw new Error(
        `dunlin: client() needs the package ioredis, which is not found from ${process.cwd()}; ` +
          "run 'npm install --save-dev ioredis' there, or give the url to the client that you have"
      )
    }
    const Redis = require(file)
    const client = new (Redis.default ?? Redis)(this.url, given)
    this.#clients.push(client)
    return client
  }

  // The clock.
  advance = async duration => new Date(await this.dunlin('ADVANCE', milliseconds(duration)))
  now = () => this.advance(0)
  freeze = async () => new Date(await this.dunlin('FREEZE'))
  setTime = async time => new Date(await this.dunlin('SET-TIME', Number(time)))
  resume = () => this.#done('RESUME')
  setSpeed = factor => this.#done('SPEED', factor)
  /** The moment to which the clock was moved, or null if nothing is due. */
  async advanceToNext() {
    const time = await this.dunlin('ADVANCE-TO-NEXT')
    return time === null ? null : new Date(time)
  }

  async seed(seed) {
    await this.dunlin('SEED', seed)
    this.lastSeed = String(seed)
  }

  // State.
  snapshot = name => this.#done('SNAPSHOT', name)
  rollback = name => this.#done('ROLLBACK', name)
  dropSnapshot = name => this.#done('DROP-SNAPSHOT', name)
  snapshots = () => this.dunlin('SNAPSHOTS')
  load = text => this.#done('LOAD', text)
  dump = () => this.dunlin('DUMP')
  /** The lines that differ from a text or from another world; empty if none does. */
  diff = other => (other instanceof World ? this.dunlin('DIFF', 'WORLD', other.name) : this.dunlin('DIFF', other))
  makeTemplate = () => this.#done('TEMPLATE')
  dropTemplate = () => this.#done('DROP-TEMPLATE')

  // Faults.
  /** A rule by its name and what it matches; the method that is called on it says how the commands fail. */
  fault(name, given = {}) {
    const words = ['FAULT', 'ADD', name, ...options(given, ['command', 'key', 'client', 'nth', 'times', 'percent'])]
    const fails = (...failure) => this.#done(...words, ...failure)
    return {
      delay: duration => fails('DELAY', milliseconds(duration)),
      error: text => fails('ERROR', text),
      dropBefore: () => fails('DROP-BEFORE'),
      dropAfter: () => fails('DROP-AFTER'),
      halfReply: () => fails('HALF-REPLY'),
      splitReply: () => fails('SPLIT-REPLY'),
      silence: () => fails('SILENCE'),
      loading: () => fails('LOADING'),
      busy: () => fails('BUSY'),
      readonly: () => fails('READONLY'),
      oom: () => fails('OOM'),
      masterdown: () => fails('MASTERDOWN'),
      moved: (slot, node) => fails('MOVED', slot, node),
      ask: (slot, node) => fails('ASK', slot, node),
      clusterdown: () => fails('CLUSTERDOWN'),
      tryagain: () => fails('TRYAGAIN'),
      crossslot: () => fails('CROSSSLOT')
    }
  }
  faults = async () => objects(await this.dunlin('FAULT', 'LIST'))
  removeFault = name => this.#done('FAULT', 'REMOVE', name)
  clearFaults = () => this.#done('FAULT', 'CLEAR')

  // Waits. Each has a connection of its own, so that the clock can be moved meanwhile.
  waitUntilBlocked = (key, { clients = 1, timeout } = {}) => this.#wait(timeout, 'BLOCKED', key, clients)
  waitForSubscribers = (channel, count = 1, { timeout } = {}) => this.#wait(timeout, 'SUBSCRIBERS', channel, count)
  waitForCommands = (count, { timeout, ...given } = {}) => this.#wait(timeout, 'JOURNAL', count, ...filter(given))
  waitUntilFired = (name, count = 1, { timeout } = {}) => this.#wait(timeout, 'FAULT', name, count)
  /** Waits until exactly so many clients are connected besides the connections of this object. */
  waitForClients = (count, { timeout } = {}) => this.#wait(timeout, 'CLIENTS', count + this.#ownClients)
  get #ownClients() {
    return 1 + this.#waits.size + (this.isDefault ? this.pool.size : 0)
  }

  async #wait(timeout, ...words) {
    const patience = timeout === undefined ? WAIT_MS : milliseconds(timeout)
    if (this.#dropped) throw new Error(`dunlin: no wait for ${words.join(' ')}, as ${this.#whatIsDropped}`)
    const opened = Promise.resolve(this.pool.open())
    this.#waits.add(opened)
    const wait = opened.then(connection => connection.send([...this.#entrance, ['DUNLIN', 'WAIT', ...words]], Infinity))
    try {
      await within(patience, wait, `waited ${patience} ms in vain for ${words.join(' ')} in the world ${this.name}`)
    } finally {
      this.#waits.delete(opened)
      opened.then(connection => connection.close(), () => {})
    }
  }

  /** What helps to understand a test that has failed: the seed, the last commands, and the findings. */
  async report() {
    const commands = await this.journal.list().catch(() => []) // there may be no journal
    const findings = await this.strict.findings()
    const shown = commands.slice(-SHOWN_COMMANDS)
    const line = ({ client, command, reply }) => `  client ${client}: ${command.join(' ')} -> ${reply ?? '(blocked)'}`
    return [
      `dunlin: the seed was ${this.lastSeed} (DUNLIN_SEED=${this.lastSeed} repeats it), the world ${this.name}`,
      `the last ${shown.length} of ${commands.length} commands:`,
      ...shown.map(line),
      ...findings.map(({ rule, text }) => `  strict ${rule}: ${text}`)
    ].join('\n')
  }

  get isConnected() {
    return this.#connection.isOpen
  }

  get isDropped() {
    return this.#dropped !== undefined
  }

  /** Ends this world and its connections. */
  drop() {
    return (this.#dropped ??= this.#drop())
  }

  async #drop() {
    for (const client of this.#clients) client.disconnect()
    if (this.isDefault) this.#connection.close()
    else await this.#leave()
  }

  /** Drops the world; the connection serves the next one, as if nobody had used it. */
  async #leave() {
    const leaving = [['DUNLIN', 'WORLD', 'default'], ['RESET'], ...this.pool.login]
    const drop = ['DUNLIN', 'DROP-WORLD', this.name]
    // Replies may be missing, as after CLIENT REPLY OFF.
    const replies = await this.#connection.exchange([...leaving, drop], LEAVE_MS).catch(() => [])
    // A world whose last client has left is gone before it is dropped, so that may be refused.
    if (replies[0] === 'OK' && !replies.slice(0, -1).some(reply => reply instanceof Refusal)) {
      this.pool.give(this.#connection)
      return
    }
    this.#connection.close()
    await this.#dropFromOutside(drop).catch(() => {}) // the server may have ended
  }

  async #dropFromOutside(drop) {
    const connection = await within(LEAVE_MS, this.pool.take(), 'the server does not let in')
    await connection.call(drop, LEAVE_MS).catch(() => {}) // the world may be gone
    if (connection.isOpen) this.pool.give(connection)
  }

  async #done(...words) {
    await this.dunlin(...words)
  }

  [Symbol.asyncDispose]() {
    return this.drop()
  }
}

/** What the clients of a world have sent. */
class Journal {
  #world

  constructor(world) {
    this.#world = world
  }

  #call = (...words) => this.#world.dunlin('JOURNAL', ...words)
  #done = async (...words) => void (await this.#call(...words))
  start = (...count) => this.#done('START', ...count)
  stop = () => this.#done('STOP')
  clear = () => this.#done('CLEAR')
  list = async (given = {}) => objects(await this.#call('LIST', ...filter(given)))
  count = (given = {}) => this.#call('COUNT', ...filter(given))
  export = () => this.#call('EXPORT')
  /** Fails as an assertion unless there are as many commands as expected; the error lists them. */
  expect = async given => asserted(this.#call('EXPECT', ...expectation(given)), /^ERR expected /)
}

/** The rules that find what would break in production. */
class Strict {
  #world

  constructor(world) {
    this.#world = world
  }

  #call = (...words) => this.#world.dunlin('STRICT', ...words)
  #done = async (...words) => void (await this.#call(...words))
  rules = async () => objects(await this.#call())
  set = (rule, level, given = {}) => this.#done('SET', rule, level, ...options(given, ['limit']))
  allow = (rule, pattern) => this.#done('ALLOW', rule, pattern)
  findings = async () => objects(await this.#call('FINDINGS'))
  clear = () => this.#done('CLEAR')
  /** Fails as an assertion if there are findings of rules whose level is error. */
  check = async () => asserted(this.#call('CHECK'), /^ERR strict mode found/)
}

module.exports = { World }
