// The feed: its filters, what a row tells, where a finding leads, commands of several worlds, and commands that come faster
// than a page can take them.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { close, look, opened, startWithFixture, until, visit } from './harness.mjs'

after(close)

/** Fills a filter, and waits until the stream is open with it. */
async function filter(page, label, text) {
  const answered = page.waitForResponse(answer => answer.url().includes('/stream?') && answer.url().includes(`${label.toLowerCase()}=${encodeURIComponent(text)}`))
  await page.getByLabel(label, { exact: true }).fill(text)
  await page.keyboard.press('Enter')
  await answered
  await page.getByText('Live from the world').waitFor()
}

const commands = page => page.locator('.table.feed tr.command .words b').allTextContents()

test('the feed is filtered by command, by client and by errors, and tells how long each command took', async t => {
  const { server, page } = await opened(t)
  await page.getByText('Live from the world').waitFor()
  const all = [['INCR', 'visits'], ['GET', 'visits'], ['LPUSH', 'visits', 'x'], ['ECHO', 'end']]
  await server.shop(...all)
  await page.locator('tr', { hasText: 'ECHO' }).waitFor()
  assert((await commands(page)).includes('INCR'))
  const row = page.locator('tr', { hasText: 'INCR' })
  assert.match(await row.locator('td[data-name="Took"]').textContent(), /^\d+(\.\d)? (µs|ms|s)$/)
  assert.match(await row.locator('td[data-name="Time"]').textContent(), /^10:00:00\.\d{3}$/)
  assert.equal(await row.locator('td[data-name="Client"]').textContent(), 'shop')
  assert.equal(await row.locator('td[data-name="Reply"]').textContent(), '(integer) 1843')

  const clear = () => page.getByRole('button', { name: 'Clear' }).click()
  await clear()
  await filter(page, 'Command', 'GET')
  await server.shop(...all)
  await page.locator('tr', { hasText: 'GET' }).waitFor()
  await server.shop(...all)
  await until('both have come', async () => (await commands(page)).length >= 2)
  assert.deepEqual(await commands(page), ['GET', 'GET'])

  await page.getByLabel('Command', { exact: true }).fill('')
  await clear()
  await filter(page, 'Client', 'depot')
  await server.shop(...all)
  await server.shop(['CLIENT', 'SETNAME', 'depot'], ['DECR', 'visits'], ['ECHO', 'end'])
  await page.locator('tr', { hasText: 'ECHO' }).waitFor()
  assert.deepEqual((await commands(page)).filter(name => name !== 'CLIENT' && name !== 'QUIT'), ['ECHO', 'DECR'])

  await page.getByLabel('Client', { exact: true }).fill('')
  await clear()
  const answered = page.waitForResponse(answer => answer.url().includes('errors=1'))
  await page.getByLabel('Errors only').check()
  await answered
  await page.getByText('Live from the world').waitFor()
  await server.shop(...all, ['HGET', 'visits', 'f'])
  await page.locator('tr', { hasText: 'HGET' }).waitFor()
  assert.deepEqual(await commands(page), ['HGET', 'LPUSH'])
})

test('a command that does not exist is no filter, and the feed says so', async t => {
  const server = await startWithFixture(t)
  const page = await visit(server, { mayBreak: true })
  await page.getByText('Live from the world').waitFor()
  await page.getByLabel('Command', { exact: true }).fill('GETT')
  await page.keyboard.press('Enter')
  await page.getByText('No stream: There is no command of that name.').waitFor()
})

test('a finding leads to the row of its command, from the feed and from the rules', async t => {
  const server = await startWithFixture(t)
  await server.call('DUNLIN', 'STRICT', 'SET', 'lossy-scores', 'warn')
  const page = await visit(server)
  await page.getByText('Live from the world').waitFor()
  await server.shop(['ZADD', 'ranks', '90071992547409930', 'ann'], ['EVAL', "return redis.call('ZADD', KEYS[1], '90071992547409932', 'ben')", '1', 'ranks'])
  await server.shop(...Array.from({ length: 60 }, (_, number) => ['GET', `later:${number}`]))
  await page.locator('tr', { hasText: 'later:59' }).waitFor()
  await page.locator('.table.feed').evaluate(element => (element.scrollTop = element.scrollHeight))
  const finding = page.locator('tr.finding', { hasText: 'lossy-scores' }).last().locator('a')
  await finding.click()
  const marked = page.locator('tr.marked')
  await marked.locator('.words', { hasText: /^ZADD ranks 90071992547409930 ann$/ }).waitFor()
  assert.equal(await marked.getAttribute('aria-current'), 'true')
  await page.getByText('Paused').first().waitFor()
  const isSeen = row => row.evaluate(element => {
    const [inner, outer] = [element.getBoundingClientRect(), element.closest('.table').getBoundingClientRect()]
    return inner.top >= outer.top && inner.bottom <= outer.bottom
  })
  await until('it is in sight', () => isSeen(marked))

  await look(page, 'rules')
  await page.locator('.findings li', { hasText: 'ben' }).getByRole('button', { name: 'In the feed' }).click()
  await page.locator('tr.marked .words', { hasText: 'EVAL' }).waitFor()
  await until('it is in sight', () => isSeen(marked))
  await page.getByRole('button', { name: 'Go on' }).click()
  await page.getByRole('button', { name: 'Clear' }).click()
  await look(page, 'rules')
  await page.locator('.findings li', { hasText: '9930 ann' }).getByRole('button', { name: 'In the feed' }).click()
  await page.getByText('The feed does not have it.').waitFor()
})

test('a finding is above its command, with its time and client, and earlier ones are not shown as new', async t => {
  const server = await startWithFixture(t)
  await server.call('DUNLIN', 'STRICT', 'SET', 'ALL', 'warn')
  await server.shop(['ZADD', 'ranks', '90071992547409930', 'ann'])
  const page = await visit(server)
  await page.getByText('Live from the world').waitFor()
  await server.shop(['SADD', 'nset', 'a'], ['GET', 'k0'], ['GET', 'k1'], ['EXPIRE', 'nset', '100'], ['GET', 'k2'], ['GET', 'k3'])
  await page.locator('tr.finding').waitFor()
  await page.locator('tr', { hasText: 'k3' }).waitFor()
  const rows = await page.locator('.table.feed tbody tr').evaluateAll(all => all.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent)))
  const at = rows.findIndex(row => row[3].startsWith('EXPIRE'))
  assert.match(rows[at - 1][3], /^late-expire /)
  assert.deepEqual(rows[at - 1].slice(0, 3), rows[at].slice(0, 3), 'time, client and database')
  assert.equal(rows[at][1], 'shop')
  assert.equal(await page.locator('tr.finding').count(), 1)
})

test('a narrow feed shows commands and replies before clients', async t => {
  const server = await startWithFixture(t)
  const page = await visit(server, { width: 390, height: 844 })
  await page.getByText('Live from the world').waitFor()
  await server.shop(['INCR', 'visits'])
  await page.locator('tr', { hasText: 'INCR' }).waitFor()
  assert.deepEqual(await page.locator('.table.feed th').allTextContents(), ['Time', 'Command', 'Reply', 'Took', 'Client', 'Db'])
  assert.deepEqual((await page.locator('tr', { hasText: 'INCR' }).locator('td').allTextContents()).filter((_, at) => at !== 3), ['10:00:00', 'INCR visits', '(integer) 1843', 'shop', '0'])
})

test('rows of several worlds name theirs', async t => {
  const { server, page } = await opened(t)
  await page.getByText('Live from the world default').waitFor()
  await server.shop(['GET', 'visits'])
  await page.locator('tr', { hasText: 'visits' }).waitFor()
  assert.equal(await page.getByRole('columnheader', { name: 'World' }).count(), 0, 'there is only one')
  await server.call('DUNLIN', 'WORLD', 'north')
  await page.locator('.top option', { hasText: 'north' }).waitFor({ state: 'attached' })
  await page.locator('.top').getByLabel('World').selectOption('north')
  await page.getByText('Live from the world north').waitFor()
  await server.shop(['DUNLIN', 'WORLD', 'north'], ['SET', 'compass', 'n'])
  await page.locator('tr', { hasText: 'compass' }).locator('td[data-name="World"]', { hasText: /^north$/ }).waitFor()
  await page.locator('tr', { hasText: 'visits' }).locator('td[data-name="World"]', { hasText: /^default$/ }).waitFor()
})

test('what comes faster than a page can take is counted, and the newest is shown', async t => {
  const server = await startWithFixture(t)
  const page = await visit(server, { mayBreak: true })
  await page.getByText('Live from the world').waitFor()
  // The page is busy until all has run: it asks for that by itself, and does nothing else.
  const busy = page.evaluate(token => {
    for (;;) {
      const request = new XMLHttpRequest()
      request.open('POST', '/command', false)
      request.setRequestHeader('Content-Type', 'application/json')
      request.setRequestHeader('X-Dunlin', token)
      request.send(JSON.stringify({ commands: [['EXISTS', 'all-has-run']] }))
      if (request.responseText.includes('"1"')) return
    }
  }, new URL(server.address).hash.slice('#token='.length))
  const text = 'v'.repeat(250)
  const sent = 60_000
  await server.shop(...Array.from({ length: sent }, (_, number) => ['ECHO', `${number} ${text}`]))
  await server.call('SET', 'all-has-run', '1')
  await busy
  const lag = page.locator('tr.lag')
  await page.locator('tr', { hasText: `${sent - 1} vvv` }).waitFor()
  assert(await page.locator('tbody tr').count() <= 202)
  // It is between what came before and the newest.
  await until('the number of those that were left out', async () => {
    await page.locator('.table.feed').evaluate(element => (element.scrollTop += 100 * 30))
    return lag.count()
  })
  const dropped = Number((await lag.last().textContent()).match(/(\d+) commands were too fast/)[1])
  assert(dropped > 0 && dropped < sent)
})

test('a hidden page asks for nothing, and looks again when it is shown', async t => {
  const server = await startWithFixture(t)
  const [page, other] = [await visit(server), await visit(server)]
  await look(page, 'keys')
  await look(other, 'keys')
  await page.locator('.namespace', { hasText: 'user:' }).waitFor()
  const setHidden = isHidden => page.evaluate(isHidden => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden })
    document.dispatchEvent(new Event('visibilitychange'))
  }, isHidden)
  await setHidden(true)
  const asked = []
  page.on('request', request => request.url().endsWith('/command') && asked.push(request.postData()))
  await server.shop(['SET', 'while:hidden', '1'])
  await other.locator('.namespace', { hasText: 'while:' }).waitFor()
  assert.deepEqual(asked.filter(body => body.includes('TREE')), [])
  assert.equal(await page.locator('.namespace', { hasText: 'while:' }).count(), 0)
  await setHidden(false)
  await page.locator('.namespace', { hasText: 'while:' }).waitFor()
  await look(page, 'feed')
  await page.locator('tr', { hasText: 'while:hidden' }).waitFor()
})
