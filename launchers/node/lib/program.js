'use strict'
// Finds the program and starts it as a child that ends with this process, however that ends: the server watches its
// standard input, whose other end is held here.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')

const PATIENCE_MS = 10_000
const TAIL_LINES = 200

/** The program that is given, else that of DUNLIN_BINARY, else of the platform's package. */
function findProgram(given) {
  // Each as a whole path: a bare name would be looked for in PATH.
  if (given) return { file: path.resolve(given), origin: 'given as binary' }
  const named = process.env.DUNLIN_BINARY
  if (named) return { file: path.resolve(named), origin: 'named by DUNLIN_BINARY' }
  try {
    return { file: packagedProgram(), origin: 'of its package' }
  } catch ({ message }) {
    throw new Error(`dunlin: there is no program: DUNLIN_BINARY is not set, and ${message}, or set DUNLIN_BINARY`)
  }
}

/** The program in the platform's package. */
function packagedProgram() {
  const platform = `${process.platform}-${process.arch}`
  const name = process.platform === 'win32' ? 'dunlin.exe' : 'dunlin'
  try {
    return require.resolve(`@dunlin/${platform}/bin/${name}`)
  } catch {
    throw new Error(
      `the package @dunlin/${platform} is not installed where ${path.dirname(__dirname)} finds it (npm leaves it out ` +
        'with --omit=optional, and where the lock file was made on another platform); ' +
        `run 'npm install --save-dev @dunlin/${platform}@${ownVersion()}'`
    )
  }
}

/**
 * Starts a server; the result has the child and what it announced. Beside its port it has a Unix socket, over which the
 * launcher asks in half the time, where there is a folder for it.
 */
async function startServer({ args = [], binary, port, socket } = {}) {
  const program = findProgram(binary)
  const more = args.map(String)
  const hasPort = port !== undefined || more.includes('--port')
  const own = socket === undefined && !hasPort && !more.includes('--unixsocket') ? socketPath() : undefined
  const listens = file => {
    // A free port would win over one among the arguments.
    const words = port !== undefined ? ['--port', String(port)] : hasPort ? [] : ['--free-port', 'yes']
    return file ? [...words, '--unixsocket', file, '--unixsocketperm', '700', ...more] : [...words, ...more]
  }
  const file = own ?? (socket === true ? socketPath() : socket)
  try {
    return await startProgram(program, listens(file), file === socket ? undefined : file)
  } catch (error) {
    if (!own || !error.isRefused || !error.message.includes(own)) throw error
    return startProgram(program, listens(undefined)) // nothing may be written there
  }
}

/** A path for a Unix socket, or nothing where the system has none or the path would be too long for it. */
function socketPath() {
  if (process.platform === 'win32') return undefined
  const part = () => Math.floor(Math.random() * 2 ** 32).toString(36)
  const file = path.join(tmpdir(), `dunlin-${process.pid}-${process.hrtime()[1].toString(36)}${part()}.sock`)
  return Buffer.byteLength(file) < 100 ? file : undefined
}

/** Starts the program; the result has the child and what it announced. */
async function startProgram(program, settings, socket) {
  const args = ['--test-kit', 'yes', '--announce', 'yes', '--end-with', 'stdin', ...settings]
  // In a session of its own, Ctrl-C reaches the runner only, and its last tests still have their server.
  const child = spawn(program.file, args, { stdio: 'pipe', detached: process.platform !== 'win32', windowsHide: true })
  const tail = keepTail(child.stderr)
  child.stdin.on('error', () => {})
  // A server that was killed has left its socket.
  if (socket) child.once('exit', () => fs.rmSync(socket, { force: true }))
  ownVersion() // is read while the program starts
  try {
    const announced = parse(await firstLine(child, program), program)
    checkVersion(announced, program)
    child.stdout.resume()
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref()
    return { child, announced }
  } catch (error) {
    child.kill('SIGKILL')
    error.message += tail.length > 0 && !error.isComplete ? `; it said:\n${tail.join('\n')}` : ''
    throw error
  }
}

/** The first line of the output, in as many pieces as it comes. */
function firstLine(child, program) {
  return new Promise((resolve, reject) => {
    let text = ''
    const fail = reason => reject(new Error(`dunlin: ${program.file} (${program.origin}) did not start: ${reason}`))
    const timer = setTimeout(() => fail(`it announced nothing for ${PATIENCE_MS / 1000} s`), PATIENCE_MS)
    child.stdout.setEncoding('utf8')
    child.stdout.on('data', piece => {
      text += piece
      if (!text.includes('\n')) return
      clearTimeout(timer)
      resolve(text.split('\n', 1)[0])
    })
    child.once('error', ({ code, message }) => {
      clearTimeout(timer)
      const hint = "; its file system may forbid programs (noexec): set DUNLIN_BINARY to a program's path elsewhere"
      fail(code === 'EACCES' ? message + hint : message)
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      fail(`it ended with ${signal ?? `status ${code}`}`)
    })
  })
}

function parse(line, program) {
  let announced
  try {
    announced = JSON.parse(line)
  } catch {
    const said = JSON.stringify(line)
    throw new Error(`dunlin: ${program.file} (${program.origin}) is no dunlin that this package knows: it said ${said}`)
  }
  if (!announced.error) return announced
  const error = new Error(`dunlin: ${program.file} cannot start: ${announced.error}`)
  throw Object.assign(error, { isComplete: true, isRefused: true })
}

function ownVersion() {
  return require('../package.json').version
}

/** A checkout has no version in its package.json, so there any program will do. */
function checkVersion(announced, program) {
  const version = ownVersion()
  if (!version || announced.dunlin === version) return
  const text =
    `dunlin: ${program.file} (${program.origin}) is version ${announced.dunlin}, but the package dunlin is ` +
    `${version}; both must have one version`
  throw Object.assign(new Error(text), { isComplete: true })
}

function keepTail(stream) {
  const lines = []
  let rest = ''
  stream.setEncoding('utf8').on('data', text => {
    const parts = (rest + text).split('\n')
    rest = parts.pop()
    lines.push(...parts)
    lines.splice(0, lines.length - TAIL_LINES)
  })
  return lines
}

/** Ends the child by its standard input; after five seconds by force. */
function stopProgram(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise(resolve => {
    const timer = setTimeout(() => child.kill('SIGKILL'), 5_000)
    child.ref()
    child.once('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    child.stdin.end()
  })
}

module.exports = { packagedProgram, startServer, stopProgram }
