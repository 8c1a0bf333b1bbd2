// The action as a runner runs it: inputs and state in the environment, answers in files.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const { PROGRAM, PACKAGES, WORK } = process.env
const action = fileURLToPath(new URL('..', import.meta.url))

/** A job: its files, and what a step gets of them. */
class Job {
  constructor(t, name) {
    this.folder = path.join(WORK, name)
    fs.mkdirSync(this.folder, { recursive: true })
    // A test that fails leaves no server behind.
    t.after(() => this.state.pid && this.run('stop.js'))
  }

  /** What the steps have told in a file of the runner. */
  read(name) {
    const file = path.join(this.folder, name)
    const lines = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split(/\r?\n/).filter(Boolean) : []
    return Object.fromEntries(lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
  }

  get state() {
    return this.read('GITHUB_STATE')
  }

  run(script, inputs = {}, more = {}) {
    const env = { ...process.env, RUNNER_TEMP: this.folder, ...more }
    for (const name of ['GITHUB_ENV', 'GITHUB_OUTPUT', 'GITHUB_STATE']) env[name] = path.join(this.folder, name)
    for (const [name, value] of Object.entries(inputs)) env[`INPUT_${name.toUpperCase()}`] = String(value)
    for (const [name, value] of Object.entries(this.state)) env[`STATE_${name}`] = value
    return spawnSync(process.execPath, [path.join(action, script)], { env, encoding: 'utf8' })
  }
}

const ping = url => spawnSync(PROGRAM, ['ping', url]).status === 0

const isRunning = pid => fs.existsSync(`/proc/${pid}`) || spawnSync('ps', ['-p', pid]).status === 0

test('a server runs from the step to the end of the job', t => {
  const job = new Job(t, 'whole')
  const started = job.run('start.js', { port: 0, program: PROGRAM, arguments: '--requirepass  pw --maxmemory 1mb' })
  assert.equal(started.status, 0, started.stdout + started.stderr)
  const { REDIS_URL: url, REDIS_PORT: port, DUNLIN_PID: pid, ...rest } = job.read('GITHUB_ENV')
  assert.deepEqual(rest, { REDIS_HOST: '127.0.0.1', DUNLIN_URL: url })
  assert.equal(url, `redis://:pw@127.0.0.1:${port}`)
  assert.deepEqual(job.read('GITHUB_OUTPUT'), { url, host: '127.0.0.1', port })
  assert.ok(ping(url) && isRunning(pid))

  const stopped = job.run('stop.js', {}, { RUNNER_DEBUG: '1' })
  assert.equal(stopped.status, 0, stopped.stderr)
  assert.match(stopped.stdout, /Ready to accept connections tcp/)
  assert.ok(!ping(url) && !isRunning(pid), 'it has ended')
  assert.ok(!fs.existsSync(job.state.folder), 'its folder is gone')
  assert.equal(job.run('stop.js').status, 0, 'ending it once more does no harm')
})

test('a relative path is one in the workspace', t => {
  const job = new Job(t, 'relative')
  const given = { GITHUB_WORKSPACE: path.dirname(path.dirname(PROGRAM)) }
  const program = path.join(path.basename(path.dirname(PROGRAM)), path.basename(PROGRAM))
  const started = job.run('start.js', { port: 0, program }, given)
  assert.equal(started.status, 0, started.stdout + started.stderr)
  assert.ok(ping(job.read('GITHUB_ENV').REDIS_URL))
})

test('the program comes from its npm package', t => {
  const job = new Job(t, 'installed')
  // The package from this checkout, in the place of the registry's.
  const npm = path.join(job.folder, 'bin', 'npm')
  fs.mkdirSync(path.dirname(npm))
  const real = spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim()
  const script = `#!/bin/sh\necho "$@" >"${job.folder}/asked"\nexec "${real}" install --prefix "$3" --offline --ignore-scripts --silent ${PACKAGES}\n`
  fs.writeFileSync(npm, script, { mode: 0o755 })
  const PATH = `${path.dirname(npm)}:${process.env.PATH}`
  const started = job.run('start.js', { port: 0 }, { PATH })
  assert.equal(started.status, 0, started.stdout + started.stderr)
  const version = /^version = "(.*)"/m.exec(fs.readFileSync(path.join(action, '../../Cargo.toml'), 'utf8'))[1]
  const asked = fs.readFileSync(path.join(job.folder, 'asked'), 'utf8')
  assert.ok(asked.trim().endsWith(`@dunlin/${process.platform}-${process.arch}@${version}`), asked)
  assert.match(asked, /--ignore-scripts/)
  assert.ok(ping(job.read('GITHUB_ENV').REDIS_URL))
})

test('a server that cannot start fails the step with its reason', t => {
  const first = new Job(t, 'first')
  assert.equal(first.run('start.js', { port: 0, program: PROGRAM }).status, 0)
  const { port } = first.read('GITHUB_OUTPUT')
  for (const [inputs, reason] of [
    [{ port }, /::error::dunlin did not start: .*Address (already )?in use/],
    [{ port: 0, arguments: '--no-such-thing 1' }, /::error::dunlin did not start: .*no-such-thing/],
    [{ port: 0, program: '/no/such/program' }, /::error::dunlin did not start: .*ENOENT/],
    [{ port: 0, program: 'broken' }, /broken ended before it was ready; it said:%0Ano licence%0Aand no time\n/]
  ]) {
    const job = new Job(t, `failing-${reason.source.length}`)
    const broken = '#!/bin/sh\nprintf "no licence\\nand no time\\n" >&2\n'
    fs.writeFileSync(path.join(job.folder, 'broken'), broken, { mode: 0o755 })
    const started = job.run('start.js', { program: PROGRAM, ...inputs }, { GITHUB_WORKSPACE: job.folder })
    assert.equal(started.status, 1)
    assert.match(started.stdout, reason)
    assert.deepEqual([job.read('GITHUB_ENV'), job.state], [{}, {}])
    assert.equal(job.run('stop.js').status, 0)
  }
})

test('the scripts read the inputs and files that action.yml names', () => {
  const description = fs.readFileSync(path.join(action, 'action.yml'), 'utf8')
  const start = fs.readFileSync(path.join(action, 'start.js'), 'utf8')
  const section = name => description.split(`\n${name}:\n`)[1].split(/\n\S/)[0]
  const names = text => [...text.matchAll(/^ {2}(\w+):$/gm)].map(match => match[1])
  const read = [...start.matchAll(/input\('(\w+)'\)/g)].map(match => match[1])
  assert.deepEqual(names(section('inputs')).sort(), [...new Set(read)].sort())
  assert.deepEqual(names(section('outputs')), ['url', 'host', 'port'])
  for (const [, file] of section('runs').matchAll(/(?:main|post): (\S+)/g)) assert.ok(fs.existsSync(path.join(action, file)))
})
