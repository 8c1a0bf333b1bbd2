// A server starts, is used and ends; and what is said when it cannot.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { Dunlin } from 'dunlin'
import { RedisMemoryServer } from 'dunlin/redis-memory-server'
import { fakeProgram, processesWith, run, start, until } from './support.mjs'

const folderFor = t => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'dunlin-test-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  return folder
}

/** What the server at that port answers to PING. */
async function ping({ port, path, words = 'PING\r\n' }) {
  const socket = net.connect(path ? { path } : { port, host: '127.0.0.1' })
  socket.write(words)
  const [reply] = await once(socket, 'data')
  socket.destroy()
  return reply.toString()
}

test('the url has the port that answers', async t => {
  const server = await start(t)
  assert.equal(server.url, `redis://127.0.0.1:${server.port}`)
  assert.equal(await ping(server), '+PONG\r\n')
})

test('two servers have different ports and data', async t => {
  const [one, other] = [await start(t), await start(t)]
  assert.notEqual(one.port, other.port)
  await one.call('SET', 'key', 'one')
  assert.equal(await other.call('GET', 'key'), null)
})

test('a server that is stopped twice is stopped once', async () => {
  const server = await Dunlin.start()
  await Promise.all([server.stop(), server.stop()])
  await server.stop()
  await server[Symbol.asyncDispose]()
  await assert.rejects(ping(server), /ECONNREFUSED/)
  await assert.rejects(server.advance(1), /no reply to DUNLIN ADVANCE 1, as the server has been stopped/)
})

test('a server listens on a Unix socket, which goes with it', async t => {
  const server = await Dunlin.start({ socket: true })
  assert.equal(await ping({ path: server.socket }), '+PONG\r\n')
  assert.equal(fs.statSync(server.socket).mode & 0o777, 0o700)
  await server.stop()
  assert(!fs.existsSync(server.socket))
})

test('a server that was killed leaves no socket', async () => {
  const server = await Dunlin.start()
  assert(fs.existsSync(server.socket))
  process.kill(server.pid, 'SIGKILL')
  await server.stop()
  await until(() => !fs.existsSync(server.socket))
})

test('a start is tried without a socket only where the socket was refused', async t => {
  const folder = folderFor(t)
  const said = 'JSON.stringify({ error: process.env.REFUSES + process.argv[process.argv.indexOf("--unixsocket") + 1] })'
  const program = fakeProgram(folder, `require('fs').appendFileSync('${folder}/starts', '.'); console.log(${said})`)
  const script = 'require("dunlin").Dunlin.start().catch(() => {})'
  await run(['-e', script], { env: { DUNLIN_BINARY: program, REFUSES: 'Failed opening Unix socket ' } })
  assert.equal(fs.readFileSync(`${folder}/starts`, 'utf8'), '..')
  fs.writeFileSync(program, fs.readFileSync(program, 'utf8').replace(/\+ process.argv.*?\]/, ''))
  await run(['-e', script], { env: { DUNLIN_BINARY: program, REFUSES: 'Bad directive' } })
  assert.equal(fs.readFileSync(`${folder}/starts`, 'utf8'), '...')
})

test('a port among the arguments is the port', async t => {
  const server = await Dunlin.start()
  const { port } = server
  await server.stop()
  assert.equal((await start(t, { args: ['--port', port] })).port, port)
})

test('a server takes directives, among them a password', async t => {
  const server = await start(t, { args: ['--requirepass', 'top/secret', '--databases', 3] })
  assert.deepEqual(await server.call('CONFIG', 'GET', 'databases'), ['databases', '3'])
  const world = await server.world()
  assert.match(world.url, /^redis:\/\/temporary-world\.test-[0-9a-f]{16}-\d+:top%2Fsecret@127/)
  assert.match(await ping(server), /^-NOAUTH/)
})

test('the page has a link with its token where it is served', async t => {
  const [link, token] = (await start(t, { args: ['--page-port', 0] })).pageUrl.split('#token=')
  const headers = { 'X-Dunlin': token, 'Content-Type': 'application/json' }
  const reply = await fetch(`${link}command`, { method: 'POST', headers, body: '{"commands":[["PING"]]}' })
  assert.deepEqual(await reply.json(), { replies: [{ status: 'PONG' }] })
  assert.equal((await start(t)).pageUrl, null)
})

test('stopping takes no time while a client is blocked', async () => {
  const server = await Dunlin.start()
  const blocked = net.connect(server.port, '127.0.0.1').on('error', () => {})
  blocked.write('BLPOP queue 0\r\n')
  await server.waitUntilBlocked('queue')
  const before = performance.now()
  await server.stop()
  assert(performance.now() - before < 1_000, `it took ${performance.now() - before} ms`)
})

test('where programs are forbidden the error says so, and what to do', async t => {
  const file = `${folderFor(t)}/dunlin`
  fs.writeFileSync(file, '', { mode: 0o600 })
  const started = Dunlin.start({ binary: file })
  await assert.rejects(started, /EACCES; its file system may forbid programs \(noexec\): set DUNLIN_BINARY/)
})

test('without a program the error names the places and what to do', async t => {
  const folder = folderFor(t)
  fs.cpSync('node_modules/dunlin', `${folder}/node_modules/dunlin`, { recursive: true })
  const { errors, status } = await run(['-e', "require('dunlin').Dunlin.start()"], { cwd: folder })
  assert.equal(status, 1)
  const platform = `${process.platform}-${process.arch}`
  assert.match(errors, new RegExp(`the package @dunlin/${platform} is not installed where ${folder}`))
  assert.match(errors, new RegExp(`run 'npm install --save-dev @dunlin/${platform}@\\d+\\.\\d+\\.\\d+', or set DUNLIN`))
})

test('a path that is no program is named, and where it came from', async () => {
  const env = { DUNLIN_BINARY: '/nowhere/dunlin' }
  const { errors } = await run(['-e', "require('dunlin').Dunlin.start()"], { env })
  assert.match(errors, /\/nowhere\/dunlin \(named by DUNLIN_BINARY\) did not start: spawn \/nowhere\/dunlin ENOENT/)
})

test('a bare name is a program of this folder, and not one of PATH', async t => {
  const folder = folderFor(t)
  const program = fakeProgram(folder, `console.log('{"dunlin":"0.0.9"}')`)
  const script = `require('${process.cwd()}/node_modules/dunlin').Dunlin.start()`
  const { errors } = await run(['-e', script], { cwd: folder, env: { DUNLIN_BINARY: path.basename(program) } })
  assert(errors.includes(`${program} (named by DUNLIN_BINARY) is version 0.0.9`), errors)
})

test('a program of another version is refused by name', async t => {
  const program = fakeProgram(folderFor(t), `console.log('{"dunlin":"0.0.9","url":"redis://127.0.0.1:1"}')`)
  await assert.rejects(
    Dunlin.start({ binary: program }),
    /fake-dunlin \(given as binary\) is version 0\.0\.9, but the package dunlin is \d/
  )
})

test('a program that is no dunlin is refused with what it said', async t => {
  const program = fakeProgram(folderFor(t), "console.error('a word'); console.log('Ready to accept connections')")
  await assert.rejects(Dunlin.start({ binary: program }), /is no dunlin .* it said "Ready to accept connections"/)
})

test('a program that ends without a word is told with its status and its last lines', async t => {
  const program = fakeProgram(folderFor(t), "console.error('out of luck'); process.exitCode = 3; process.exit()")
  await assert.rejects(Dunlin.start({ binary: program }), /start: it ended with status 3; it said:\nout of luck/)
})

test('a program that announces nothing for ten seconds is ended, and its last lines are told', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const folder = folderFor(t)
  const program = fakeProgram(folder, `require('fs').writeFileSync('${folder}/pid', String(process.pid))`)
  const starting = Dunlin.start({ binary: program })
  const refused = assert.rejects(starting, /fake-dunlin .* did not start: it announced nothing for 10 s/)
  await until(() => fs.existsSync(`${folder}/pid`) && fs.readFileSync(`${folder}/pid`, 'utf8') !== '')
  t.mock.timers.tick(10_000)
  await refused
  const pid = Number(fs.readFileSync(`${folder}/pid`))
  await until(() => !processesWith(program).includes(String(pid)))
})

test('a wrong directive and a taken port are told in the words of the server', async t => {
  await assert.rejects(Dunlin.start({ args: ['--no-such', 'x'] }), /cannot start: no-such "x": Bad directive/)
  const { port } = await start(t)
  await assert.rejects(Dunlin.start({ port }), new RegExp(`cannot start: .*${port}.*[Aa]ddress (already )?in use`))
})

test('an announcement that comes byte by byte is read', async t => {
  const server = await start(t)
  const { version } = JSON.parse(fs.readFileSync('node_modules/dunlin/package.json'))
  const { host, port, url } = server
  const line = JSON.stringify({ dunlin: version, pid: 1, host, port, socket: null, url })
  const write = `const bytes = ${JSON.stringify(`${line}\n`)}; let at = 0
    const next = () => at < bytes.length && process.stdout.write(bytes[at++], () => setTimeout(next))
    next()`
  const again = await start(t, { binary: fakeProgram(folderFor(t), write) })
  assert.equal(await again.call('PING'), 'PONG')
})

test('a server starts without HOME and where nothing can be written', async () => {
  const script = "require('dunlin').Dunlin.start().then(s => s.call('PING')).then(console.log)"
  const { output, errors } = await run(['-e', script], { env: { HOME: undefined, TMPDIR: '/proc/1' } })
  assert.equal(output, 'PONG\n', errors)
})

test('with DUNLIN_URL nothing starts, and each process has a world there', async t => {
  const server = await start(t, { args: ['--requirepass', 'secret'] })
  await server.call('SET', 'key', 'default')
  const script = `const { Dunlin } = require('dunlin')
    Dunlin.start().then(async s => console.log(s.pid, s.name, await s.call('GET', 'key'), await s.stop()))`
  const { output } = await run(['-e', script], { env: { DUNLIN_URL: server.url } })
  assert.match(output, /^null test-[0-9a-f]+-\d+ null undefined\n$/)
  assert.equal(await server.call('GET', 'key'), 'default')
})

test('a DUNLIN_URL where nobody answers is told with what to do', async () => {
  const env = { DUNLIN_URL: 'redis://127.0.0.1:1' }
  const { errors } = await run(['-e', "require('dunlin').Dunlin.start()"], { env })
  assert.match(errors, /no world can be made at 127\.0\.0\.1:1 \(DUNLIN_URL\): .*ECONNREFUSED.*; start a dunlin there/)
})

test('an address that is none is named, and DUNLIN_URL only where it is from there', async () => {
  for (const url of ['unix://', 'redis://', 'redis://:%zz@here', 'rediss://127.0.0.1:6379', '7000']) {
    const message = `dunlin: '${url}' is no address of a server; it should be like redis://127.0.0.1:6379`
    await assert.rejects(Dunlin.connect(url), { message })
  }
  await assert.rejects(Dunlin.connect('redis://127.0.0.1:1'), error => !error.message.includes('DUNLIN_URL'))
  await assert.rejects(Dunlin.connect('unix:///nowhere/a.sock'), /no world can be made at \/nowhere\/a\.sock: .*ENOENT/)
  const env = { DUNLIN_URL: 'http://127.0.0.1:1' }
  const { errors } = await run(['-e', "require('dunlin').Dunlin.start()"], { env })
  assert.match(errors, /'http:\/\/127\.0\.0\.1:1' \(DUNLIN_URL\) is no address of a server/)
})

test('an address may have a user and a socket of any name', async t => {
  const socket = `${folderFor(t)}/a#b?c d.sock`
  const server = await start(t, { socket })
  await server.call('ACL', 'SETUSER', 'ann', 'on', '>pass', '~*', '&*', '+@all')
  const path = encodeURI(socket).replace('#', '%23').replace('?', '%3F')
  for (const url of [`redis://ann:pass@127.0.0.1:${server.port}`, `unix://ann:pass@${path}`]) {
    const joined = await Dunlin.connect(url)
    t.after(() => joined.stop())
    await joined.call('SET', 'key', url)
    const world = await joined.world()
    assert.equal(await world.call('GET', 'key'), null)
    assert(world.url.endsWith(url.split('@')[1]), world.url)
    await assert.rejects(world.waitUntilBlocked('queue', { timeout: 20 }), /waited 20 ms in vain/)
  }
})

test('an option that does not exist is refused', async t => {
  const wrong = /there are the options seed, journal, strict, load.*, but not jurnal/
  await assert.rejects(Dunlin.start({ jurnal: false }), wrong)
  await assert.rejects(Dunlin.connect('redis://127.0.0.1:1', { jurnal: false }), wrong)
  await assert.rejects((await start(t)).world({ jurnal: false }), wrong)
})

test('a seed that is none is refused by the name of its variable', async () => {
  const script = "require('dunlin').Dunlin.start().catch(error => console.log(error.message))"
  const { output } = await run(['-e', script], { env: { DUNLIN_SEED: 'seven' } })
  assert.equal(output, "dunlin: the variable DUNLIN_SEED is 'seven', but a seed is a whole number\n")
})

/** A copy of the package alone, which finds no other package beside it. */
function alone(t) {
  const folder = folderFor(t)
  fs.cpSync('node_modules/dunlin', `${folder}/node_modules/dunlin`, { recursive: true })
  return folder
}

test('without Jest its environment says which package it needs', async t => {
  const folder = alone(t)
  const script = "require('dunlin/jest-environment')"
  const { errors } = await run(['-e', script], { cwd: folder })
  assert(errors.includes(`needs the package jest-environment-node, which is not found from ${folder}; run`), errors)
})

test('a wrong password is told, and the default world stays as it is', async t => {
  const server = await start(t, { args: ['--requirepass', 'secret'] })
  const url = server.url.replace('secret', 'wrong')
  await assert.rejects(Dunlin.connect(url, { load: 'SET key value' }), /no world can be made at .* 'WRONGPASS/)
  assert.equal(await server.dump(), '')
})

test('a process ends although it stops nothing', async () => {
  const script = `const { Dunlin } = require('dunlin')
    Dunlin.start().then(async s => { await s.world(); await s.freeze(); console.log('done') })`
  const before = performance.now()
  const { output, status } = await run(['-e', script])
  assert.deepEqual([output, status], ['done\n', 0])
  assert(performance.now() - before < 5_000)
})

test('client() says what is missing where ioredis is not installed', async t => {
  const folder = alone(t)
  const env = { DUNLIN_BINARY: path.resolve(`node_modules/@dunlin/${process.platform}-${process.arch}/bin/dunlin`) }
  const { errors } = await run(['-e', "require('dunlin').Dunlin.start().then(s => s.client())"], { cwd: folder, env })
  assert(errors.includes(`client() needs the package ioredis, which is not found from ${folder}; run 'npm`), errors)
})

test('client() finds ioredis beside the file that was started, and beside this package', async t => {
  const script = "require('dunlin').Dunlin.start().then(s => console.log(s.client().it))"
  const ioredis = 'module.exports = class { it = "found"; disconnect() {} }'
  const [folder, other] = [alone(t), folderFor(t)]
  const env = { DUNLIN_BINARY: path.resolve(`node_modules/@dunlin/${process.platform}-${process.arch}/bin/dunlin`) }
  fs.mkdirSync(`${folder}/app/node_modules/ioredis`, { recursive: true })
  fs.writeFileSync(`${folder}/app/node_modules/ioredis/index.js`, ioredis)
  fs.writeFileSync(`${folder}/app/one.js`, script)
  const beside = await run([`${folder}/app/one.js`], { cwd: other, env })
  assert.equal(beside.output, 'found\n', beside.errors)
  fs.renameSync(`${folder}/app/node_modules/ioredis`, `${folder}/node_modules/ioredis`)
  const within = await run(['-e', script.replace("'dunlin'", `'${folder}/node_modules/dunlin'`)], { cwd: other, env })
  assert.equal(within.output, 'found\n', within.errors)
})

test('a reply in another protocol ends the connection, and not the process', async t => {
  const fake = net.createServer(socket => socket.on('data', () => socket.write('%1\r\n'))).listen(0, '127.0.0.1')
  await once(fake, 'listening')
  t.after(() => fake.close())
  process.env.DUNLIN_URL = `redis://127.0.0.1:${fake.address().port}`
  t.after(() => delete process.env.DUNLIN_URL)
  await assert.rejects(Dunlin.start(), /the server sent %1, which is no reply in RESP2/)
})

test("redis-memory-server's class starts, tells and stops a server", async () => {
  const server = new RedisMemoryServer()
  assert.equal(server.getInstanceInfo(), false)
  assert.equal(await server.start(), true)
  const [host, port] = [await server.getHost(), await server.getPort()]
  assert.equal(host, '127.0.0.1')
  assert.equal(await ping({ port }), '+PONG\r\n')
  assert.equal(server.getInstanceInfo().port, port)
  assert.equal(await server.stop(), true)
  assert.equal(server.getInstanceInfo(), false)
  const other = await RedisMemoryServer.create({ instance: { args: ['--databases', '2'] } })
  assert.equal(other.getInstanceInfo(), false)
  assert.equal(await other.start(), true)
  await assert.rejects(other.start(), /started already/)
  assert.equal(await ping({ port: await other.getPort(), words: 'SELECT 2\r\n' }), '-ERR DB index is out of range\r\n')
  await other.stop()
})

test("redis-memory-server's class keeps its port, and takes another one where its port is taken", async t => {
  const server = await RedisMemoryServer.create({ autoStart: true })
  const port = await server.getPort()
  await server.stop()
  assert.equal(await server.start(), true)
  assert.equal(await server.getPort(), port)
  const other = new RedisMemoryServer({ instance: { port } })
  t.after(() => other.stop())
  assert.notEqual(await other.getPort(), port)
  assert.equal(await ping({ port: await other.getPort() }), '+PONG\r\n')
  await server.stop()
})
