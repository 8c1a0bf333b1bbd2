// Load: rates, how long commands took, what was slow, clients and what they wait for, channels and what is published.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { close, look, opened, sends, startWithFixture, until, visit } from './harness.mjs'

after(close)

const button = (page, name) => page.getByRole('button', { name, exact: true })
const row = (page, text) => page.locator('.table.short tbody tr', { hasText: text })
const cell = (row, name) => row.locator(`td[data-name="${name}"]`)

/** Opens a part of the view. */
async function part(page, name) {
  await look(page, 'load')
  await page.getByRole('tab', { name, exact: true }).click()
}

test('commands are counted, with their failures, and how long each took', async t => {
  const { server, page } = await opened(t)
  await part(page, 'Commands')
  await server.shop(...Array(50).fill(['INCR', 'visits']), ['LPUSH', 'visits', 'x'])
  await cell(row(page, 'incr'), 'Calls').getByText('50', { exact: true }).waitFor()
  assert.match(await cell(row(page, 'incr'), 'Mean').textContent(), /^\d+(\.\d)? (µs|ms)$/)
  await cell(row(page, 'lpush'), 'Failed').getByText('1', { exact: true }).waitFor()
  // A rate is that of a second, so commands come until one is seen.
  await until('a rate', async () => {
    await server.shop(...Array(50).fill(['INCR', 'visits']))
    return Number((await cell(row(page, 'incr'), 'A second').textContent()).replaceAll(',', '')) > 0
  })
  await until('a line', async () => {
    await server.shop(['PING'])
    return page.getByRole('img', { name: /^Commands a second: [1-9][\d,]* now$/ }).count()
  })
  await page.getByRole('button', { name: 'lpush' }).click()
  await page.getByText('How long lpush took').waitFor()
  await page.locator('.histogram tr').first().waitFor()
  const calls = await page.locator('.histogram td.number').allTextContents()
  assert.equal(calls.reduce((sum, text) => sum + Number(text), 0), 1)
})

test('the slow log has what took long, and is cleared', async t => {
  const server = await startWithFixture(t)
  await server.call('CONFIG', 'SET', 'slowlog-log-slower-than', '0')
  const page = await visit(server)
  await part(page, 'Slow log')
  await server.shop(['GET', 'visits'], ['HGETALL', 'user:1'])
  await row(page, 'HGETALL user:1').waitFor()
  assert.equal(await cell(row(page, 'HGETALL user:1'), 'Client').textContent(), 'shop')
  await page.getByText('Commands that take 0 µs or more').waitFor()
  await server.call('CONFIG', 'SET', 'slowlog-log-slower-than', '-1')
  await sends(page, button(page, 'Clear'), 'SLOWLOG RESET', 'OK')
  await page.getByText('No command was slow.').waitFor()
  await button(page, 'Log all').press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Send CONFIG' }).click()
  await page.getByText('Commands that take 0 µs or more').waitFor()
})

test('clients are listed with what they wait for, and one is closed', async t => {
  const { server, page } = await opened(t)
  await part(page, 'Clients')
  const blocked = server.shop(['BLPOP', 'nothing', '0'])
  server.listen(['CLIENT', 'SETNAME', 'listener'], ['SUBSCRIBE', 'news'])
  await row(page, 'blocked in blpop').getByText('shop').waitFor()
  await cell(row(page, 'listener'), 'Waits').getByText('for messages').waitFor()
  const close = row(page, 'blocked in blpop').getByRole('button', { name: /^Close client/ })
  const id = (await close.getAttribute('aria-label')).match(/\d+/)[0]
  await sends(page, close, `CLIENT KILL ID ${id}`, '(integer) 1')
  await blocked
  await row(page, 'blocked in blpop').waitFor({ state: 'detached' })
})

test('channels of each kind are listed with their subscribers, and what is published is heard', async t => {
  const { server, page } = await opened(t)
  await part(page, 'Channels')
  await page.getByText('Nobody has subscribed to a channel.').waitFor()
  const open = server.listen(['SUBSCRIBE', 'news', 'two words'], ['SSUBSCRIBE', 'orders'], ['PSUBSCRIBE', 'n*', 'o*'])
  const also = server.listen(['SUBSCRIBE', 'news'])
  await cell(row(page, 'news'), 'Subscribers').getByText('2', { exact: true }).waitFor()
  assert.equal(await cell(row(page, 'news'), 'Kind').textContent(), 'channel')
  await cell(row(page, 'orders'), 'Kind').getByText('sharded', { exact: true }).waitFor()
  await row(page, 'two words').waitFor()
  await page.getByText('Patterns with subscribers: 2.').waitFor()
  await server.shop(['PUBLISH', 'news', 'hello all'], ['SPUBLISH', 'orders', 'order 17'])
  const messages = page.getByRole('table', { name: 'Messages' })
  await messages.locator('tr', { hasText: 'news' }).getByText('hello all').waitFor()
  await messages.locator('tr', { hasText: 'orders' }).getByText('order 17').waitFor()
  for (const socket of [open, also]) socket.destroy()
  await page.getByText('Nobody has subscribed to a channel.').waitFor()
})
