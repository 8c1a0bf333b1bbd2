// Rules: what strict mode finds and advises, its levels, and the faults by which commands fail.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { close, look, opened, sends, start, startWithFixture, visit } from './harness.mjs'

after(close)

const button = (page, name) => page.getByRole('button', { name, exact: true })
const levels = async server => Object.fromEntries((await server.call('DUNLIN', 'STRICT')).map(each => Object.fromEntries(each.map)).map(({ rule, level }) => [rule, level]))

test('every rule of the server has an advice', async t => {
  const server = await start(t)
  const rules = Object.keys(await levels(server))
  const text = readFileSync(new URL('../../src/server/page/assets/rules.js', import.meta.url), 'utf8')
  const advice = text.slice(text.indexOf('const ADVICE'), text.indexOf('})', text.indexOf('const ADVICE')))
  assert.deepEqual([...advice.matchAll(/^ {2}'?([a-z-]+)'?: '[A-Z].+\.',$/gm)].map(found => found[1]).sort(), rules.sort())
})

test('levels are set for all rules, for those of a cluster and for one, and shown before', async t => {
  const { server, page } = await opened(t, 'rules')
  await sends(page, button(page, 'All warn'), 'DUNLIN STRICT SET ALL warn', 'OK')
  await page.locator('.table.rules tr', { hasText: 'lossy-scores' }).getByRole('button', { name: 'lossy-scores: warn', pressed: true }).waitFor()
  await sends(page, button(page, 'Cluster error'), 'DUNLIN STRICT SET CLUSTER error', 'OK')
  await button(page, 'keys-command: error').focus()
  assert.equal(await page.locator('.strip .verb').textContent(), 'Sends')
  assert.equal(await page.locator('.strip .sent').textContent(), 'DUNLIN STRICT SET keys-command error')
  await sends(page, button(page, 'keys-command: error'), 'DUNLIN STRICT SET keys-command error', 'OK')
  await page.getByRole('button', { name: 'keys-command: error', pressed: true }).waitFor()
  const found = await levels(server)
  assert.deepEqual([found['lossy-scores'], found['keys-command'], found['cross-slot']], ['warn', 'error', 'error'])
  const form = page.getByRole('form', { name: 'Allow', exact: true })
  await form.getByLabel('Keys like').fill('countries:*')
  await form.getByRole('combobox').selectOption('unbounded-collection')
  await sends(page, button(page, 'Allow'), 'DUNLIN STRICT ALLOW unbounded-collection countries:*', 'OK')
  await page.locator('.table.rules tr', { hasText: 'unbounded-collection' }).getByText('countries:*').waitFor()
})

test('a finding tells its command and what to do instead, is checked for, and cleared', async t => {
  const server = await startWithFixture(t)
  await server.call('DUNLIN', 'STRICT', 'SET', 'lossy-scores', 'error')
  const page = await visit(server)
  await look(page, 'rules')
  await page.getByText('Nothing was found.').waitFor()
  await server.shop(['ZADD', 'ranks', '90071992547409930', 'ann'], ['ZADD', 'ranks', '90071992547409930', 'ann'])
  const finding = page.locator('.findings li', { hasText: 'lossy-scores' })
  await finding.getByText('2 times, by shop').waitFor()
  await finding.getByText('ZADD ranks 90071992547409930 ann').waitFor()
  await finding.getByText('One number in the score, the rest in the member.').waitFor()
  assert.equal(await finding.locator('.level').textContent(), 'error')
  await sends(page, button(page, 'Check'), 'DUNLIN STRICT CHECK', /lossy-scores/)
  await page.locator('.strip .told.bad').waitFor()
  await sends(page, button(page, 'Clear'), 'DUNLIN STRICT CLEAR', 'OK')
  await page.getByText('Nothing was found.').waitFor()
})

test('a fault of commands is made by its form, counts, and is removed with all others', async t => {
  const { server, page } = await opened(t, 'rules')
  const form = page.getByRole('form', { name: 'New fault', exact: true })
  await form.getByLabel('Name', { exact: true }).fill('try again')
  await form.getByLabel('fails by').selectOption('ERROR')
  await form.getByLabel('ERR the text').fill('TRYAGAIN later')
  for (const [label, text] of [['Command', 'INCR'], ['Key', 'vis*'], ['Client', 'shop'], ['From the nth', '2'], ['Times', '1'], ['Percent', '100']]) await form.getByLabel(label, { exact: true }).fill(text)
  const line = 'DUNLIN FAULT ADD "try again" COMMAND INCR KEY vis* CLIENT shop NTH 2 TIMES 1 PERCENT 100 ERROR "TRYAGAIN later"'
  assert.equal(await page.locator('.strip .sent').textContent(), line)
  await page.getByLabel('Language').selectOption('Rust')
  assert.equal(await page.locator('.strip .sent').textContent(),
    'server.fault("try again").command("INCR").key("vis*").client("shop").nth(2).times(1).percent(100.0).error("TRYAGAIN later");')
  await page.getByLabel('Language').selectOption('redis-cli')
  await sends(page, form.getByRole('button', { name: 'Add' }), line, 'OK')
  const row = page.locator('.table tr', { hasText: 'try again' })
  await server.shop(['INCR', 'visits'], ['INCR', 'visits'], ['INCR', 'visits'])
  await row.locator('td[data-name="Matched"]', { hasText: /^3$/ }).waitFor()
  await row.locator('td[data-name="Fired"]', { hasText: /^1$/ }).waitFor()
  assert.equal(await server.call('GET', 'visits'), '1844')
  await server.call('DUNLIN', 'FAULT', 'ADD', 'silent', 'COMMAND', 'GET', 'SILENCE')
  await button(page, 'Remove silent').waitFor()
  await sends(page, button(page, 'Remove silent'), 'DUNLIN FAULT REMOVE silent')
  await button(page, 'Remove silent').waitFor({ state: 'detached' })
  await sends(page, button(page, 'Remove all'), 'DUNLIN FAULT CLEAR', 'OK')
  await page.getByText('Every command runs as it should.').waitFor()
})
