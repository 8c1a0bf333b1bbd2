'use strict'
// The package: starts a server, or uses the one that DUNLIN_URL names, and makes worlds in it.

const { tmpdir } = require('node:os')
const path = require('node:path')
const { randomBytes } = require('node:crypto')
const { ReplyError } = require('./lib/connection.js')
const { findProgram, startProgram, stopProgram } = require('./lib/program.js')
const { World } = require('./lib/world.js')

/** Where the server of a URL is, and its password. `origin` is where the URL is from, for an error. */
function addressOf(url, origin) {
  try {
    const { protocol, hostname, port, password } = new URL(url)
    if (protocol === 'redis:' && hostname) {
      const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }
      return { address, password: decodeURIComponent(password) }
    }
  } catch {
    // It is no URL at all.
  }
  throw new Error(`dunlin: '${url}'${origin} is no address of a server; it should be like redis://127.0.0.1:6379`)
}

const OWN_SERVER = ['args', 'binary', 'port', 'socket']

/**
 * A server. It is a world, too: that of the clients that name none. On a server that runs already (DUNLIN_URL) it is a
 * world of its own there, so that nobody meets the others' data.
 */
class Dunlin extends World {
  #child
  #stopped
  /** A port whose clients are in this world; the process id and the Unix socket of a server that was started here. */
  port
  pid = null
  socket = null

  /** Starts a server, unless DUNLIN_URL names one and no option asks for a server of one's own. */
  static start(given = {}) {
    const isOwn = OWN_SERVER.some(name => given[name] !== undefined)
    if (process.env.DUNLIN_URL && !isOwn) return Dunlin.#join(process.env.DUNLIN_URL, given, ' (DUNLIN_URL)')
    return Dunlin.#launch(given)
  }

  static async #launch({ args = [], binary, port, socket, ...rest }) {
    const unixsocket = socket === true ? path.join(tmpdir(), `dunlin-${randomBytes(8).toString('hex')}.sock`) : socket
    const more = args.map(String)
    const listens = []
    // A free port would win over one among the arguments.
    if (port !== undefined) listens.push('--port', String(port))
    else if (!more.includes('--port')) listens.push('--free-port', 'yes')
    if (unixsocket) listens.push('--unixsocket', unixsocket, '--unixsocketperm', '700')
    const { child, announced } = await startProgram(findProgram(binary), [...listens, ...more])
    try {
      const { password } = new URL(announced.url)
      const address = { host: announced.host, port: announced.port }
      const server = await Dunlin.open({ address, password: decodeURIComponent(password) }, null, rest)
      server.#child = child
      return Object.assign(server, { port: announced.port, pid: announced.pid, socket: announced.socket })
    } catch (error) {
      await stopProgram(child)
      throw error
    }
  }

  /** Makes a world of its own on a server that runs with `test-kit yes`. */
  static connect(url, given = {}) {
    return Dunlin.#join(url, given, '')
  }

  static async #join(url, given, origin) {
    const { address, password } = addressOf(url, origin)
    try {
      const server = await Dunlin.open({ address, password }, undefined, given)
      return Object.assign(server, await server.listen())
    } catch (error) {
      const reason = error instanceof ReplyError ? `it replied '${error.message}'` : error.message || error.code
      throw new Error(
        `dunlin: no world can be made at ${address.host}:${address.port}${origin}: ${reason}; ` +
          `start a dunlin there with --test-kit yes${origin && ', or unset DUNLIN_URL'}`
      )
    }
  }

  /** A new world on this server. */
  world(given = {}) {
    return World.open(this.server, undefined, given)
  }

  /** Ends the server; somebody else's server goes on. */
  stop() {
    return (this.#stopped ??= this.#stop())
  }

  async #stop() {
    await this.drop()
    if (this.#child) await stopProgram(this.#child)
  }

  [Symbol.asyncDispose]() {
    return this.stop()
  }
}

module.exports = { Dunlin, ReplyError, World }
