'use strict'
// A class of the shape of redis-memory-server's, for suites that use that package.

const { Dunlin } = require('./index.js')

/** The server starts with the first call that needs it, or at once where `autoStart` is set. */
class RedisMemoryServer {
  #starting
  #info = false
  /** The port of the server that was stopped, which the next one takes, so that clients connect again. */
  #port

  constructor(opts = {}) {
    this.opts = opts
    if (opts.autoStart) this.ensureInstance().catch(() => {})
  }

  /** As the constructor, but where `autoStart` is set, the server is there. */
  static async create(opts = {}) {
    const server = new RedisMemoryServer({ ...opts, autoStart: false })
    if (opts.autoStart) await server.start()
    return server
  }

  async start() {
    if (this.#info) throw new Error('dunlin: the server is started already; stop() ends it')
    await this.ensureInstance()
    return true
  }

  /** Starts the server if there is none; a start that failed is tried again by the next call. */
  ensureInstance() {
    this.#starting ??= this.#start().catch(error => {
      this.#starting = undefined
      throw error
    })
    return this.#starting
  }

  async #start() {
    const { instance: { port, ip } = {} } = this.opts
    const wanted = port ?? this.#port
    const server = await this.#launch(wanted).catch(error => {
      if (wanted === undefined || !/address already in use/i.test(error.message)) throw error
      return this.#launch(undefined)
    })
    this.#port = server.port
    this.#info = { ip: ip ?? server.host, port: server.port, instance: server }
    return this.#info
  }

  #launch(port) {
    const { instance: { ip, args = [] } = {}, binary: { systemBinary } = {} } = this.opts
    const bind = ip ? ['--bind', ip.replaceAll(',', ' ')] : []
    // A server of its own, also where DUNLIN_URL names one: it is known by host and port, and may get settings.
    return Dunlin.start({ port, binary: systemBinary, args: [...bind, ...args], journal: false })
  }

  async stop() {
    const starting = this.#starting
    this.#starting = undefined
    const info = await starting?.catch(() => false)
    this.#info = false
    await info?.instance?.stop()
    return true
  }

  getInstanceInfo() {
    return this.#info
  }

  getHost = async () => (await this.ensureInstance()).instance.host
  getIp = async () => (await this.ensureInstance()).ip
  getPort = async () => (await this.ensureInstance()).port
}

// For `import RedisMemoryServer from` in code that is compiled to CommonJS.
Object.defineProperty(exports, '__esModule', { value: true })
exports.RedisMemoryServer = RedisMemoryServer
exports.default = RedisMemoryServer
