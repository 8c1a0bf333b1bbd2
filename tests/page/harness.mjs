// What the tests of the page share: a server with a fixture, a browser that reaches nothing but that server, and what
// must hold on every page: no report in its console, no request to anywhere else.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const { chromium } = require('playwright-core')
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

const BINARY = process.env.DUNLIN_BINARY ?? 'dunlin'
const CHROMIUM = (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, 'chromium')).find(existsSync)

/**
 * Names of other hosts lead nowhere, so that a request to them fails, and is seen. What a browser itself refuses other
 * sites of a server on this machine is off: the server has to refuse it alone.
 */
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update',
  '--disable-dev-shm-usage', '--disable-features=LocalNetworkAccessChecks', '--host-resolver-rules=MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
]

export const VIEWS = ['feed', 'keys', 'value', 'time', 'state', 'rules', 'load', 'console']

/** When the fixture is looked at: its deadlines and the times in its names are around it. */
export const TIME = Date.parse('2026-07-02T10:00:00Z')

/** A program with a page, ended after the test. */
export async function start(test, options = ['--test-kit', 'yes'], port = 0) {
  const program = spawn(BINARY, ['--port', '0', '--page-port', String(port), '--save', '', ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
  // Pages go first: a stream that breaks off is reported in their consoles.
  const pages = []
  test.after(async () => {
    for (const close of pages) await close()
    program.kill('SIGKILL')
  })
  let clients
  for await (const line of createInterface({ input: program.stdout })) {
    clients ??= /ready on 127\.0\.0\.1:(\d+)/.exec(line)?.[1]
    const address = /http:\/\/\S+/.exec(line)?.[0]
    if (address) {
      program.stdout.resume()
      return { ...serverAt(new URL(address), program), pages, shop: (...commands) => shop(clients, commands), listen: (...commands) => connected(clients, commands) }
    }
  }
  throw new Error('the program names no page')
}

/** A client that has sent commands, and reads on. */
function connected(port, commands) {
  const socket = connect(Number(port), '127.0.0.1').resume()
  // The server may end before it.
  socket.on('error', () => {})
  for (const words of commands) {
    socket.write(`*${words.length}\r\n${words.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`)
  }
  return socket
}

/** Sends commands as a client of its own, whose commands the feed shows, with the name `shop`. */
async function shop(port, commands) {
  await once(connected(port, [['CLIENT', 'SETNAME', 'shop'], ...commands, ['QUIT']]), 'close')
}

function serverAt(address, program) {
  const token = new URLSearchParams(address.hash.slice(1)).get('token') ?? 'none'
  const origin = address.origin
  /** Runs commands in one session; returns their replies. */
  async function run(commands, place = {}) {
    const answer = await fetch(`${origin}/command`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Dunlin': token, ...place.headers },
      body: JSON.stringify({ world: place.world ?? 'default', database: place.database ?? 0, commands }),
    })
    const body = await answer.json()
    assert.equal(answer.status, 200, JSON.stringify(body))
    return body.replies
  }
  const call = async (...words) => {
    const [reply] = await run([words.map(word => (typeof word === 'number' ? String(word) : word))])
    assert.equal(reply?.error, undefined, `${words.join(' ')} is answered ${reply?.error}`)
    return reply
  }
  const end = async () => {
    program.kill('SIGKILL')
    await once(program, 'exit')
  }
  return { address: String(address), origin, port: address.port, pid: program.pid, run, call, end }
}

/** A server with the fixture, and a clock that stands still. */
export async function startWithFixture(test, options) {
  const server = await start(test, options)
  await server.call('DUNLIN', 'FREEZE')
  await server.call('DUNLIN', 'SET-TIME', TIME)
  await server.call('DUNLIN', 'LOAD', readFileSync(new URL('fixture.txt', import.meta.url), 'utf8'))
  return server
}

let browser

/** The one browser of this run. */
export async function open() {
  browser ??= chromium.launch({ executablePath: CHROMIUM, args: FLAGS })
  return browser
}

export async function close() {
  await (await browser)?.close()
}

/**
 * A page that has opened the address, in a context of its own. When the test ends, nothing may have been reported in
 * the console, and nothing may have been asked for elsewhere.
 */
export async function visit(server, { width = 1280, height = 800, colours = 'light', motion = 'no-preference', login = false, mayBreak = login } = {}) {
  const context = await (await open()).newContext({ viewport: { width, height }, colorScheme: colours, reducedMotion: motion, permissions: ['clipboard-read', 'clipboard-write'] })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const reports = []
  page.on('console', message => ['error', 'warning'].includes(message.type()) && reports.push(message.text()))
  page.on('pageerror', error => reports.push(String(error)))
  page.on('dialog', dialog => reports.push(`a dialog says ${dialog.message()}`))
  page.on('request', request => {
    const url = request.url()
    if (!url.startsWith(server.origin) && !url.startsWith('data:')) reports.push(`a request to ${url}`)
  })
  await page.goto(server.address)
  server.pages.push(async () => {
    await context.close()
    if (!mayBreak) assert.deepEqual(reports, [])
  })
  if (!login) await page.locator('nav').waitFor()
  return page
}

/** Goes to a view by its address, and waits until it is there. */
export async function look(page, address) {
  await page.evaluate(hash => (location.hash = hash), address)
  await page.locator(`main.view-${address.split('?')[0]} > :not(h1)`).first().waitFor()
}

/** A server with the fixture, and a page that looks at a view of it: at the first one if none is named. */
export async function opened(test, address) {
  const server = await startWithFixture(test)
  const page = await visit(server)
  if (address) await look(page, address)
  return { server, page }
}

/** Where screenshots are. */
export const SHOTS = fileURLToPath(new URL('../../target/page/', import.meta.url))
mkdirSync(SHOTS, { recursive: true })

/** Waits until a probe finds what it looks for, which is returned. */
export async function until(what, probe) {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(30)) {
    const found = await probe()
    if (found) return found
  }
  throw new Error(`it did not come in time: ${what}`)
}

/** Presses a button by the keyboard, so that no other one comes below the mouse, and waits until the strip has sent a line. */
export async function sends(page, button, line, told) {
  await button.press('Enter')
  await sent(page, line, told)
}

/** Waits until the strip shows that a line was sent, and what was told. */
export async function sent(page, line, told) {
  const strip = page.locator('.strip')
  const texts = async () => [await strip.locator('.verb').textContent(), await strip.locator('.sent').textContent(), await strip.locator('.told').textContent()]
  const wanted = ['Sent', line, told]
  const isThere = found => wanted.every((text, at) => (text instanceof RegExp ? text.test(found[at]) : text === undefined || text === found[at]))
  await until(`${line} ${told}`, async () => isThere(await texts())).catch(async () => assert.deepEqual(await texts(), wanted))
}

export const keyAddress = key => `value?${new URLSearchParams({ key: typeof key === 'string' ? `t${key}` : `b${key.base64}` })}`

/** Asserts that axe finds nothing. */
export async function accessible(page, what) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE)
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] })
    return violations.map(each => `${each.id}: ${each.nodes.map(node => `${node.html.slice(0, 160)} ${node.failureSummary.split('\n')[1] ?? ''}`).slice(0, 3).join(' | ')}`)
  })
  assert.deepEqual(found, [], what)
}
