// What the tests share.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { setImmediate as pause } from 'node:timers/promises'
import { Dunlin } from 'dunlin'

/** A server of the test's own. */
export async function start(t, given) {
  const server = await Dunlin.start(given)
  t.after(() => server.stop())
  return server
}

/** A world on a server that the tests of a file share. */
let shared
export async function world(t, given) {
  shared ??= await Dunlin.start()
  const opened = await shared.world(given)
  t.after(() => opened.drop())
  return opened
}

/** Runs a program in Node; the result has its output, its errors and its status. */
export async function run(args, { env = {}, ...options } = {}) {
  const child = spawn(process.execPath, args, { env: environment(env), ...options })
  const result = { output: '', errors: '' }
  child.stdout.on('data', text => (result.output += text))
  child.stderr.on('data', text => (result.errors += text))
  const [status] = await once(child, 'close')
  return { ...result, status }
}

/** The variables of this process, less those that the test runner sets for its own children. */
export function environment(changed) {
  const env = { ...process.env, ...changed }
  for (const name of Object.keys(env)) {
    if (env[name] === undefined || name === 'NODE_TEST_CONTEXT' || name === 'NODE_OPTIONS') delete env[name]
  }
  return env
}

/** The processes whose command line or environment has that text. */
export function processesWith(text) {
  return fs.readdirSync('/proc').filter(pid => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    try {
      return ['cmdline', 'environ'].some(file => fs.readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(text))
    } catch {
      return false
    }
  })
}

/** Whether a process runs; one that has ended but whose parent has not asked for its status does not. */
export function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits until a condition holds, and says after how many milliseconds. */
export async function until(holds, limitMs = 5_000) {
  const start = performance.now()
  while (!holds()) {
    if (performance.now() - start > limitMs) throw new Error(`it does not hold after ${limitMs} ms: ${holds}`)
    await pause()
  }
  return performance.now() - start
}

/** A program that prints a text as if it were the server, and goes on until its input ends. */
export function fakeProgram(folder, script) {
  const file = `${folder}/fake-dunlin`
  const end = "process.stdin.resume().on('end', () => process.exit())"
  fs.writeFileSync(file, `#!${process.execPath}\n${script}\n${end}\n`, { mode: 0o755 })
  return file
}
