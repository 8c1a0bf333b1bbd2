'use strict'
// Where worlds are made: on a server that is started here, or on one that runs already.

const { ReplyError } = require('./connection.js')
const { Pool } = require('./pool.js')
const { findProgram, startProgram } = require('./program.js')

/** The connections to the server of a URL. `origin` is where the URL is from, for an error. */
function poolAt(url, origin) {
  try {
    const { protocol, hostname, port, password } = new URL(url)
    if (protocol === 'redis:' && hostname) {
      const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }
      return new Pool(address, decodeURIComponent(password))
    }
  } catch {
    // It is no URL at all.
  }
  throw new Error(`dunlin: '${url}'${origin} is no address of a server; it should be like redis://127.0.0.1:6379`)
}

/** Starts a server; the result has the child, what it announced, and the connections to it. */
async function launch({ args = [], binary, port, socket }) {
  const more = args.map(String)
  const listens = []
  // A free port would win over one among the arguments.
  if (port !== undefined) listens.push('--port', String(port))
  else if (!more.includes('--port')) listens.push('--free-port', 'yes')
  if (socket) listens.push('--unixsocket', socket === true ? socketPath() : socket, '--unixsocketperm', '700')
  const { child, announced } = await startProgram(findProgram(binary), [...listens, ...more])
  return { child, announced, pool: poolOf(announced) }
}

/** The connections to a server that was started here. */
function poolOf({ host, port, url }) {
  return new Pool({ host, port }, decodeURIComponent(new URL(url).password))
}

function socketPath() {
  const { randomBytes } = require('node:crypto')
  return require('node:path').join(require('node:os').tmpdir(), `dunlin-${randomBytes(8).toString('hex')}.sock`)
}

/** What is told where no world can be made on a server that was not started here. */
function refusal(error, { host, port }, origin) {
  const reason = error instanceof ReplyError ? `it replied '${error.message}'` : error.message || error.code
  return new Error(
    `dunlin: no world can be made at ${host}:${port}${origin}: ${reason}; ` +
      `start a dunlin there with --test-kit yes${origin && ', or unset DUNLIN_URL'}`
  )
}

module.exports = { launch, poolAt, poolOf, refusal }
