#!/usr/bin/env node
'use strict'
// The command `dunlin`: runs the packaged program with the words that were given, and ends as that does. Node cannot put
// another program in its own place, so the program is a child that has the same streams and gets the same signals.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const { packagedProgram } = require('./lib/program.js')

// As `dunlin run` ends when its server cannot be started.
const NOT_STARTED = 125
const SENT = ['SIGHUP', 'SIGTERM', 'SIGUSR1', 'SIGUSR2']
const SENT_BY_KEYS = ['SIGINT', 'SIGQUIT']

function main() {
  let program
  try {
    // Not that of DUNLIN_BINARY, which may name this very command.
    program = packagedProgram()
  } catch (error) {
    return fail(`dunlin: there is no program: ${error.message}`)
  }
  let child
  // Before the child is there: a signal that came in between would end this process alone.
  for (const signal of [...SENT, ...SENT_BY_KEYS]) process.on(signal, () => passOn(child, signal))
  child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
  child.on('error', error => fail(`dunlin: cannot run ${program}: ${error.message}`))
  child.on('exit', endAs)
}

/** Gives a signal to the child, unless it comes from the keys of a terminal: these reach the child by themselves. */
function passOn(child, signal) {
  if (!SENT_BY_KEYS.includes(signal) || !hasTerminal()) child.kill(signal)
}

/** Whether a terminal can send signals to this process. Node does not say who has sent one. */
function hasTerminal() {
  if (process.platform === 'win32') return true
  try {
    fs.closeSync(fs.openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

function endAs(status, signal) {
  process.exitCode = status ?? 128 + os.constants.signals[signal]
  if (!signal) return
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

function fail(text) {
  console.error(text)
  process.exitCode = NOT_STARTED
}

main()
