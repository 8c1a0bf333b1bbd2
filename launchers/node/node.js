'use strict'
// Node's own test runner: a world that ends with its test.

const { endWorld, openWorld, prepare } = require('./lib/hooks.js')

/** When a server is there, or none will be; node.mjs waits for it. */
const ready = prepare().catch(() => {})

/** A world for this test, dropped when it ends. If the test fails, its output shows the last commands and the seed. */
async function world(test, given) {
  const opened = await openWorld(given)
  const show = text => text.split('\n').forEach(line => test.diagnostic(line))
  test.after(() => endWorld(opened, { failed: Boolean(test.error), show }))
  return opened
}

module.exports = { ready, world }
