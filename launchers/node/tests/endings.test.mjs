// No server is left behind, however its launcher ends.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import fs from 'node:fs'
import { test } from 'node:test'
import { environment, isAlive, processesWith, until } from './support.mjs'

const onLinux = { skip: process.platform !== 'linux' }

/** A runner whose server has a mark in its command line, by which it is found. */
function runner(script = '') {
  const mark = path.join(os.tmpdir(), `dunlin-${randomUUID()}.port`)
  const source = `require('dunlin').Dunlin.start({ args: ['--port-file', '${mark}'] }).then(async server => {
    await server.world()
    ${script}
    console.log(server.pid)
    setInterval(() => {}, 1000)
  })`
  const child = spawn(process.execPath, ['-e', source], { env: environment({}), stdio: ['ignore', 'pipe', 'inherit'] })
  return { child, mark, isGone: pid => !isAlive(pid) && !fs.existsSync(mark) }
}

test('a killed runner leaves no server and no file', onLinux, async t => {
  const times = []
  const count = Number(process.env.DUNLIN_TEST_KILLS ?? 10)
  for (let round = 0; round < count; round++) {
    const { child, isGone } = runner()
    const pid = Number(await once(child.stdout, 'data'))
    child.kill('SIGKILL')
    await once(child, 'exit')
    times.push(await until(() => isGone(pid)))
  }
  times.sort((a, b) => a - b)
  t.diagnostic(`gone after ${times[count >> 1].toFixed(1)} ms, at most ${times.at(-1).toFixed(1)} ms, ${count} times`)
})

test('a runner that is killed while its server starts leaves none', onLinux, async () => {
  for (let round = 0; round < 8; round++) {
    const { child, mark } = runner()
    await until(() => processesWith(mark).some(pid => Number(pid) !== child.pid) || child.exitCode !== null)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await until(() => processesWith(mark).length === 0)
  }
})

test('a process that the runner started keeps no server alive', onLinux, async () => {
  const started = "require('child_process').spawn('sleep', ['20'], { detached: true, stdio: 'ignore' }).unref()"
  const { child, isGone } = runner(started)
  const pid = Number(await once(child.stdout, 'data'))
  child.kill('SIGKILL')
  assert(await until(() => isGone(pid)) < 5_000)
})

test('Ctrl-C reaches the runner, which can still use its server', onLinux, async () => {
  const last = "process.on('SIGINT', () => server.call('PING').then(reply => { console.log(reply); process.exit() }))"
  const source = `require('dunlin').Dunlin.start().then(server => {
    ${last}
    setInterval(() => {}, 1000)
    console.log('ready')
  })`
  const child = spawn(process.execPath, ['-e', source], { env: environment({}), detached: true })
  await once(child.stdout, 'data')
  process.kill(-child.pid, 'SIGINT')
  assert.equal(String(await once(child.stdout, 'data')), 'PONG\n')
})
