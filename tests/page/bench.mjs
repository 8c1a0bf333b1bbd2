// Measures how long people wait for the page: DUNLIN_BINARY=target/release/dunlin node bench.mjs
//
// Each figure is the median and what nine of ten do not exceed, in milliseconds, as a page in chromium sees them: from the
// navigation to the first paint that has something of the view, and from the change of the address to the frame behind
// the one that shows what was asked for.

import { after, test } from 'node:test'
import { close, keyAddress, open, start, visit } from './harness.mjs'

after(close)

const ROUNDS = Number(process.env.DUNLIN_BENCH_ROUNDS ?? 20)
const KEYS = 1_000_000

function tell(what, figures) {
  figures.sort((one, other) => one - other)
  const [median, most] = [0.5, 0.9].map(part => figures[Math.floor(figures.length * part)].toFixed(1).padStart(7))
  console.log(`${what.padEnd(44)}${median}${most}`)
}

/** How long a page takes to show what it has at an address. */
async function looked(page, address, shown) {
  return page.evaluate(async ([hash, selector]) => {
    const frame = () => new Promise(done => requestAnimationFrame(done))
    location.hash = 'console'
    while (!document.querySelector('main.view-console > :not(h1)')) await frame()
    const begun = performance.now()
    location.hash = hash
    while (!document.querySelector(selector)) await frame()
    return performance.now() - begun
  }, [address, shown])
}

/** How long a new page takes to its first paint with something of its view. */
async function opened(server) {
  const context = await (await open()).newContext()
  const page = await context.newPage()
  await page.goto(server.address)
  await page.locator('main > :not(h1)').first().waitFor()
  const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)
  await context.close()
  return painted
}

async function rounds(measure) {
  const figures = []
  for (let round = 0; round < ROUNDS; round += 1) figures.push(await measure(round))
  return figures
}

test('how long people wait', async t => {
  const server = await start(t)
  await opened(server)
  tell('the first view', await rounds(() => opened(server)))
  const page = await visit(server)
  for (const view of ['feed', 'keys', 'time', 'state', 'rules', 'load']) {
    tell(`another view: ${view}`, await rounds(() => looked(page, view, `main.view-${view} > :not(h1)`)))
  }
  for (let from = 0; from < KEYS; from += 100_000) {
    const fill = "for number = ARGV[1], ARGV[1] + 99999 do redis.call('SET', 'space:' .. number % 1000 .. ':' .. number, number) end"
    await server.call('EVAL', fill, '0', String(from))
  }
  tell('a key among a million', await rounds(round => looked(page, keyAddress(`space:${round}:${round}`), '.view-value .figure')))
  tell('the namespaces of a million keys', await rounds(() => looked(page, 'keys', '.view-keys .namespace')))
})
