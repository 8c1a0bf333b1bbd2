// The tree of keys: what it costs a server whose keys change, names of any length, a million keys that come and go, and
// what a row shows.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { paced } from '../../src/server/page/assets/pacing.js'
import { close, keyAddress, look, opened, start, startWithFixture, until, visit } from './harness.mjs'

after(close)

const bodyOf = request => request.postData() ?? ''
const isTree = request => bodyOf(request).includes('"TREE"')

test('looks come one after the other, with a rest between them unless a person waits', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let time = 0
  const ends = []
  const pace = paced(() => new Promise(end => ends.push(end)), () => time)
  const end = async took => {
    time += took
    ends[ends.length - 1]()
    await new Promise(setImmediate)
  }
  const pass = ms => {
    time += ms
    t.mock.timers.tick(ms)
  }
  pace.want()
  pace.want()
  pace.want(true)
  assert.equal(ends.length, 1, 'one is under way')
  await end(100)
  assert.equal(ends.length, 2, 'a person waits for the next')
  pace.want()
  await end(100)
  assert.equal(ends.length, 2, 'the server rests')
  pass(199)
  pace.want()
  assert.equal(ends.length, 2)
  pass(1)
  assert.equal(ends.length, 3)
  await end(50)
  pass(10_000)
  assert.equal(ends.length, 3, 'nobody wants another one')
  pace.want()
  pace.want()
  pace.stop()
  await end(100)
  pass(10_000)
  assert.equal(ends.length, 4, 'the last one has ended, and nothing comes after it')
})

test('one look at the tree is under way at a time, however often keys change', async t => {
  const { server, page } = await opened(t, 'keys')
  const jobs = page.locator('tr[aria-level="1"]', { hasText: 'jobs:' })
  await jobs.waitFor()
  let [underWay, most, all] = [0, 0, 0]
  let release
  const held = new Promise(resolve => (release = resolve))
  await page.route('**/command', async route => {
    if (!isTree(route.request())) return route.continue()
    underWay += 1
    all += 1
    most = Math.max(most, underWay)
    await held
    underWay -= 1
    await route.continue()
  })
  const before = Number((await server.call('DBSIZE')).integer)
  for (let number = 1; number <= 4; number += 1) {
    await server.call('SET', `jobs:${number}`, 'x')
    // The rest of the page has looked again, so the tree would have, too.
    await page.locator('.total', { hasText: `${before + number} keys` }).waitFor()
  }
  assert.deepEqual([underWay, all], [1, 1])
  release()
  await jobs.getByText('6', { exact: true }).waitFor()
  assert.equal(most, 1)
})

test('a namespace that a person opens is asked for at once, after a long look too', async t => {
  const { page } = await opened(t, 'keys')
  await page.locator('tr[aria-level="1"]', { hasText: 'user:' }).waitFor()
  const asked = []
  page.on('request', request => isTree(request) && asked.push(bodyOf(request)))
  await page.locator('.namespace', { hasText: 'user:' }).click()
  await page.locator('tr[aria-level="2"]').first().waitFor()
  assert.equal(asked.filter(body => body.includes('"user:"')).length, 1)
})

test('names of many megabytes are shown by their beginnings, and the others beside them', async t => {
  for (const options of [['--test-kit', 'yes'], []]) {
    const server = await start(t, options)
    await server.call('EVAL', `redis.call('SET', string.rep('k', 10485760), 'x')
      for i = 1, 20 do redis.call('SET', 'long:' .. i .. ':' .. string.rep('n', 1048576), 'x') end
      for i = 1, 3 do redis.call('SET', 'wide' .. string.rep('w', 20000) .. ':' .. i, 'x') end
      redis.call('SET', 'short', 'x')`, '0')
    const page = await visit(server)
    await look(page, 'keys')
    await page.locator('.key', { hasText: /^short$/ }).waitFor()
    const row = page.locator('tr', { hasText: 'kkkkk… (10 MiB)' })
    await row.getByText('too long for this page').waitFor()
    assert.equal(await page.locator('.problem').count(), 0)
    await page.locator('.namespace', { hasText: 'long:' }).click()
    await page.locator('tr[aria-level="2"]').nth(19).waitFor()
    await look(page, 'keys?glob=*nnnn*')
    await page.getByText('20 keys like *nnnn*').waitFor()
    await page.locator('tr', { hasText: /nnnn… \(1\.0 MiB\)/ }).first().getByText('too long for this page').waitFor()
    assert.equal(await page.locator('.problem').count(), 0)
  }
})

test('a key that no request has room for is told from one that is missing', async t => {
  const server = await start(t)
  const page = await visit(server)
  const sent = []
  page.on('request', request => sent.push(bodyOf(request).length))
  await look(page, 'value')
  await page.getByLabel('Key', { exact: true }).fill('k'.repeat(300_000))
  await page.keyboard.press('Enter')
  await page.getByText('This key is too long for the page').waitFor()
  await page.getByText('Its name has 293 KiB.').waitFor()
  assert(sent.every(length => length < 300_000), 'it is not sent')
  const most = 'k'.repeat(190_000)
  await server.call('SET', most, 'within')
  await look(page, keyAddress(most))
  await page.waitForFunction(() => document.querySelector('textarea')?.value === 'within')
})

/** The children of the top of the tree, as DUNLIN TREE replies them. */
const childrenIn = reply => new Map(reply.map).get('children').map(child => Object.fromEntries(child.map))

test('of a million keys that come and go each tree has the number that there is', async t => {
  const server = await start(t)
  const [namespaces, keys] = [1000, 1_000_000]
  for (let from = 0; from < namespaces; from += 200) {
    await server.call('EVAL', `for n = ARGV[1], ARGV[1] + 199 do
        local words = {}
        for i = 1, 1000 do words[2 * i - 1] = string.format('n%03d:%d', n, i) words[2 * i] = 'x' end
        redis.call('MSET', unpack(words))
      end`, '0', String(from))
  }
  const page = await visit(server)
  const sums = []
  page.on('response', async answer => {
    if (!isTree(answer.request())) return
    const children = childrenIn(JSON.parse(await answer.text().catch(() => 'null'))?.replies[0] ?? { map: [['children', []]] })
    if (children.length) sums.push(children.reduce((sum, child) => sum + Number(child.keys.integer), 0))
  })
  await look(page, 'keys')
  const row = name => page.locator('tr[aria-level="1"]', { hasText: name })
  // A server that is not optimized counts for some seconds.
  const long = { timeout: 300_000 }
  await row('n000:').getByText('1,000', { exact: true }).waitFor(long)
  // Keys move from a namespace to another, each in one step: at any moment there are as many.
  const move = `for i = ARGV[1], ARGV[1] + 9 do
      redis.call('DEL', string.format('n%03d:%d', i % 999 + 1, math.floor(i / 999) + 1))
      redis.call('SET', 'n000:new:' .. i, 'x')
    end`
  let moved = 0
  for (; moved < 500 || sums.length < 2; moved += 10) {
    await server.call('EVAL', move, '0', String(moved))
    await page.evaluate(() => new Promise(requestAnimationFrame))
    assert(moved < 900_000, 'the page looks again while keys change')
  }
  assert.equal((await server.call('DBSIZE')).integer, String(keys))
  await row('n000:').getByText((1000 + moved).toLocaleString('en'), { exact: true }).waitFor(long)
  await page.locator('.total', { hasText: '1,000,000 keys' }).waitFor()
  assert.deepEqual([...new Set(sums)], [keys], 'each tree has all keys of its moment')
})

test('namespaces end where one says, and a row has types, a share and the deadline of its key', async t => {
  const server = await startWithFixture(t)
  await server.run([['SET', 'path/one', 'x'], ['SET', 'path/two', 'x'], ['RPUSH', 'path/three', 'x'], ['SET', 'mixed:a', 'x'], ['RPUSH', 'mixed:b', 'x'], ['RPUSH', 'mixed:c', 'x']])
  const page = await visit(server)
  await look(page, 'keys')
  const mixed = page.locator('tr', { hasText: 'mixed:' })
  await mixed.getByText('string 1', { exact: true }).waitFor()
  await mixed.getByText('list 2', { exact: true }).waitFor()
  await page.locator('.key', { hasText: 'path/one' }).waitFor()
  await page.getByLabel('Namespaces end at').selectOption('/')
  await page.locator('.namespace', { hasText: 'path/' }).waitFor()
  await page.locator('tr', { hasText: 'path/' }).getByText('3', { exact: true }).waitFor()
  await page.locator('.key', { hasText: 'user:1:session' }).waitFor()
  // Without namespaces at colons the keys with a deadline are in rows of their own.
  const row = page.locator('tr', { hasText: 'user:1:session' })
  await row.locator('.type', { hasText: 'string' }).waitFor()
  const width = async () => parseFloat(await row.locator('.deadline .bar > span').evaluate(bar => bar.style.width))
  await row.getByText('1 h 0 min').waitFor()
  const before = await width()
  await server.call('DUNLIN', 'ADVANCE', String(50 * 60_000))
  await row.getByText('10 min 0 s').waitFor()
  await until('the bar is shorter', async () => (await width()) < before)
})
