// Runs of test runners whose processes are killed, each within a test: no server and no world is left.
//
// Set DUNLIN_TEST_KILLS to kill more often; a round takes a second or more. What Node's own runner has started goes on
// when only the runner is killed, and so do the servers of these processes; the others have one server for the run.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { Dunlin } from 'dunlin'
import { environment, isAlive, until } from './support.mjs'

const KILLS = Number(process.env.DUNLIN_TEST_KILLS ?? 1)
const onLinux = process.platform === 'linux'

const VITEST = ['node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=2']
const RUNNERS = {
  'node:test': { folder: 'node', words: ['--test', '--test-concurrency=2', 'one.test.mjs', 'two.test.mjs'] },
  Jest: { folder: 'jest', words: ['node_modules/jest/bin/jest.js', '--maxWorkers=2', '--watchAll=false'] },
  'Vitest with forks': { folder: 'vitest', words: [...VITEST, '--pool=forks'] },
  'Vitest with threads': { folder: 'vitest', words: [...VITEST, '--pool=threads'] }
}

/** A run of two files, whose tests wait; what these have told is in `tests`. */
async function run(t, { folder, words }) {
  const out = fs.mkdtempSync(path.join(os.tmpdir(), 'dunlin-test-'))
  const program = words[0].startsWith('--') ? words : [path.resolve(words[0]), ...words.slice(1)]
  const env = environment({ CI: 'true', DUNLIN_TEST_FOLDER: out })
  const cwd = `runners/sleeping/${folder}`
  const runner = spawn(process.execPath, program, { cwd, env, stdio: 'ignore' })
  const ended = once(runner, 'exit')
  const files = ['one', 'two'].map(name => path.join(out, name))
  t.after(() => {
    runner.kill('SIGKILL')
    fs.rmSync(out, { recursive: true })
  })
  await until(() => files.every(file => fs.existsSync(file)), 30_000)
  const tests = files.map(file => JSON.parse(fs.readFileSync(file, 'utf8')))
  t.after(() => kill(tests))
  return { runner, ended, tests }
}

function kill(tests) {
  for (const { process: pid } of tests.filter(({ process: pid }) => isAlive(pid))) process.kill(pid, 'SIGKILL')
}

/** Has `round` done as often as wanted, and shows how many milliseconds passed until nothing was left. */
async function rounds(t, round) {
  const times = []
  for (let count = 0; count < KILLS; count++) times.push(await round())
  times.sort((a, b) => a - b)
  t.diagnostic(`gone after ${times[KILLS >> 1].toFixed(1)} ms, at most ${times.at(-1).toFixed(1)} ms, ${KILLS} times`)
}

for (const [name, runner] of Object.entries(RUNNERS)) {
  const isThere = runner.folder === 'node' || fs.existsSync(runner.words[0])
  const skip = !onLinux || !isThere
  const isOneServer = runner.folder !== 'node'

  test(`${name}: no server outlives the run`, { skip }, t => rounds(t, async () => {
    const { runner: killed, ended, tests } = await run(t, runner)
    killed.kill('SIGKILL')
    if (!isOneServer) kill(tests)
    const time = await until(() => tests.every(({ server }) => !isAlive(server)))
    kill(tests)
    await ended
    return time
  }))

  test(`${name}: nothing outlives the run if all of its processes are killed`, { skip }, t => rounds(t, async () => {
    const { runner: killed, ended, tests } = await run(t, runner)
    killed.kill('SIGKILL')
    kill(tests)
    const time = await until(() => tests.every(({ server, process: pid }) => !isAlive(server) && !isAlive(pid)))
    await ended
    return time
  }))
}

test('node:test: no server outlives its test process', { skip: !onLinux }, t => rounds(t, async () => {
  const { tests } = await run(t, RUNNERS['node:test'])
  kill(tests.slice(0, 1))
  const time = await until(() => !isAlive(tests[0].server))
  assert(isAlive(tests[1].server))
  return time
}))

for (const name of ['Jest', 'Vitest with forks']) {
  const skip = !onLinux || !fs.existsSync(RUNNERS[name].words[0])
  test(`${name}: no world outlives its worker`, { skip }, t => rounds(t, async () => {
    const { tests } = await run(t, RUNNERS[name])
    const server = await Dunlin.connect(urlOf(tests[0].server))
    t.after(() => server.stop())
    kill(tests.slice(0, 1))
    const start = performance.now()
    while ((await server.dunlin('WORLDS')).some(each => each.includes(tests[0].world))) {
      assert(performance.now() - start < 5_000, 'the world is still there')
    }
    assert((await server.dunlin('WORLDS')).some(each => each.includes(tests[1].world)))
    return performance.now() - start
  }))
}

/** The address of a server, by the variable that its runner's workers have. */
function urlOf(server) {
  const [, parent] = fs.readFileSync(`/proc/${server}/stat`, 'utf8').match(/\) \S (\d+)/)
  const children = fs.readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ')
  const variables = children.flatMap(pid => fs.readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0'))
  return variables.find(each => each.startsWith('DUNLIN_URL=')).slice('DUNLIN_URL='.length)
}
