// The command `dunlin`, which npm puts where npx finds it.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { environment, run } from './support.mjs'

const COMMAND = path.resolve('node_modules/.bin/dunlin')
const onUnix = { skip: process.platform === 'win32' }

/** Runs a script of Node with a server of its own; `output` is what it has written until now. */
function start(script, { program = COMMAND, words = ['run', '--', process.execPath, '-e', script], ...options } = {}) {
  const child = spawn(program, words, { env: environment({}), stdio: ['pipe', 'pipe', 'inherit'], ...options })
  const started = { child, output: '' }
  child.stdout.on('data', text => (started.output += text))
  started.until = async text => {
    while (!started.output.includes(text)) await once(child.stdout, 'data')
  }
  started.end = once(child, 'close')
  return started
}

test('npx runs it, with a server for the command', onUnix, () => {
  const script = "require('dunlin').Dunlin.start().then(server => server.call('PING')).then(console.log)"
  const words = ['--offline', 'dunlin', 'run', '--', process.execPath, '-e', script]
  assert.equal(execFileSync('npx', words, { env: environment({}), encoding: 'utf8' }), 'PONG\n')
})

test('the words reach the program as they are, and its status is that of the command', onUnix, async () => {
  const words = ['run', '--env', 'A', '--', 'sh', '-c', 'printf "%s," "$@"; exit 77', 'sh', '', 'a b', '--env', '*']
  const { output, status } = await run([COMMAND, ...words])
  assert.deepEqual({ output, status }, { output: ',a b,--env,*,', status: 77 })
})

for (const signal of ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGINT', 'SIGQUIT']) {
  test(`${signal} reaches the command, once`, onUnix, async () => {
    const script = `
      process.on('${signal}', () => console.log('told'))
      process.stdin.once('data', () => process.exit(3))
      console.log('ready')`
    // In a session without a terminal, whose keys could have sent it.
    const started = start(script, { detached: true })
    await started.until('ready')
    started.child.kill(signal)
    await started.until('told')
    started.child.stdin.end('end')
    assert.deepEqual(await started.end, [3, null])
    assert.equal(started.output, 'ready\ntold\n')
  })
}

test('Ctrl-C in a terminal reaches the command once', onUnix, async t => {
  if (!fs.existsSync('/usr/bin/script')) return t.skip('there is no program `script`, which makes a terminal')
  const file = path.resolve('told-by-keys.cjs')
  t.after(() => fs.rmSync(file))
  fs.writeFileSync(file, `
    process.on('SIGINT', () => console.log('told'))
    process.stdin.once('data', () => process.exit(3))
    console.log('ready')`)
  // In the place of the shell, since some shells end by the signal, too, once their command has ended.
  const command = `exec ${COMMAND} run -- ${process.execPath} ${file}`
  const started = start('', { program: '/usr/bin/script', words: ['--quiet', '--return', '--command', command, '/dev/null'] })
  await started.until('ready')
  started.child.stdin.write('\x03')
  await started.until('told')
  started.child.stdin.write('end\n')
  assert.deepEqual(await started.end, [3, null])
  assert.equal(started.output.split('told').length, 2, started.output)
})

test('it ends by the signal that has ended the program', onUnix, async () => {
  const started = start('', { words: ['run', '--', 'sh', '-c', 'kill -KILL $PPID'] })
  assert.deepEqual(await started.end, [null, 'SIGKILL'])
})

test('a variable that names the command itself does not lead it back', async () => {
  const { output, status } = await run([COMMAND, '--version'], { env: { DUNLIN_BINARY: COMMAND } })
  assert.match(output, /dunlin=\d+\.\d+\.\d+/)
  assert.equal(status, 0)
})
