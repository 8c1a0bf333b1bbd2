// What a person may not do by accident, and what a user may not do at all; and the keys of the keyboard.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { close, look, opened, start, startWithFixture, visit } from './harness.mjs'

after(close)

/** Sends a line of the console. */
async function send(page, line) {
  await page.getByRole('textbox', { name: 'Command', exact: true }).fill(line)
  await page.keyboard.press('Enter')
}

test('what ends, exposes or deletes needs a second click, and what does not needs none', async t => {
  const { server, page } = await opened(t, 'console')
  const dialog = page.getByRole('dialog')
  for (const line of ['SHUTDOWN NOSAVE', 'CONFIG SET maxmemory 1', 'config rewrite', 'DEBUG SLEEP 0', 'ACL SETUSER x', 'ACL DELUSER x', 'FLUSHDB', 'DUNLIN LOAD x', 'DUNLIN DROP-WORLD x',
    'REPLICAOF NO ONE', 'MIGRATE h 1 k 0 1', 'CLUSTER RESET', 'FAILOVER', 'GET visits\nSHUTDOWN']) {
    await send(page, line)
    await dialog.locator('pre').waitFor()
    assert(line.split('\n').includes(await dialog.locator('pre').textContent()), line)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
  }
  for (const line of ['CONFIG GET maxmemory', 'ACL WHOAMI', 'DUNLIN WORLD', 'CLUSTER INFO', 'GET visits', 'DEL flushall']) {
    await send(page, line)
    await page.locator('.log article', { hasText: line }).waitFor()
    assert.equal(await dialog.count(), 0, line)
  }
  assert.equal(await page.locator('.log article').count(), 6, 'of the others none was sent')
  assert.deepEqual((await server.call('CONFIG', 'GET', 'maxmemory')).map, [['maxmemory', '0']])
})

test('a user with few rights is told what is missing in the feed, at the clock and in the console', async t => {
  const server = await start(t, ['--test-kit', 'yes', '--user', 'reader', 'on', '>secret', '+@read', '+info', '~app:*', '--user', 'default', 'on', '>root', '+@all', '~*', '&*'])
  const page = await visit(server, { login: true })
  await page.getByLabel('User').fill('reader')
  await page.getByLabel('Password').fill('secret')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByText('No stream: A stream shows what all clients do, so its user must have all rights.').waitFor()
  await look(page, 'time')
  await page.getByText(/may not|A right is missing/).first().waitFor()
  assert.equal(await page.getByText('Nothing has a deadline.').count(), 0)
  await look(page, 'console')
  await send(page, 'SET app:1 x')
  await page.locator('.log pre.bad', { hasText: 'The user reader may not run SET: the right +set is missing (ACL SETUSER reader +set).' }).waitFor()
  await send(page, 'GET other')
  await page.locator('.log pre.bad', { hasText: 'a key pattern that fits it is missing' }).waitFor()
})

test('the colours turn by a key, are kept, and a line is copied by another', async t => {
  const { page } = await opened(t)
  const scheme = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor])
  const [first, ground] = await scheme()
  assert.equal(first, 'system')
  await page.keyboard.press('d')
  assert.deepEqual(await scheme(), ['light', ground])
  await page.keyboard.press('d')
  const [dark, other] = await scheme()
  assert(dark === 'dark' && other !== ground)
  await page.reload()
  await page.locator('nav').waitFor()
  assert.deepEqual(await scheme(), ['dark', other])
  await look(page, 'time')
  await page.getByRole('button', { name: '+1 s' }).focus()
  await page.keyboard.press('y')
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'DUNLIN ADVANCE 1000')
  await page.getByRole('form', { name: 'Advance' }).getByRole('spinbutton').focus()
  await page.keyboard.press('d')
  assert.equal((await scheme())[0], 'dark', 'in a field it is a letter')
})

test('arrow keys move between tabs, and around their ends', async t => {
  const { page } = await opened(t, 'load')
  const tabs = page.getByRole('tablist', { name: 'Load of' })
  const chosen = () => tabs.getByRole('tab', { selected: true })
  await chosen().focus()
  for (const [key, name] of [['ArrowRight', 'Hot keys'], ['ArrowRight', 'Slow log'], ['ArrowLeft', 'Hot keys'], ['ArrowLeft', 'Commands'], ['ArrowLeft', 'Channels'], ['ArrowRight', 'Commands']]) {
    await page.keyboard.press(key)
    await page.getByRole('tab', { name, selected: true }).waitFor()
    assert.equal(await page.evaluate(() => document.activeElement.textContent), name)
    assert.equal(await tabs.locator('[tabindex="0"]').count(), 1, 'the tabulator comes to one of them')
  }
})

test('bars stand still for who wants no motion', async t => {
  const server = await startWithFixture(t)
  for (const [motion, duration] of [['reduce', '0s'], ['no-preference', '0.25s']]) {
    const page = await visit(server, { motion })
    await look(page, 'value?key=tuser:1:session')
    const bar = page.locator('.facts .bar > span')
    await bar.waitFor({ state: 'attached' })
    assert.equal(await bar.evaluate(element => getComputedStyle(element).transitionDuration), duration)
  }
})
