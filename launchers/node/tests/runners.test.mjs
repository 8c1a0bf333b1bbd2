// The set-ups for Jest and Vitest, the types, and clients, where these packages are installed.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { createClient } from 'redis'
import { processesWith, run, until, world } from './support.mjs'

const JEST = 'node_modules/jest/bin/jest.js'
const VITEST = 'node_modules/vitest/vitest.mjs'
const TSC = 'node_modules/typescript/bin/tsc'

/** Runs a program of a package in a folder here; no process that it started may be left. */
async function runIn(folder, program, ...args) {
  const mark = randomUUID()
  const env = { CI: 'true', FORCE_COLOR: undefined, NO_COLOR: '1', DUNLIN_TEST_MARK: mark }
  const result = await run([path.resolve(program), ...args], { cwd: `runners/${folder}`, env })
  if (process.platform === 'linux') await until(() => processesWith(mark).length === 0)
  return result
}

for (const workers of ['--maxWorkers=4', '--runInBand']) {
  test(`Jest passes with ${workers}, and ends by itself`, async () => {
    const { output, errors, status } = await runIn('jest', JEST, workers)
    assert.equal(status, 0, output + errors)
    assert.match(errors, /Tests: +18 passed, 18 total/)
    assert.doesNotMatch(errors, /did not exit|force exited|dunlin: the seed/)
  })
}

test('in Jest a failing test shows its last commands, and findings fail a test', async () => {
  const { errors, status } = await runIn('jest-failing', JEST)
  assert.equal(status, 1)
  assert.match(errors, /it fails\ndunlin: the seed was 5 [^]*SET key of the failing test -> OK/)
  assert.match(errors, /● it leaves a set behind[^]*strict mode found 1: error unbounded-collection/)
  assert.match(errors, /Tests: +2 failed, 2 total/)
})

test('in Jest an error of the report hides no result', async () => {
  const { errors, status } = await runIn('jest-dropped', JEST)
  assert.equal(status, 1)
  assert.match(errors, /it drops the world\ndunlin: there is no report: no reply to DUNLIN STRICT FINDINGS/)
  assert.match(errors, /● it drops the world[^]*the reason of the test/)
  assert.match(errors, /● it has no world[^]*no reply to DUNLIN STRICT CLEAR, as the world .* has been dropped/)
  assert.match(errors, /Tests: +2 failed, 1 passed, 3 total/)
})

test('in a folder with several projects Jest finds its environment from the folder of one', async t => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'dunlin-test-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const app = `${folder}/packages/app`
  fs.cpSync('runners/jest', app, { recursive: true })
  fs.symlinkSync(path.resolve('node_modules'), `${app}/node_modules`)
  fs.writeFileSync(`${folder}/jest.config.js`, "module.exports = { projects: ['packages/app'] }")
  const { errors, status } = await run([`${app}/node_modules/jest/bin/jest.js`], { cwd: folder })
  assert.equal(status, 0, errors)
})

for (const pool of ['threads', 'forks', 'vmThreads']) {
  test(`Vitest passes with the pool ${pool}`, async () => {
    const { output, errors, status } = await runIn('vitest', VITEST, 'run', `--pool=${pool}`)
    assert.equal(status, 0, output + errors)
    assert.match(output, /Tests +18 passed \(18\)/)
    assert.doesNotMatch(output + errors, /dunlin: the seed/)
  })
}

test('in Vitest a failing test shows its last commands, and findings fail a test', async () => {
  const { output, errors, status } = await runIn('vitest-failing', VITEST, 'run')
  assert.equal(status, 1)
  assert.match(output + errors, /dunlin: the seed was 5 [^]*SET key of the failing test -> OK/)
  assert.match(output + errors, /strict mode found 1: error unbounded-collection/)
  assert.match(output, /Tests +2 failed \(2\)/)
})

test('the types are those of the package', async () => {
  const { output, status } = await runIn('types', TSC, '--project', '.')
  assert.equal(status, 0, output)
})

test('what the pages show passes', async () => {
  const folder = 'runners/pages'
  fs.mkdirSync(folder, { recursive: true })
  for (const page of ['node.md', 'README.md', 'PACKAGE.md']) {
    const text = fs.readFileSync(`pages/${page}`, 'utf8')
    for (const [, block, name] of text.matchAll(/\n```js\n(\/\/ (\S+)\n[^]*?)```\n/g)) {
      assert(!fs.existsSync(`${folder}/${name}`), `${page}: ${name} is there already`)
      fs.writeFileSync(`${folder}/${name}`, block)
    }
  }
  const names = fs.readdirSync(folder).filter(name => name.endsWith('.test.mjs'))
  const node = await run(['--test', '--test-reporter=tap', ...names], { cwd: folder })
  assert.match(node.output, new RegExp(`# pass ${names.length}\n[^]*# fail 0\n`))
  const vitest = await runIn('pages', VITEST, 'run', 'spec.mjs')
  assert.match(vitest.output, /Tests +1 passed \(1\)/, vitest.errors)
  const jest = await runIn('pages', JEST, 'spec.js$')
  assert.match(jest.errors, /Tests: +2 passed, 2 total/)
})

const withoutBullmq = !fs.existsSync('node_modules/bullmq') && !process.env.DUNLIN_TEST_EVERYTHING

test('the suite of an application with BullMQ passes', { skip: withoutBullmq && 'BullMQ is not installed' }, async () => {
  const command = path.resolve('node_modules/.bin/dunlin')
  const words = ['run', '--', process.execPath, '--test', '--test-reporter=tap']
  const { output, status } = await run([command, ...words], { cwd: 'application' })
  assert.equal(status, 0, output)
  assert.match(output, /# pass 4\n# fail 0\n/)
})

test('ioredis by client(), and node-redis by the url and by a port, are in the world', async t => {
  const dunlin = await world(t)
  const redis = dunlin.client()
  await redis.set('key', 'value')
  assert.equal(await redis.call('DUNLIN', 'WORLD'), dunlin.name)
  const { host, port } = await dunlin.listen()
  for (const options of [{ url: dunlin.url }, { socket: { host, port } }]) {
    const client = await createClient(options).connect()
    assert.equal(await client.get('key'), 'value')
    await client.destroy()
  }
  const ended = once(redis, 'end')
  await dunlin.drop()
  await ended
})
