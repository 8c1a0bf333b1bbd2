'use strict'
// Ends the server of the run, if setup.js has started one.

module.exports = async () => {
  const server = globalThis[Symbol.for('dunlin.server')]
  if (!server) return
  delete process.env.DUNLIN_URL
  await server.stop()
}
