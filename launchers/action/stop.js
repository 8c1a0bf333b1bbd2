'use strict'
// Ends the server that start.js has started, when the job ends. With debug logging of the runner its log is shown.

const fs = require('node:fs')
const path = require('node:path')
const { setTimeout: pause } = require('node:timers/promises')

const PATIENCE_MS = 5_000

function isRunning(pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function stop(pid) {
  if (!isRunning(pid)) return
  process.kill(pid, 'SIGTERM')
  for (let waited = 0; waited < PATIENCE_MS; waited += 50) {
    if (!isRunning(pid)) return
    await pause(50)
  }
  process.kill(pid, 'SIGKILL')
}

async function main() {
  const { STATE_pid: pid, STATE_folder: folder } = process.env
  if (!pid) return
  await stop(Number(pid))
  if (process.env.RUNNER_DEBUG === '1') process.stdout.write(fs.readFileSync(path.join(folder, 'log')))
  fs.rmSync(folder, { recursive: true, force: true })
}

main()
