'use strict'
// What the set-ups for test runners share: one server for the process, a world for each test, and the end of a test.

const { Dunlin } = require('../index.js')

let server

/** A new world on the server of this process, which is started for the first one. */
async function openWorld(given) {
  server ??= Dunlin.start()
  return (await server).world(given)
}

/** Ends a test: one that failed shows what its world has seen; one that passed fails by findings of strict mode. */
async function endWorld(world, { failed, show }) {
  try {
    if (failed) show(await world.report().catch(error => `dunlin: there is no report: ${error.message}`))
    else await world.strict.check()
  } finally {
    await world.drop()
  }
}

module.exports = { endWorld, openWorld }
