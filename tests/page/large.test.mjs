// Large data in a browser: values of any size are looked at with bounded memory and in bounded time, and of a list of any
// length every row can be reached.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { close, keyAddress, look, start, visit } from './harness.mjs'

after(close)

/** A figure of the program's memory in MiB. */
const memory = (server, name) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024

/** Fills a collection in a script, `count` times: `#` in the words is the number, from 0. */
async function fill(server, count, command) {
  const script = `for at = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1, 1000 do
      local words = {}
      for number = at, math.min(at + 1000, tonumber(ARGV[2])) - 1 do
        for index = 5, #ARGV do words[#words + 1] = (string.gsub(ARGV[index], '#', string.format('%.0f', number))) end
      end
      redis.call(ARGV[3], ARGV[4], unpack(words))
    end`
  for (let from = 0; from < count; from += 200_000) {
    await server.call('EVAL', script, '0', String(from), String(Math.min(count, from + 200_000)), ...command)
  }
}

test('elements, members, fields and values of a megabyte are shown by their beginnings', async t => {
  const server = await start(t)
  const large = 'redis.call(KEYS[1], KEYS[2], ARGV[1] .. string.rep(ARGV[2], 1048576), unpack(ARGV, 3))'
  for (let number = 0; number < 20; number += 1) {
    await server.call('EVAL', large, '2', 'RPUSH', 'list', `${number} `, 'x')
    await server.call('EVAL', large, '2', 'SADD', 'set', `${number} `, 'x')
    await server.call('EVAL', large, '2', 'HSET', 'hash', `${number} `, 'x', 'value of a long field')
    await server.call('EVAL', "redis.call('ZADD', 'zset', ARGV[1], ARGV[1] .. string.rep('x', 1048576)) redis.call('XADD', 'stream', '*', 'field', ARGV[1] .. string.rep('x', 1048576))", '0', String(number))
  }
  await server.call('HSET', 'hash', 'short', 'v')
  const page = await visit(server)
  for (const [key, kind] of [['list', 'list'], ['set', 'set'], ['hash', 'hash'], ['zset', 'zset'], ['stream', 'stream']]) {
    await look(page, keyAddress(key))
    await page.locator(`.table.${kind} tbody tr`, { hasText: 'xxxxx… (1.0 MiB)' }).first().waitFor()
    assert.equal(await page.locator('.problem').count(), 0, key)
  }
  await look(page, keyAddress('set'))
  await page.getByText('too long for this page').first().waitFor()
  assert.equal(await page.getByRole('button', { name: /^Remove/ }).count(), 0, 'what is not whole cannot be sent')
  await look(page, keyAddress('hash'))
  await page.getByRole('button', { name: 'Expire in 1 min: short' }).waitFor()
  await look(page, 'console')
  await page.getByRole('textbox', { name: 'Command', exact: true }).fill('LRANGE list 0 -1')
  await page.keyboard.press('Enter')
  await page.locator('.log pre', { hasText: '0 xxxxx' }).waitFor()
})

test('deadlines of many long fields are asked for in several requests', async t => {
  const server = await start(t)
  for (let number = 0; number < 150; number += 1) {
    const field = `${number} ${'f'.repeat(10_000)}`
    await server.run([['HSET', 'hash', field, 'v'], ['HEXPIRE', 'hash', '3600', 'FIELDS', '1', field]])
  }
  const page = await visit(server)
  await look(page, keyAddress('hash'))
  await page.locator('.table.hash .deadline').first().waitFor()
  assert.equal(await page.getByRole('button', { name: /^Expire in 1 min: \d/ }).count(), 0, 'every field has its deadline')
})

test('of two million elements the last row is reached, and rows near it come one after the other', async t => {
  const server = await start(t)
  await fill(server, 2_000_000, ['RPUSH', 'queue', 'job-#'])
  await fill(server, 2_000_000, ['ZADD', 'ranks', '#', 'member-#'])
  const page = await visit(server)
  const places = table => table.evaluate(element => {
    const box = element.getBoundingClientRect()
    const rows = [...element.querySelectorAll('tbody tr:not(.gap)')].filter(row => row.getBoundingClientRect().bottom > box.top + 40 && row.getBoundingClientRect().top < box.bottom)
    return rows.map(row => Number(row.getAttribute('aria-rowindex')) - 2)
  })
  for (const [key, kind, last] of [['queue', 'list', 'job-1999999'], ['ranks', 'zset', 'member-0']]) {
    await look(page, keyAddress(key))
    const table = page.locator(`.table.${kind}`)
    await page.locator('.total', { hasText: '2,000,000' }).waitFor()
    await table.evaluate(element => (element.scrollTop = element.scrollHeight))
    await table.locator('td', { hasText: new RegExp(`^${last}(Edit)?$`) }).waitFor()
    assert.equal((await places(table)).at(-1), 1_999_999)
    // By the wheel every row comes by.
    await table.hover()
    const seen = new Set(await places(table))
    while (Math.min(...seen) >= 1_999_900) {
      const before = await table.evaluate(element => element.scrollTop)
      await page.mouse.wheel(0, -200)
      await page.waitForFunction(([element, before]) => element.scrollTop !== before, [await table.elementHandle(), before])
      for (const place of await places(table)) seen.add(place)
    }
    assert.equal(seen.size, 2_000_000 - Math.min(...seen), 'no row was left out')
    // The middle is in the middle.
    await table.evaluate(element => (element.scrollTop = (element.scrollHeight - element.clientHeight) / 2))
    await page.waitForFunction(element => Math.abs(Number(element.querySelector('tbody tr:not(.gap)').getAttribute('aria-rowindex')) - 1_000_000) < 1000, await table.elementHandle())
    await table.evaluate(element => (element.scrollTop = 0))
    await page.waitForFunction(element => element.querySelector('tbody tr:not(.gap)').getAttribute('aria-rowindex') === '2', await table.elementHandle())
  }
})

test('half a gigabyte and a set of a million members are looked at in little memory and few bytes', async t => {
  const server = await start(t)
  await server.call('SETRANGE', 'wide', String((512 << 20) - 4), 'last')
  await fill(server, 1_000_000, ['SADD', 'many', 'member-#'])
  const page = await visit(server)
  // From here on the system notes the most memory anew.
  writeFileSync(`/proc/${server.pid}/clear_refs`, '5')
  const before = memory(server, 'VmRSS')
  // Sizes are asked for at the end: a request that finishes while the page closes has none.
  const finished = []
  page.on('requestfinished', request => finished.push(request))
  await look(page, keyAddress('wide'))
  await page.getByText('0 B to 64 KiB of 512 MiB').waitFor()
  await look(page, keyAddress('many'))
  await page.locator('.total', { hasText: '1,000,000' }).waitFor()
  await page.locator('.table.set tbody tr', { hasText: 'member-' }).first().waitFor()
  assert(await page.locator('tbody tr').count() <= 202)
  await look(page, 'console')
  await page.getByRole('textbox', { name: 'Command', exact: true }).fill('GET wide')
  await page.keyboard.press('Enter')
  await page.locator('.log pre', { hasText: '(512 MiB)' }).waitFor()
  const [grown, sizes] = [memory(server, 'VmHWM') - before, await Promise.all(finished.map(request => request.sizes()))]
  assert(grown < 64, `the server had ${grown} MiB more`)
  const sent = sizes.reduce((sum, size) => sum + size.responseBodySize, 0)
  assert(sent < 4 << 20, `${sent} bytes were sent`)
})
