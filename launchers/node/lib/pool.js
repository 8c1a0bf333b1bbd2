'use strict'
// The connections to a server that no world holds at the moment. They are in the default world and logged in, so the
// next world begins on one of them without connecting.

const { Connection } = require('./connection.js')

/** How many are kept: as many as tests that end together begin again soon. */
const KEPT = 16

class Pool {
  #idle = []
  #isClosed = false

  /** Where the server is, and its user and password, which may be empty. */
  constructor(address, password, user = '') {
    this.address = address
    this.password = password
    this.user = user
  }

  /** The commands that log a connection in. */
  get login() {
    if (this.user) return [['AUTH', this.user, this.password || 'any']]
    return this.password ? [['AUTH', this.password]] : []
  }

  get size() {
    return this.#idle.length
  }

  take() {
    while (this.#idle.length > 0) {
      const connection = this.#idle.pop()
      if (connection.isOpen) return connection
    }
    return this.open()
  }

  /** A new connection; it is a promise where the server must accept the password first. */
  open() {
    const connection = new Connection(this.address)
    return this.login.length > 0 ? sent(connection, this.login) : connection
  }

  /** A connection on which these commands have succeeded: a new one if that which was idle had ended. */
  async enter(commands) {
    try {
      return await sent(await this.take(), commands)
    } catch (error) {
      if (!error.isUnread) throw error
      return sent(await this.open(), commands)
    }
  }

  give(connection) {
    if (!this.#isClosed && this.#idle.length < KEPT) this.#idle.push(connection)
    else connection.close()
  }

  close() {
    this.#isClosed = true
    for (const connection of this.#idle.splice(0)) connection.close()
  }
}

async function sent(connection, commands) {
  try {
    await connection.send(commands)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

module.exports = { Pool }
