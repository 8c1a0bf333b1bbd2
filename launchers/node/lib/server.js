'use strict'
// Where worlds are made: on a server that is started here, or on one that runs already.

const { ReplyError } = require('./connection.js')
const { Pool } = require('./pool.js')

/** The connections to the server of a URL. `origin` is where the URL is from, for an error. */
function poolAt(url, origin) {
  try {
    // That of a socket has no host, beside which URL takes no user.
    const whole = url.replace(/^unix:\/\/([^/]*@)?\//, 'unix://$1socket/')
    const { protocol, hostname, port, username, password, pathname } = new URL(whole)
    const login = [password, username].map(decodeURIComponent)
    if (protocol === 'redis:' && hostname) {
      return new Pool({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }, ...login)
    }
    if (protocol === 'unix:' && whole !== url && pathname.length > 1) {
      return new Pool({ host: '127.0.0.1', socket: decodeURIComponent(pathname) }, ...login)
    }
  } catch {
    // It is no URL at all.
  }
  throw new Error(`dunlin: '${url}'${origin} is no address of a server; it should be like redis://127.0.0.1:6379`)
}

/** The connections to a server that was started here. */
function poolOf({ host, port, socket, url }) {
  return new Pool({ host, port, socket }, decodeURIComponent(new URL(url).password))
}

/** What is told where no world can be made on a server that was not started here. */
function refusal(error, { host, port, socket }, origin) {
  const reason = error instanceof ReplyError ? `it replied '${error.message}'` : error.message || error.code
  return new Error(
    `dunlin: no world can be made at ${port === undefined ? socket : `${host}:${port}`}${origin}: ${reason}; ` +
      `start a dunlin there with --test-kit yes${origin && ', or unset DUNLIN_URL'}`
  )
}

module.exports = { poolAt, poolOf, refusal }
