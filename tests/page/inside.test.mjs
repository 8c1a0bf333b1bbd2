// What is inside of the views: tabs, forms in use, dialogs, opened trees, values that are looked at in another way. Each
// is accessible, light and wide as well as dark and narrow; screenshots of all four are in target/page.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { accessible, close, keyAddress, look, opened, sends, SHOTS, start, startWithFixture, visit } from './harness.mjs'

after(close)

const tab = (page, name) => page.getByRole('tab', { name, exact: true }).click()
const button = (page, name) => page.getByRole('button', { name, exact: true })

/** Looks at what the page shows now, in each of its looks. */
async function view(page, name) {
  for (const [colours, width] of [['light', 1280], ['light', 390], ['dark', 1280], ['dark', 390]]) {
    await page.emulateMedia({ colorScheme: colours, reducedMotion: 'reduce' })
    await page.setViewportSize({ width, height: width === 390 ? 844 : 800 })
    const wide = await page.evaluate(() => document.documentElement.scrollWidth)
    assert(wide <= width, `${name} is ${wide} wide`)
    await page.screenshot({ path: `${SHOTS}inside-${name}-${colours}-${width}.png` })
    if ((colours === 'light') === (width === 1280)) await accessible(page, `${name}, ${colours}, ${width} wide`)
  }
  await page.setViewportSize({ width: 1280, height: 800 })
}

test('a tree that is open, a search, and values in each of their ways', async t => {
  const server = await startWithFixture(t)
  await server.call('SET', `long:${'n'.repeat(20_000)}`, 'x')
  const page = await visit(server)
  await look(page, 'keys')
  for (const [name, inside] of [['user:', /^user:1$/], ['jobs:', 'jobs:queue'], ['long:', 'long:nnn']]) {
    await page.locator('.namespace', { hasText: name }).click()
    await page.locator('.key', { hasText: inside }).waitFor()
  }
  await page.getByText('too long for this page').waitFor()
  await view(page, 'keys-open')
  await look(page, 'keys?glob=user*')
  await page.getByText('6 keys like user*').waitFor()
  await view(page, 'keys-found')
  for (const [key, way] of [['packed', 'MessagePack'], ['pickled', 'Pickle'], ['user:3:note', 'Hex'], ['user:3:note', 'Text'], ['visits', 'Bits'], ['user:1:session', 'Text']]) {
    await look(page, keyAddress(key))
    await tab(page, way)
    await view(page, `value-${way.toLowerCase()}-${key.replaceAll(':', '-')}`)
  }
  await look(page, keyAddress('user:1'))
  await page.getByText('As commands').click()
  await page.locator('.commands pre').waitFor()
  await button(page, 'Edit name').click()
  await page.getByRole('textbox', { name: 'name', exact: true }).fill('Ann Day')
  await view(page, 'value-edited')
  await look(page, keyAddress('nothing:here'))
  await page.getByText('There is no such key').waitFor()
  await view(page, 'value-missing')
  await look(page, 'value')
  await page.getByLabel('Key', { exact: true }).fill('k'.repeat(300_000))
  await page.keyboard.press('Enter')
  await page.getByText('This key is too long for the page').waitFor()
  await view(page, 'value-too-long')
})

test('a stream with groups, a step of the clock, and a difference', async t => {
  const server = await startWithFixture(t)
  await server.call('XREADGROUP', 'GROUP', 'billing', 'worker', 'COUNT', '2', 'STREAMS', 'events', '>')
  await server.call('DUNLIN', 'SNAPSHOT', 'fixture')
  await server.run([['INCR', 'visits'], ['DEL', 'tags'], ['SADD', 'added', 'member']])
  await server.run([['SET', 'compass', 'n']], { world: 'default' })
  await server.call('DUNLIN', 'WORLD', 'north')
  const page = await visit(server)
  await look(page, keyAddress('events'))
  await tab(page, 'Groups')
  await page.locator('tr', { hasText: 'worker' }).first().waitFor()
  await view(page, 'stream-groups')
  await look(page, 'state')
  await button(page, 'Compare').waitFor()
  await sends(page, button(page, 'Compare'), 'DUNLIN DIFF SNAPSHOT fixture')
  await page.locator('.difference').waitFor()
  await page.locator('.difference').scrollIntoViewIfNeeded()
  await view(page, 'state-difference')
  await look(page, 'time')
  await page.locator('.table.due tr', { hasText: 'user:2:session' }).waitFor()
  await sends(page, button(page, '+1 h'), 'DUNLIN ADVANCE 3600000')
  await page.getByText('The last step').waitFor()
  await view(page, 'time-step')
})

test('rules with findings and forms in use, and a feed with marks', async t => {
  const server = await startWithFixture(t)
  await server.run([['DUNLIN', 'STRICT', 'SET', 'ALL', 'warn'], ['DUNLIN', 'STRICT', 'SET', 'lossy-scores', 'error'], ['DUNLIN', 'FAULT', 'ADD', 'the reply is lost', 'COMMAND', 'ZINCRBY', 'TIMES', '1', 'DROP-AFTER']])
  await server.call('DUNLIN', 'WORLD', 'north')
  const page = await visit(server)
  await page.getByText('Live from the world').waitFor()
  await server.shop(['ZADD', 'ranks', '90071992547409930', 'ann'], ['SADD', 'seen', 'a'], ['EXPIRE', 'seen', '60'], ['EVAL', "redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[1])", '1', 'visits'], ['LPUSH', 'visits', 'x'])
  await look(page, 'rules')
  await page.locator('.findings li').first().waitFor()
  const form = page.getByRole('form', { name: 'New fault', exact: true })
  await form.getByLabel('Name', { exact: true }).fill('later')
  await form.getByLabel('fails by').selectOption('MOVED')
  await form.getByLabel('slot host:port').fill('7 127.0.0.1:7001')
  await view(page, 'rules-used')
  await form.scrollIntoViewIfNeeded()
  await view(page, 'rules-forms')
  await page.locator('.findings li', { hasText: 'lossy-scores' }).getByRole('button', { name: 'In the feed' }).click()
  await page.locator('tr.marked').waitFor()
  await page.getByRole('button', { name: 'Go on' }).click()
  await page.locator('.table.feed').evaluate(element => (element.scrollTop = 0))
  await page.locator('.top').getByLabel('World').selectOption('north')
  await page.getByText('Live from the world north').waitFor()
  await server.shop(['DUNLIN', 'WORLD', 'north'], ['SET', 'compass', 'n'])
  await page.locator('tr', { hasText: 'compass' }).waitFor()
  await page.getByRole('button', { name: '2 commands inside' }).click()
  await page.locator('tr.inner').first().waitFor()
  await view(page, 'feed-marks')
})

test('each part of the load', async t => {
  const server = await startWithFixture(t)
  await server.call('CONFIG', 'SET', 'slowlog-log-slower-than', '0')
  const page = await visit(server)
  server.listen(['CLIENT', 'SETNAME', 'listener'], ['SUBSCRIBE', 'news', 'offers'], ['SSUBSCRIBE', 'orders'], ['PSUBSCRIBE', 'n*'])
  server.listen(['CLIENT', 'SETNAME', 'worker'], ['BLPOP', 'nothing', '0'])
  await look(page, 'load')
  for (const [name, there] of [['Hot keys', 'visits'], ['Slow log', 'HGETALL'], ['Clients', 'worker'], ['Memory', 'user:'], ['Channels', 'offers']]) {
    await tab(page, name)
    await server.shop(['GET', 'visits'], ['HGETALL', 'user:1'], ['PUBLISH', 'news', 'hello all'])
    await page.locator('.table.short tr', { hasText: there }).first().waitFor()
    if (name === 'Channels') {
      await server.shop(['PUBLISH', 'news', 'hello all'])
      await page.locator('tr', { hasText: 'hello all' }).first().waitFor()
    }
    await view(page, `load-${name.toLowerCase().replace(' ', '-')}`)
  }
  await tab(page, 'Commands')
  await page.getByRole('button', { name: 'hgetall' }).click()
  await page.locator('.histogram tr').first().waitFor()
  await view(page, 'load-commands')
})

test('the console with completions and replies, and each dialog', async t => {
  const { page } = await opened(t, 'console')
  const field = page.getByRole('textbox', { name: 'Command', exact: true })
  for (const line of ['HGETALL user:1', 'LPUSH visits x', 'ZRANGE board 0 2 REV WITHSCORES']) {
    await field.fill(line)
    await page.keyboard.press('Enter')
    await page.locator('.log article', { hasText: line }).waitFor()
  }
  await field.fill('ZRANGE')
  await page.locator('#completions [role=option]').first().waitFor()
  await page.locator('.helps code').waitFor()
  await view(page, 'console-used')
  await tab(page, 'JSON')
  await view(page, 'console-json')
  await field.fill('FLUSHALL')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await view(page, 'dialog-confirmation')
  await page.keyboard.press('Escape')
  await field.blur()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await view(page, 'dialog-help')
  const guarded = await start(t, ['--test-kit', 'yes', '--requirepass', 'secret'])
  const other = await visit(guarded, { login: true })
  await other.getByRole('dialog', { name: 'Log in' }).waitFor()
  await view(other, 'dialog-login')
})
