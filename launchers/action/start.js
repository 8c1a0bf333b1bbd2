'use strict'
// Starts a server that outlives this step, and tells the later steps where it is. stop.js ends it with the job.

const { execFileSync, spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const PATIENCE_MS = 10_000
const LOG_LINES = 20
const isWindows = process.platform === 'win32'

/** The value of an input, as the runner passes it. */
const input = name => (process.env[`INPUT_${name.toUpperCase()}`] ?? '').trim()

/** Adds lines `name=value` to a file of the runner. */
function tell(file, values) {
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}${os.EOL}`)
  fs.appendFileSync(process.env[file], lines.join(''))
}

/** The version of the checkout that this action is part of. */
function ownVersion() {
  const manifest = fs.readFileSync(path.join(__dirname, '../../Cargo.toml'), 'utf8')
  return /^version = "(.*)"/m.exec(manifest)[1]
}

/** Installs the program for this platform; nothing of it runs meanwhile. */
function install(folder) {
  const platform = `${process.platform}-${process.arch}`
  const wanted = `@dunlin/${platform}@${input('version') || ownVersion()}`
  const args = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--silent', wanted]
  // On Windows npm is a script of the shell.
  execFileSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'], shell: isWindows })
  return path.join(folder, 'node_modules/@dunlin', platform, 'bin', isWindows ? 'dunlin.exe' : 'dunlin')
}

/** The program of the input: a relative path starts at the workspace, as in the `run` of a step. */
function given() {
  const program = input('program')
  return program && path.resolve(process.env.GITHUB_WORKSPACE || '.', program)
}

/** An error with the last lines of the program's log. */
function failure(text, log) {
  const lines = fs.readFileSync(log, 'utf8').trim().split(/\r?\n/).slice(-LOG_LINES).join('\n')
  return new Error(lines ? `${text}; it said:\n${lines}` : text)
}

/** Starts the program; the result is what it announces. Its log goes to a file. */
function start(program, folder) {
  const port = input('port') || '6379'
  const listens = port === '0' ? ['--free-port', 'yes'] : ['--port', port]
  const more = input('arguments').split(/\s+/).filter(Boolean)
  const log = path.join(folder, 'log')
  const args = ['--test-kit', 'yes', '--announce', 'yes', ...listens, ...more]
  const stdio = ['ignore', 'pipe', fs.openSync(log, 'w')]
  const child = spawn(program, args, { cwd: folder, detached: true, stdio, windowsHide: true })
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(failure(`${program} announced nothing for ${PATIENCE_MS / 1000} s`, log))
    }, PATIENCE_MS)
    let text = ''
    child.once('error', reject)
    child.stdout.setEncoding('utf8').on('data', piece => (text += piece))
    child.stdout.once('end', () => reject(failure(`${program} ended before it was ready`, log)))
    child.stdout.on('data', () => {
      if (!text.includes('\n')) return
      clearTimeout(timer)
      const announced = JSON.parse(text.split('\n', 1)[0])
      child.stdout.destroy()
      child.unref()
      announced.error ? reject(new Error(announced.error)) : resolve(announced)
    })
  })
}

async function main() {
  const folder = fs.mkdtempSync(path.join(process.env.RUNNER_TEMP || os.tmpdir(), 'dunlin-'))
  const { url, host, port, pid } = await start(given() || install(folder), folder)
  tell('GITHUB_STATE', { pid, folder })
  tell('GITHUB_ENV', { REDIS_URL: url, REDIS_HOST: host, REDIS_PORT: port, DUNLIN_URL: url, DUNLIN_PID: pid })
  tell('GITHUB_OUTPUT', { url, host, port })
  console.log(`dunlin is at ${url}`)
}

main().catch(error => {
  console.log(`::error::dunlin did not start: ${error.message.replaceAll('\n', '%0A')}`)
  process.exit(1)
})
