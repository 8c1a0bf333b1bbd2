// Each view of the page in a browser, in light and dark, wide and narrow, without a finding of axe. Screenshots are in
// target/page.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { accessible, close, keyAddress, look, opened, SHOTS, startWithFixture, VIEWS, visit } from './harness.mjs'

after(close)

/** What is looked at: each view, and the view of a value for each type. */
const PLACES = [
  ...VIEWS.filter(view => view !== 'value').map(view => [view, view]),
  ...['user:1:session', 'user:1', 'jobs:queue', 'jobs:delayed', 'board', 'cities', 'tags', 'films', 'events', 'online:2026-07-02', 'seen:2026-07-02', 'visits']
    .map(key => [`value-${key.replaceAll(':', '-')}`, keyAddress(key)]),
]

/** Makes something to look at in the views that show what happens. */
async function live(server) {
  await server.call('DUNLIN', 'SNAPSHOT', 'fixture')
  await server.call('DUNLIN', 'STRICT', 'SET', 'ALL', 'warn')
  await server.call('DUNLIN', 'FAULT', 'ADD', 'the reply is lost', 'COMMAND', 'ZADD', 'TIMES', '1', 'DROP-AFTER')
  await server.shop(['INCR', 'visits'], ['HSET', 'user:2', 'city', 'Bern'], ['GET', 'user:1:session'], ['LPUSH', 'visits', 'x'], ['SADD', 'seen:today', 'a'],
    ['EXPIRE', 'seen:today', '60'], ['EVAL', "redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[1])", '1', 'visits'], ['MULTI'], ['SET', 'a', '1'], ['INCR', 'a'], ['EXEC'])
}

/** Looks at all places. */
async function lookAtAll(test, colours, width) {
  const server = await startWithFixture(test)
  const page = await visit(server, { colours, width, height: width === 390 ? 844 : 800, motion: 'reduce' })
  await live(server)
  for (const [name, address] of PLACES) {
    await look(page, address)
    await page.waitForTimeout(name === 'load' ? 1200 : 200)
    await accessible(page, name)
    const wide = await page.evaluate(() => document.documentElement.scrollWidth)
    assert(wide <= width, `${name} is ${wide} wide`)
    await page.screenshot({ path: `${SHOTS}${name}-${colours}-${width}.png` })
  }
}

test('what is painted before the modules have come is as the page has it then', async t => {
  const { server, page } = await opened(t)
  await page.locator('.top select').first().waitFor()
  const both = await page.evaluate(async address => {
    const early = new DOMParser().parseFromString(await (await fetch(address)).text(), 'text/html')
    return [early, document].map(each => [each.querySelector('.skip'), each.querySelector('header'), each.querySelector('.top > .name')])
      .map(([link, header, name]) => [link, header.cloneNode(), name].map(element => element.outerHTML))
  }, server.origin)
  assert.deepEqual(both[0], both[1])
  assert.equal(await page.locator('body > header').count(), 1, 'it is the same')
})

describe('every view is accessible', { concurrency: 2 }, () => {
  for (const colours of ['light', 'dark']) {
    for (const width of [1280, 390]) test(`${colours}, ${width} wide`, t => lookAtAll(t, colours, width))
  }
})
