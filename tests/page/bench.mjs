// Measures how long people wait for the page: DUNLIN_BINARY=target/release/dunlin node bench.mjs
//
// Each figure is the median and what nine of ten do not exceed, in milliseconds, as a page in chromium sees them: from the
// navigation until the view was painted, and from the change of the address to the frame behind the one that shows what
// was asked for. An empty page is what the browser needs without ours, in a tab that was open before and in a new one.

import { after, test } from 'node:test'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { close, keyAddress, open, start, visit } from './harness.mjs'

after(close)

const ROUNDS = Number(process.env.DUNLIN_BENCH_ROUNDS ?? 20)
const KEYS = 1_000_000
const SETTLED_MS = 1000

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

/** How long a page takes in a tab that has been open for a while, until its view was painted. */
async function opened(address, openMs) {
  const context = await (await open()).newContext()
  const page = await context.newPage()
  await page.addInitScript(() => {
    const painted = new MessageChannel()
    painted.port1.onmessage = () => (globalThis.paintedAt = performance.now())
    const look = new MutationObserver(() => {
      if (!document.querySelector('main > :not(h1)')) return
      look.disconnect()
      requestAnimationFrame(() => painted.port2.postMessage(null))
    })
    look.observe(document, { childList: true, subtree: true })
  })
  await sleep(openMs)
  await page.goto(address, { waitUntil: 'commit' })
  // Whatever looks at the page earlier slows it down.
  await sleep(SETTLED_MS)
  const time = await page.evaluate(() => globalThis.paintedAt)
  await context.close()
  return time
}

/** The address of a page with nothing but a line. */
async function emptyPage(t) {
  const server = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end('<!doctype html><title>empty</title><main><p>text</p></main>'))
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${server.address().port}/`
}

async function rounds(measure) {
  const figures = []
  for (let round = 0; round < ROUNDS; round += 1) figures.push(await measure(round))
  return figures
}

test('how long people wait', async t => {
  const server = await start(t)
  const empty = await emptyPage(t)
  await opened(server.address, 0)
  for (const [tab, openMs] of [['an open tab', 1000], ['a new tab', 0]]) {
    tell(`the first view in ${tab}`, await rounds(() => opened(server.address, openMs)))
    tell(`an empty page in ${tab}`, await rounds(() => opened(empty, openMs)))
  }
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
