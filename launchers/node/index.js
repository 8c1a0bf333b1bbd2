'use strict'
// The package: starts a server, or uses the one that DUNLIN_URL names, and makes worlds in it.

const { tmpdir } = require('node:os')
const path = require('node:path')
const { randomBytes } = require('node:crypto')
const { ReplyError } = require('./lib/connection.js')
const { findProgram, startProgram, stopProgram } = require('./lib/program.js')
const { World } = require('./lib/world.js')

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
    if (process.env.DUNLIN_URL && !isOwn) return Dunlin.connect(process.env.DUNLIN_URL, given)
    return Dunlin.#launch(given)
  }

  static async #launch({ args = [], binary, port, socket, ...rest }) {
    const unixsocket = socket === true ? path.join(tmpdir(), `dunlin-${randomBytes(8).toString('hex')}.sock`) : socket
    const listens = port === undefined ? ['--free-port', 'yes'] : ['--port', String(port)]
    if (unixsocket) listens.push('--unixsocket', unixsocket, '--unixsocketperm', '700')
    const { child, announced } = await startProgram(findProgram(binary), [...listens, ...args.map(String)])
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
  static async connect(url, given = {}) {
    const { hostname, port, password } = new URL(url)
    const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }
    try {
      const server = await Dunlin.open({ address, password: decodeURIComponent(password) }, undefined, given)
      return Object.assign(server, await server.listen())
    } catch (error) {
      const reason = error instanceof ReplyError ? `it replied '${error.message}'` : error.message || error.code
      throw new Error(
        `dunlin: no world can be made at ${address.host}:${address.port} (DUNLIN_URL): ${reason}; ` +
          'start a dunlin there with --test-kit yes, or unset DUNLIN_URL'
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
