// Every button of the view of a value: the command that the strip shows is the one that was sent, and the key is what it
// makes of it. And each way to show what a key is.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { close, keyAddress, look, opened, sends, TIME } from './harness.mjs'

after(close)

const number = async (server, ...words) => (await server.call(...words)).integer

/** Fills the fields of a form by their names, and sends it. */
async function fill(page, form, fields, line, told) {
  const element = page.getByRole('form', { name: form, exact: true })
  for (const [label, text] of Object.entries(fields)) await element.getByLabel(label, { exact: true }).fill(text)
  await sends(page, element.getByRole('button', { name: form, exact: true }), line, told)
}

const button = (page, name) => page.getByRole('button', { name, exact: true })

test('a string is saved, counted up and down, and shown as what it is', async t => {
  const { server, page } = await opened(t, keyAddress('user:3:note'))
  await page.getByLabel('Value', { exact: true }).fill('other')
  await sends(page, button(page, 'Save'), 'SET user:3:note other KEEPTTL', 'OK')
  assert.equal(await server.call('GET', 'user:3:note'), 'other')

  await look(page, keyAddress('visits'))
  let value = 1842
  for (const [name, step] of [['−100', -100], ['−10', -10], ['−1', -1], ['+1', 1], ['+10', 10], ['+100', 100]]) {
    value += step
    await sends(page, button(page, name), `INCRBY visits ${step}`, `(integer) ${value}`)
  }
  await page.locator('.figure', { hasText: /^1,842$/ }).waitFor()
  await page.getByRole('tab', { name: 'Text' }).click()
  assert.equal(await page.getByLabel('Value', { exact: true }).inputValue(), '1842')
  await page.getByRole('tab', { name: 'Bits' }).click()
  await page.getByRole('img', { name: /^\d+ bits are 1$/ }).waitFor()

  const content = page.locator('.content')
  await look(page, keyAddress('user:1:session'))
  assert.equal(await page.getByRole('tab', { selected: true }).textContent(), 'JSON')
  assert.match(await page.getByLabel('Value', { exact: true }).inputValue(), /^\{\n {2}"user": 1,\n {2}"cart": \[/)
  await look(page, keyAddress('packed'))
  await content.getByText('"name": "Ann"').waitFor()
  assert.equal(await page.getByRole('tab', { selected: true }).textContent(), 'MessagePack')
  assert.equal(await content.textContent(), '{\n  "name": "Ann",\n  "years": 42\n}')
  await look(page, keyAddress('pickled'))
  await content.getByText('Python pickle, protocol 4').waitFor()
  await content.getByText('a pickle can run code').waitFor()
  await look(page, keyAddress('seen:2026-07-02'))
  await page.locator('.figure', { hasText: '≈ 12' }).waitFor()
  await look(page, keyAddress('online:2026-07-02'))
  await page.locator('.value', { hasText: '3 of 208 bits are 1' }).waitFor()
})

test('a key gets a deadline, loses it, gets another name, and is deleted', async t => {
  const { server, page } = await opened(t, keyAddress('user:3:note'))
  for (const [name, seconds] of [['1 min', 60], ['1 h', 3600], ['1 day', 86_400]]) {
    await sends(page, button(page, `Expire in ${name}`), `EXPIRE user:3:note ${seconds}`, '(integer) 1')
    assert.equal(await number(server, 'TTL', 'user:3:note'), String(seconds))
  }
  await fill(page, 'Expire', { Seconds: '7' }, 'EXPIRE user:3:note 7', '(integer) 1')
  await page.locator('.facts .left', { hasText: '7.0 s' }).waitFor()
  await sends(page, button(page, 'Persist'), 'PERSIST user:3:note', '(integer) 1')
  await page.locator('.facts dd', { hasText: /^none$/ }).waitFor()
  await fill(page, 'Rename', { 'New name': 'visits' }, 'RENAMENX user:3:note visits', '(integer) 0')
  assert.equal(await number(server, 'EXISTS', 'user:3:note'), '1', 'the other key is not replaced')
  await look(page, keyAddress('user:3:note'))
  await page.locator('.keyname', { hasText: 'user:3:note' }).waitFor()
  await fill(page, 'Rename', { 'New name': 'renamed' }, 'RENAMENX user:3:note renamed', '(integer) 1')
  await page.locator('.keyname', { hasText: /^renamed$/ }).waitFor()
  await sends(page, button(page, 'Delete'), 'UNLINK renamed', '(integer) 1')
  await page.getByText('There is no such key').waitFor()
  const form = page.getByRole('form', { name: 'SET', exact: true })
  await form.getByLabel('Value', { exact: true }).fill('made anew')
  assert.deepEqual([await page.locator('.strip .verb').textContent(), await page.locator('.strip .sent').textContent()], ['Sends', 'SET renamed "made anew"'])
  await sends(page, form.getByRole('button', { name: 'SET' }), 'SET renamed "made anew"', 'OK')
  await page.waitForFunction(() => document.querySelector('textarea')?.value === 'made anew')
  assert.equal(await server.call('GET', 'renamed'), 'made anew')
})

test('a list is pushed and popped at both ends', async t => {
  const { server, page } = await opened(t, keyAddress('jobs:queue'))
  await fill(page, 'LPUSH', { 'New element at the head': 'first of all' }, 'LPUSH jobs:queue "first of all"', '(integer) 6')
  await fill(page, 'RPUSH', { 'New element at the tail': 'last' }, 'RPUSH jobs:queue last', '(integer) 7')
  await page.locator('tr', { hasText: 'tail' }).getByText('last', { exact: true }).waitFor()
  await page.locator('tr', { hasText: 'head' }).getByText('first of all', { exact: true }).waitFor()
  await sends(page, button(page, 'LPOP'), 'LPOP jobs:queue', '"first of all"')
  await sends(page, button(page, 'RPOP'), 'RPOP jobs:queue', '"last"')
  assert.deepEqual(await server.call('LRANGE', 'jobs:queue', '0', '-1'), ['job-1', 'job-2', 'job-3', 'job-4', 'job-5'])
})

test('a set gains and loses members', async t => {
  const { server, page } = await opened(t, keyAddress('tags'))
  await fill(page, 'SADD', { 'New member': 'deep blue' }, 'SADD tags "deep blue"', '(integer) 1')
  await sends(page, button(page, 'Remove red'), 'SREM tags red', '(integer) 1')
  await button(page, 'Remove red').waitFor({ state: 'detached' })
  assert.deepEqual((await server.call('SMEMBERS', 'tags')).set.sort(), ['blue', 'deep blue', 'green', 'yellow'])
})

test('fields of a hash are set, edited, deleted, and have deadlines of their own', async t => {
  const { server, page } = await opened(t)
  const deadline = async field => (await server.call('HTTL', 'user:1', 'FIELDS', '1', field))[0].integer
  await look(page, keyAddress('user:1'))
  await page.locator('tr', { hasText: '7f3a' }).getByText('5 min 0 s').waitFor()
  await fill(page, 'HSET', { Field: 'zip', Value: '8000' }, 'HSET user:1 zip 8000', '(integer) 1')
  await fill(page, 'HEXPIRE', { 'Field to expire': 'city', Seconds: '90' }, 'HEXPIRE user:1 90 FIELDS 1 city', '1) (integer) 1')
  assert.equal(await deadline('city'), '90')
  await sends(page, button(page, 'Persist token'), 'HPERSIST user:1 FIELDS 1 token', '1) (integer) 1')
  assert.equal(await deadline('token'), '-1')
  await sends(page, button(page, 'Delete visits'), 'HDEL user:1 visits', '(integer) 1')
  await button(page, 'Edit zip').click()
  await page.getByRole('textbox', { name: 'zip' }).fill('8001')
  await sends(page, button(page, 'Save'), 'HSET user:1 zip 8001', '(integer) 0')
  assert.deepEqual(Object.fromEntries((await server.call('HGETALL', 'user:1')).map), { name: 'Ann Lee', city: 'Zürich', token: '7f3a', zip: '8001' })
})

test('a leaderboard has its order, and its scores change', async t => {
  const { page } = await opened(t)
  const members = () => page.locator('.table.zset td[data-name="Member"]').allTextContents()
  await look(page, keyAddress('board'))
  await page.locator('.table.zset tr', { hasText: 'gus' }).waitFor()
  assert.deepEqual(await members(), ['ann', 'ben', 'cleo', 'dan', 'eve', 'finn', 'gus'])
  await sends(page, button(page, '1 more for gus'), 'ZINCRBY board 1 gus', '(double) 13')
  await fill(page, 'ZADD', { Score: '9000', Member: 'hal' }, 'ZADD board 9000 hal', '(integer) 1')
  await page.locator('.table.zset tr[aria-rowindex="2"]', { hasText: 'hal' }).waitFor()
  await button(page, 'Edit the score of ben').click()
  await page.getByRole('textbox', { name: 'the score of ben' }).fill('1.5')
  await sends(page, button(page, 'Save'), 'ZADD board XX 1.5 ben', '(integer) 0')
  await sends(page, button(page, 'Remove ann'), 'ZREM board ann', '(integer) 1')
  await button(page, 'Remove ann').waitFor({ state: 'detached' })
  assert.deepEqual(await members(), ['hal', 'cleo', 'dan', 'eve', 'finn', 'gus', 'ben'])
  await page.getByRole('tab', { name: 'Lowest first' }).click()
  await page.locator('.table.zset tr[aria-rowindex="2"]', { hasText: 'ben' }).waitFor()
  await look(page, keyAddress('cities'))
  await page.getByRole('img', { name: '4 places, by longitude and latitude' }).waitFor()
  assert.deepEqual((await page.locator('.places .label').allTextContents()).sort(), ['Berlin', 'London', 'Paris', 'Zürich'])
})

test('a stream gains entries and groups, and entries are acknowledged', async t => {
  const { server, page } = await opened(t, keyAddress('events'))
  await fill(page, 'XADD', { 'Fields and values': 'kind order id 19' }, 'XADD events * kind order id 19', /^"\d+-0"$/)
  await page.locator('.table.stream tr', { hasText: '19' }).first().waitFor()
  await sends(page, button(page, 'Delete 1782986100000-0'), 'XDEL events 1782986100000-0', '(integer) 1')
  await button(page, 'Delete 1782986100000-0').waitFor({ state: 'detached' })
  assert.equal(await number(server, 'XLEN', 'events'), '3')
  await page.getByRole('tab', { name: 'Groups' }).click()
  await fill(page, 'XGROUP CREATE', { Group: 'audit' }, 'XGROUP CREATE events audit $', 'OK')
  await sends(page, button(page, 'Destroy audit'), 'XGROUP DESTROY events audit', '(integer) 1')
  await button(page, 'Destroy audit').waitFor({ state: 'detached' })
  await server.call('XREADGROUP', 'GROUP', 'billing', 'worker', 'COUNT', '2', 'STREAMS', 'events', '>')
  await page.locator('tr', { hasText: 'worker' }).first().waitFor()
  await sends(page, button(page, 'Acknowledge 1782986160000-0'), 'XACK events billing 1782986160000-0', '(integer) 1')
  await button(page, 'Acknowledge 1782986160000-0').waitFor({ state: 'detached' })
  await sends(page, button(page, 'Give again: 1782986220000-0'), 'XCLAIM events billing worker 0 1782986220000-0', /^1\) /)
  assert.equal((await server.call('XPENDING', 'events', 'billing'))[0].integer, '1')
})

test('a vector set is searched from an element, by a condition, and edited', async t => {
  const { server, page } = await opened(t, keyAddress('films'))
  await page.getByText('4 vectors of 3 dimensions').waitFor()
  await page.getByLabel('Similar to', { exact: true }).fill('Solaris')
  await page.getByLabel('Condition', { exact: true }).fill('.year > 1925')
  await button(page, 'VSIM').click()
  const first = page.locator('.table.zset tr[aria-rowindex="2"]')
  await first.getByText('Solaris').waitFor()
  await page.locator('tr', { hasText: 'Nosferatu' }).waitFor({ state: 'detached' })
  await page.getByLabel('Condition', { exact: true }).fill('')
  await button(page, 'VSIM').click()
  await button(page, 'Nosferatu').click()
  await first.getByText('Nosferatu').waitFor()
  await button(page, 'Edit the attributes of Nosferatu').click()
  await page.getByRole('textbox', { name: 'the attributes of Nosferatu' }).fill('{"year":1921}')
  await sends(page, button(page, 'Save'), 'VSETATTR films Nosferatu "{\\"year\\":1921}"', /1|true/)
  assert.equal(await server.call('VGETATTR', 'films', 'Nosferatu'), '{"year":1921}')
  await sends(page, button(page, 'Remove Stalker'), 'VREM films Stalker', /1|true/)
  await page.locator('tr', { hasText: 'Stalker' }).waitFor({ state: 'detached' })
})

test('a key is shown as the commands that make it', async t => {
  const { page } = await opened(t)
  for (const [key, commands] of [['visits', ['SET visits 1842']], ['user:2:session', ['SET user:2:session', `PEXPIREAT user:2:session ${TIME + 59_000}`]]]) {
    await look(page, keyAddress(key))
    await page.getByText('As commands').click()
    const text = await page.locator('.commands pre').textContent()
    for (const command of commands) assert(text.includes(command), `${command} in ${text}`)
    assert(!text.includes('SELECT'))
  }
  assert.equal(await page.locator('.problem').count(), 0)
})
