'use strict'
// The connections to a server that no world holds at the moment. They are in the default world and logged in, so the
// next world begins on one of them without connecting.

const { Connection } = require('./connection.js')

/** How many are kept: as many as tests that end together begin again soon. */
const KEPT = 16

class Pool {
  #idle = []
  #isClosed = false

  /** Where the server is, and its password, which may be empty. */
  constructor(address, password) {
    this.address = address
    this.password = password
  }

  /** The commands that log a connection in. */
  get login() {
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
    return this.password ? this.#loggedIn(connection) : connection
  }

  async #loggedIn(connection) {
    try {
      await connection.send(this.login)
      return connection
    } catch (error) {
      connection.close()
      throw error
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

module.exports = { Pool }
