'use strict'
// The package: starts a server, or uses the one that DUNLIN_URL names, and makes worlds in it.

const { ReplyError } = require('./lib/connection.js')
const { startServer, stopProgram } = require('./lib/program.js')
const { poolAt, poolOf, refusal } = require('./lib/server.js')
const { known, WORLD_OPTIONS } = require('./lib/words.js')
const { World } = require('./lib/world.js')

const OWN_SERVER = ['args', 'binary', 'port', 'socket']

/**
 * A server. It is a world, too: that of the clients that name none. On a server that runs already (DUNLIN_URL) it is a
 * world of its own there, so that nobody meets the others' data.
 */
class Dunlin extends World {
  #child
  #stopped
  /**
   * A port whose clients are in this world; the process id, the Unix socket and the link to the page, with its token, of a
   * server that was started here.
   */
  port
  pid = null
  socket = null
  pageUrl = null

  /** Starts a server, unless DUNLIN_URL names one and no option asks for a server of one's own. */
  static async start(given = {}) {
    known(given, [...WORLD_OPTIONS, ...OWN_SERVER])
    const isOwn = OWN_SERVER.some(name => given[name] !== undefined)
    if (process.env.DUNLIN_URL && !isOwn) return Dunlin.#join(process.env.DUNLIN_URL, given, ' (DUNLIN_URL)')
    return Dunlin.#launch(given)
  }

  static async #launch(given) {
    const { child, announced } = await startServer(given)
    try {
      const server = await Dunlin.open(poolOf(announced), null, given)
      server.#child = child
      const { port, pid, socket, page } = announced
      return Object.assign(server, { port, pid, socket, pageUrl: page ?? null })
    } catch (error) {
      await stopProgram(child)
      throw error
    }
  }

  /** Makes a world of its own on a server that runs with `test-kit yes`. */
  static async connect(url, given = {}) {
    known(given, WORLD_OPTIONS)
    return Dunlin.#join(url, given, '')
  }

  static async #join(url, given, origin) {
    const pool = poolAt(url, origin)
    try {
      const server = await Dunlin.open(pool, undefined, given)
      return Object.assign(server, await server.listen())
    } catch (error) {
      throw refusal(error, pool.address, origin)
    }
  }

  /** A new world on this server. */
  async world(given = {}) {
    known(given, WORLD_OPTIONS)
    return World.open(this.pool, undefined, given)
  }

  /** Ends the server; somebody else's server goes on. */
  stop() {
    return (this.#stopped ??= this.#stop())
  }

  async #stop() {
    await this.drop()
    this.pool.close()
    if (this.#child) await stopProgram(this.#child)
  }

  [Symbol.asyncDispose]() {
    return this.stop()
  }
}

module.exports = { Dunlin, ReplyError, World }
