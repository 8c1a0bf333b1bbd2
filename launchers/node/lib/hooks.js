'use strict'
// What the set-ups for test runners share: one server for the process, a world for each test, and the end of a test.

const { known, within, WORLD_OPTIONS } = require('./words.js')

/** A runner's own limit for a test does not hold any more when that is over. */
const REPORT_MS = 2_000

let starting

/**
 * Starts the server of this process, or connects to the one of the run, while the files with the tests are loaded. Why
 * that fails is told by the first world.
 */
function prepare() {
  starting ??= process.env.DUNLIN_URL ? connected(process.env.DUNLIN_URL) : started()
  starting.catch(() => {})
  return starting
}

/** The connections to a server of this process. The program starts first; while it does, the rest is loaded here. */
async function started() {
  const { startServer } = require('./program.js')
  const server = startServer()
  const { poolOf } = require('./server.js')
  require('./world.js')
  const { announced } = await server
  const pool = poolOf(announced)
  const connection = await pool.open()
  // The first reply takes a millisecond longer, for what Node compiles only then.
  await connection.call(['PING'])
  pool.give(connection)
  return pool
}

/** The connections to a server that runs already, if it has a test kit. */
async function connected(url) {
  const { poolAt, refusal } = require('./server.js')
  const origin = ' (DUNLIN_URL)'
  const pool = poolAt(url, origin)
  try {
    const connection = await pool.open()
    await connection.call(['DUNLIN', 'WORLD'])
    pool.give(connection)
    return pool
  } catch (error) {
    pool.close()
    throw refusal(error, pool.address, origin)
  }
}

/** A new world on the server of this process. */
async function openWorld(given) {
  known(given, WORLD_OPTIONS)
  const pool = await prepare()
  return require('./world.js').World.open(pool, undefined, given)
}

/** Ends a test: one that failed shows what its world has seen; one that passed fails by findings of strict mode. */
async function endWorld(world, { failed, show }) {
  if (failed) show(await reportOf(world))
  const checked = failed || world.isDropped ? undefined : world.strict.check()
  // The world must be entered again first.
  if (!world.isConnected) await checked?.catch(() => {})
  // Both are sent at once, the check first.
  await Promise.allSettled([checked, world.drop()])
  await checked?.catch(error => {
    // The connection was lost at the very end, or the test has ended its world.
    if (!error.isUnread) throw error
  })
}

/** What the world of a test that has failed has seen, or why that is not known. */
function reportOf(world) {
  const report = within(REPORT_MS, world.report(), 'the server does not reply')
  return report.catch(error => `dunlin: there is no report: ${error.message.replace('dunlin: ', '')}`)
}

module.exports = { endWorld, openWorld, prepare, reportOf }
