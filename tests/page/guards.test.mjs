// Other sites in the same browser: a foreign name for this server, forms, requests without a look at the answer, requests
// that ask first, frames. Each is refused, whatever it knows, and nothing has run.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { close, open, start } from './harness.mjs'

after(close)

/** A site of its own, by the name of which the browser comes to this machine. */
async function otherSite(t, html = '<!doctype html><title>elsewhere</title>') {
  const site = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(html)).listen(0, '127.0.0.1')
  await once(site, 'listening')
  t.after(() => site.close())
  return `http://evil.test:${site.address().port}/`
}

/** A page of another site, the answers that it was given by the server, and what must hold in the end: nothing has run. */
async function intrude(t, options) {
  const server = await start(t, options)
  await server.call('SET', 'guarded', 'untouched')
  const context = await (await open()).newContext()
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const failures = []
  page.on('requestfailed', request => failures.push(`${request.method()} ${new URL(request.url()).pathname} ${request.failure().errorText}`))
  server.pages.push(() => context.close())
  const isUntouched = async () => assert.equal(await server.call('GET', 'guarded'), 'untouched')
  return { server, page, failures, isUntouched, token: new URL(server.address).hash.slice('#token='.length) }
}

const COMMANDS = JSON.stringify({ commands: [['SET', 'guarded', 'taken']] })

test('a foreign name that leads to this server gets nothing, also with the token', async t => {
  const { server, page, token, isUntouched } = await intrude(t)
  const origin = `http://evil.test:${server.port}`
  const answer = await page.goto(origin)
  assert.equal(answer.status(), 421)
  assert.equal(await page.locator('script, link, nav').count(), 0)
  // A page that came from the foreign name before that led here: what it asks for is of its own site.
  await page.route(`${origin}/`, route => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>elsewhere</title>' }))
  await page.goto(origin)
  const statuses = await page.evaluate(async ([token, body]) => {
    const headers = { 'Content-Type': 'application/json', 'X-Dunlin': token }
    const asked = [['/command', { method: 'POST', headers, body }], ['/stream', { headers }], ['/metrics', {}], ['/ready', {}], ['/assets/app.js', {}]]
    return Promise.all(asked.map(async ([path, options]) => (await fetch(path, options)).status))
  }, [token, COMMANDS])
  assert.deepEqual(statuses, [421, 421, 421, 421, 421])
  await isUntouched()
})

test('a form of another site runs nothing, whatever its type', async t => {
  const { server, page, isUntouched } = await intrude(t, ['--test-kit', 'yes', '--page-token', 'no'])
  const site = await otherSite(t)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    await page.goto(site)
    const answer = page.waitForResponse(`${server.origin}/command`)
    await page.evaluate(([address, type, body]) => {
      const form = document.createElement('form')
      Object.assign(form, { method: 'POST', action: address, enctype: type })
      const field = document.createElement('input')
      // As plain text, a field is its name, an equals sign and its value.
      Object.assign(field, { name: body.slice(0, -1), value: '}' })
      form.append(field)
      document.body.append(form)
      form.submit()
    }, [`${server.origin}/command`, type, COMMANDS.replace('taken', 'taken=')])
    assert.equal((await answer).status(), 403, type)
    await page.waitForURL(`${server.origin}/command`)
  }
  await isUntouched()
})

test('a request of another site runs nothing, whether it asks first or does not look at the answer', async t => {
  const { server, page, token, failures, isUntouched } = await intrude(t)
  await page.goto(await otherSite(t))
  const failed = await page.evaluate(async ([origin, token, body]) => {
    const tried = [
      ['/command', { method: 'POST', mode: 'no-cors', body }],
      ['/command', { method: 'POST', mode: 'no-cors', headers: { 'Content-Type': 'application/json', 'X-Dunlin': token }, body }],
      ['/command', { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Dunlin': token }, body }],
      ['/command', { method: 'PUT', body }],
      ['/stream', { headers: { 'X-Dunlin': token } }],
      ['/metrics', {}],
    ]
    return Promise.all(tried.map(async ([path, options]) => {
      return fetch(origin + path, options).then(async answer => `${answer.type} ${await answer.text()}`, error => error.name)
    }))
  }, [server.origin, token, COMMANDS])
  assert.deepEqual(failed, Array(6).fill('TypeError'))
  // What does not ask first was sent and answered, and even that answer is kept from the other site.
  const blocked = 'POST /command net::ERR_BLOCKED_BY_RESPONSE.NotSameOrigin'
  assert.deepEqual(failures.sort(), ['GET /metrics net::ERR_FAILED', 'GET /stream net::ERR_FAILED', blocked, blocked, 'POST /command net::ERR_FAILED', 'PUT /command net::ERR_FAILED'])
  await isUntouched()
})

test('no site can frame the page, or take its files for its own', async t => {
  const { server, page, isUntouched } = await intrude(t, ['--test-kit', 'yes', '--page-token', 'no'])
  await page.goto(await otherSite(t, `<!doctype html><title>elsewhere</title><iframe src="${server.origin}/"></iframe><script src="${server.origin}/assets/words.js"></script><img src="${server.origin}/metrics">`))
  await page.waitForLoadState('load')
  const [, frame] = page.frames()
  assert.equal(await frame.locator('nav').count(), 0)
  const answer = await fetch(server.origin)
  assert.match(answer.headers.get('content-security-policy'), /frame-ancestors 'none'/)
  await isUntouched()
})

test('the page may load and send only to its own server', async t => {
  const server = await start(t)
  const policy = new Map((await fetch(server.origin)).headers.get('content-security-policy').split(';').map(each => each.trim().split(/ (.*)/)))
  assert.deepEqual(Object.fromEntries(policy), {
    'default-src': "'none'", 'script-src': "'self'", 'style-src': "'self'", 'img-src': "'self' data:", 'connect-src': "'self'",
    'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'none'",
  })
  const context = await (await open()).newContext()
  server.pages.push(() => context.close())
  const page = await context.newPage()
  await page.goto(server.address)
  await page.locator('nav').waitFor()
  const site = await otherSite(t)
  const refused = await page.evaluate(async site => {
    const found = []
    document.addEventListener('securitypolicyviolation', event => found.push(event.effectiveDirective))
    await fetch(site, { mode: 'no-cors' }).catch(() => {})
    for (const [name, attributes] of [['script', { textContent: 'document.title = "hit"' }], ['img', { src: `${site}a.png` }], ['style', { textContent: 'body { color: red }' }], ['base', { href: site }]]) document.head.append(Object.assign(document.createElement(name), attributes))
    while (found.length < 5) await new Promise(resolve => setTimeout(resolve, 10))
    return found.sort()
  }, site)
  assert.deepEqual(refused, ['base-uri', 'connect-src', 'img-src', 'script-src-elem', 'style-src-elem'])
  assert.notEqual(await page.title(), 'hit')
})
