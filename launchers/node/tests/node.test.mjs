// The set-up for Node's own runner: a failing test shows its journal, a passing one nothing, and files run in parallel.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import { test } from 'node:test'
import { world } from 'dunlin/node'
import { fakeProgram, run } from './support.mjs'

test('a world is given to a test', async t => {
  const dunlin = await world(t)
  await dunlin.call('SET', 'key', 'value')
  assert.equal(await dunlin.diff('SET key value'), '')
})

test('an import waits for the server, and the first world tells why there is none', async t => {
  const folder = fs.mkdtempSync(`${os.tmpdir()}/dunlin-test-`)
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const ended = JSON.stringify(`${folder}/ended`)
  const program = `setTimeout(() => { require('fs').writeFileSync(${ended}, ''); process.exit(3) }, 100)`
  const script = `
    import fs from 'node:fs'
    import { world } from 'dunlin/node'
    console.log(fs.existsSync(${ended}))
    await world().catch(error => console.log(error.message))`
  const env = { DUNLIN_BINARY: fakeProgram(folder, program) }
  const { output } = await run(['--input-type=module', '--eval', script], { env })
  assert.match(output, /^true\ndunlin: .* did not start: it ended with status 3/)
})

test('a script can require it', async () => {
  const script = "console.log(typeof require('dunlin/node').world)"
  assert.equal((await run(['--eval', script])).output, 'function\n')
})

test('a failing test shows its last commands and its seed', async () => {
  const env = { DUNLIN_SEED: '77' }
  const { output } = await run(['--test', '--test-reporter=tap', 'fixtures/failing.mjs'], { env })
  assert.match(output, /# dunlin: the seed was 77 \(DUNLIN_SEED=77 repeats it\)/)
  assert.match(output, /# the last 20 of 30 commands:\n# {3}client \d+: SET key 10 -> OK\n/)
  assert.match(output, /# {3}client \d+: SET key 29 -> OK/)
})

test('a test that ends its world passes', async () => {
  const { output, status } = await run(['--test', '--test-reporter=tap', 'fixtures/ending.mjs'])
  assert.equal(status, 0, output)
})

test('a test whose world does not reply ends, without a report', async () => {
  const { output, status } = await run(['--test', '--test-reporter=tap', 'fixtures/stuck.mjs'])
  assert.equal(status, 1)
  assert.match(output, /error: 'the reason of the test'[^]*# dunlin: there is no report: the server does not reply\n/)
})

test('a test fails by what strict mode finds at its end', async () => {
  const { output, status } = await run(['--test', '--test-reporter=tap', 'fixtures/strict.mjs'])
  assert.equal(status, 1)
  assert.match(output, /not ok 1 - it leaves a set behind[^]*strict mode found 1: error unbounded-collection/)
})

test('a passing test shows nothing, and files that run at once do not meet', async () => {
  const files = [1, 2, 3, 4].map(each => `fixtures/passing${each}.mjs`)
  const { output, errors, status } = await run(['--test', '--test-reporter=tap', '--test-concurrency=4', ...files])
  assert.deepEqual([status, errors], [0, ''])
  assert.match(output, /# pass 100\n/)
  assert.doesNotMatch(output, /# dunlin|# the last/)
})
