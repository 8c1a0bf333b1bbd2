'use strict'
// Starts the server of the run. Jest's workers inherit the variable, so their worlds are made on that server.

const { Dunlin } = require('../index.js')

module.exports = async () => {
  if (process.env.DUNLIN_URL) return
  globalThis[Symbol.for('dunlin.server')] = await Dunlin.start()
  process.env.DUNLIN_URL = globalThis[Symbol.for('dunlin.server')].url
}
