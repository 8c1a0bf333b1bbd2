// What a world can do, and that worlds do not meet.

import assert from 'node:assert/strict'
import { AssertionError } from 'node:assert'
import net from 'node:net'
import { test } from 'node:test'
import { Dunlin, ReplyError } from 'dunlin'
import { start, until, world } from './support.mjs'

const replied = text => error => error instanceof ReplyError && text.test(error.message)
const asserted = text => error => error instanceof AssertionError && text.test(error.message)

test('the clock moves, freezes and runs', async t => {
  const dunlin = await world(t)
  await dunlin.freeze()
  const before = await dunlin.now()
  await dunlin.call('SET', 'session', 'ann', 'EX', 3600)
  assert.deepEqual(await dunlin.advance({ minutes: 59, seconds: 59, milliseconds: 999 }), new Date(+before + 3_599_999))
  assert.equal(await dunlin.call('EXISTS', 'session'), 1)
  assert.deepEqual(await dunlin.advanceToNext(), new Date(+before + 3_600_000))
  assert.equal(await dunlin.call('EXISTS', 'session'), 0)
  assert.equal(await dunlin.advanceToNext(), null)
  assert.deepEqual(await dunlin.setTime(new Date('2030-01-01')), new Date('2030-01-01'))
  await dunlin.resume()
  await dunlin.setSpeed(1000)
  await assert.rejects(dunlin.advance({ hour: 1 }), /a duration has days, .* but not hour/)
})

test('a snapshot is rolled back to, and texts are loaded and compared', async t => {
  const [dunlin, other] = [await world(t, { load: 'SET stock 7' }), await world(t)]
  await dunlin.snapshot('fixture')
  await dunlin.call('DECR', 'stock')
  assert.equal(await dunlin.diff('SET stock 7'), '- SET stock 7\n+ SET stock 6\n')
  assert.deepEqual(await dunlin.snapshots(), ['fixture'])
  await dunlin.rollback('fixture')
  assert.equal(await dunlin.diff('SET stock 7'), '')
  await other.load(await dunlin.dump())
  assert.equal(await dunlin.diff(other), '')
  await dunlin.dropSnapshot('fixture')
  await assert.rejects(dunlin.rollback('fixture'), replied(/no snapshot/))
  await assert.rejects(dunlin.load('GET stock'), /line 1: 'get' does not write data/)
})

test('faults strike as their rules say', async t => {
  const dunlin = await world(t)
  await dunlin.fault('no', { command: 'GET', key: 'a*', nth: 2, times: 1 }).error('TRYAGAIN later')
  assert.equal(await dunlin.call('GET', 'apple'), null)
  assert.equal(await dunlin.call('GET', 'berry'), null)
  await assert.rejects(dunlin.call('GET', 'apple'), /^ReplyError: TRYAGAIN later$/)
  await dunlin.waitUntilFired('no')
  assert.deepEqual((await dunlin.faults()).map(({ name, fired }) => [name, fired]), [['no', 1]])
  await dunlin.removeFault('no')
  await dunlin.fault('slow', { command: 'PING' }).delay({ seconds: 1 })
  await dunlin.fault('moved', { percent: 100 }).moved(1, '127.0.0.1:7')
  const losses = ['dropBefore', 'dropAfter', 'halfReply', 'splitReply', 'silence']
  await dunlin.fault('ask', { percent: 100 }).ask(1, '127.0.0.1:7')
  const states = ['loading', 'busy', 'readonly', 'oom', 'masterdown', 'clusterdown', 'tryagain', 'crossslot']
  for (const kind of [...losses, ...states]) {
    await dunlin.fault(kind, { command: 'GET', client: 'nobody' })[kind]()
  }
  assert.equal((await dunlin.faults()).length, 16)
  await dunlin.clearFaults()
  assert.deepEqual(await dunlin.faults(), [])
  assert.throws(() => dunlin.fault('no', { comand: 'GET' }), /there are the options command, .* but not comand/)
})

test('the journal counts, lists and asserts', async t => {
  const dunlin = await world(t)
  await dunlin.call('HSET', 'cart:ann', 'apple', 1)
  await dunlin.journal.expect({ exactly: 1, command: 'HSET', key: 'cart:*' })
  await dunlin.journal.expect({ none: true, command: 'KEYS' })
  await dunlin.journal.expect({ atMost: 1, errors: false })
  const refused = dunlin.journal.expect({ atLeast: 2, key: 'cart:*' })
  await assert.rejects(refused, asserted(/^expected at least 2 of .*HSET cart:ann/))
  await assert.rejects(dunlin.journal.expect({ none: true, command: 'KEYZ' }), /ReplyError: ERR unknown command name/)
  await assert.rejects(dunlin.journal.expect({ command: 'GET' }), /expect takes one of/)
  assert.equal(await dunlin.journal.count({ command: 'HSET' }), 1)
  assert.deepEqual((await dunlin.journal.list())[0].command, ['HSET', 'cart:ann', 'apple', '1'])
  assert.match(await dunlin.journal.export(), /HSET cart:ann apple 1/)
  await dunlin.journal.stop()
  await dunlin.call('PING')
  assert.equal(await dunlin.journal.count(), 1)
  await dunlin.journal.start()
  await dunlin.call('PING')
  await dunlin.journal.clear()
  assert.equal(await dunlin.journal.count(), 0)
})

test('strict mode finds, refuses and checks', async t => {
  const dunlin = await world(t, { strict: { 'endless-waits': 'error', 'unbounded-collection': 'error' } })
  await assert.rejects(dunlin.call('BLPOP', 'queue', 0), /STRICT endless-waits/)
  assert.equal((await dunlin.strict.findings())[0].rule, 'endless-waits')
  await dunlin.strict.clear()
  await dunlin.strict.check()
  await dunlin.strict.allow('ALL', 'countries')
  await dunlin.call('SADD', 'countries', 'de')
  await dunlin.strict.check()
  await dunlin.call('SADD', 'members', 'ann')
  await assert.rejects(dunlin.strict.check(), asserted(/unbounded-collection/))
  await dunlin.strict.set('keys-command', 'warn', { limit: 5 })
  const rule = (await dunlin.strict.rules()).find(({ rule }) => rule === 'keys-command')
  assert.deepEqual([rule.level, rule.limit], ['warn', 5])
})

test('waits end with what they wait for, and while they wait the clock can be moved', async t => {
  const dunlin = await world(t)
  await dunlin.freeze()
  const blocked = dunlin.waitUntilBlocked('queue')
  const { port } = await dunlin.listen()
  const worker = net.connect(port, '127.0.0.1')
  t.after(() => worker.destroy())
  worker.write('BLPOP queue 9\r\n')
  await blocked
  await dunlin.waitForClients(1)
  const replied = new Promise(resolve => worker.once('data', resolve))
  await dunlin.advance({ seconds: 9 })
  assert.equal(String(await replied), '*-1\r\n')
  await dunlin.waitForCommands(1, { command: 'BLPOP' })
  worker.write('SUBSCRIBE news\r\n')
  await dunlin.waitForSubscribers('news')
  const late = dunlin.waitForSubscribers('news', 2, { timeout: { milliseconds: 20 } })
  await assert.rejects(late, /waited 20 ms in vain for SUBSCRIBERS news 2 in the world test-/)
})

test('the same seed gives the same answers, and the report tells it', async t => {
  const drawn = async seed => {
    const dunlin = await world(t, { seed })
    await dunlin.call('SADD', 'tickets', ...'abcdefgh')
    return dunlin.call('SRANDMEMBER', 'tickets', 3)
  }
  assert.deepEqual(await drawn(7), await drawn(7))
  const dunlin = await world(t)
  await dunlin.call('SET', 'a', 1)
  await dunlin.seed(9)
  const report = await dunlin.report()
  assert.match(report, /the seed was 9 \(DUNLIN_SEED=9 repeats it\)/)
  assert.match(report, /the last 1 of 1 commands:\n {2}client \d+: SET a 1 -> OK$/)
  await dunlin.seed(2n ** 63n - 1n)
  assert.match(await dunlin.report(), /the seed was 9223372036854775807 \(/)
})

test('two hundred worlds at once have their own keys, channels, scripts and clocks', async t => {
  const server = await start(t)
  const worlds = await Promise.all(Array.from({ length: 200 }, () => server.world()))
  const every = ask => Promise.all(worlds.map(ask))
  await every((each, index) => each.call('SET', 'key', index))
  const scripts = await every((each, index) => each.call('SCRIPT', 'LOAD', `return ${index}`))
  await every((each, index) => each.advance({ days: index }))
  const listeners = await Promise.all(worlds.slice(0, 20).map(each => listener(t, each)))
  const reached = await every((each, index) => each.call('PUBLISH', 'news', index))
  assert.deepEqual(reached, worlds.map((_, index) => (index < 20 ? 1 : 0)))
  assert.deepEqual(await Promise.all(listeners.map(heard => heard())), listeners.map((_, index) => String(index)))
  assert.deepEqual(await every(each => each.call('GET', 'key')), worlds.map((_, index) => String(index)))
  const known = await every((each, index) => each.call('SCRIPT', 'EXISTS', scripts[index], scripts[(index + 1) % 200]))
  assert.deepEqual(known, worlds.map(() => [1, 0]))
  const days = (await every(each => each.now())).map(now => Math.floor((now - Date.now()) / 86_400_000 + 0.5))
  assert.deepEqual(days, worlds.map((_, index) => index))
  await every(each => each.drop())
  assert.equal((await server.dunlin('WORLDS')).length, 1)
})

/** Subscribes to `news` in a world; what is returned awaits the message. */
async function listener(t, world) {
  const { port } = await world.listen()
  const socket = net.connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let text = ''
  socket.on('data', piece => (text += piece))
  socket.write('SUBSCRIBE news\r\n')
  await world.waitForSubscribers('news')
  return async () => {
    await until(() => text.includes('message'))
    return text.trim().split('\r\n').at(-1)
  }
}

test('FLUSHALL, SHUTDOWN and CONFIG SET in one world do not reach the others', async t => {
  const server = await start(t)
  const worlds = await Promise.all(Array.from({ length: 5 }, () => server.world()))
  await Promise.all(worlds.map(each => each.call('SET', 'key', 'value')))
  await worlds[0].call('FLUSHALL')
  await worlds[1].call('CONFIG', 'SET', 'maxmemory', 1)
  await worlds[2].call('SHUTDOWN').catch(() => {})
  for (const other of worlds.slice(3)) {
    assert.equal(await other.diff('SET key value'), '')
    assert.deepEqual(await other.call('CONFIG', 'GET', 'maxmemory'), ['maxmemory', '0'])
  }
  assert.equal(await server.call('PING'), 'PONG')
})

test('a world outlives the connections of the application', async t => {
  const dunlin = await world(t)
  const connect = () => Dunlin.connect(dunlin.url.replace(/temporary-world[^@]*@/, ''))
  const { port } = await dunlin.listen()
  const say = words => new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(words)).once('data', reply => {
      socket.destroy()
      resolve(String(reply))
    }).on('error', reject)
  })
  assert.equal(await say('SET key value\r\n'), '+OK\r\n')
  assert.equal(await say('GET key\r\n'), '$5\r\nvalue\r\n')
  const other = await connect()
  assert.equal(await other.call('GET', 'key'), null)
  await other.drop()
  await dunlin.drop()
  await assert.rejects(say('PING\r\n'), /ECONNREFUSED/)
})

test('a template is the start of new worlds', async t => {
  const server = await start(t)
  const fixture = await server.world({ load: 'SET stock 7' })
  await fixture.makeTemplate()
  assert.equal(await (await server.world()).call('GET', 'stock'), '7')
  await fixture.dropTemplate()
  assert.equal(await (await server.world()).call('GET', 'stock'), null)
})

test('large and binary values travel', async t => {
  const dunlin = await world(t)
  const large = 'ä'.repeat(3_000_000)
  await dunlin.call('SET', 'large', large)
  assert.equal(await dunlin.call('GET', 'large'), large)
  await dunlin.call('SET', 'bytes', Buffer.from([0, 255, 13, 10]))
  assert.equal(await dunlin.call('STRLEN', 'bytes'), 4)
  const letters = Buffer.from('abcdefgh')
  for (const view of [new DataView(letters.buffer, letters.byteOffset + 1, 3), new Uint16Array([0x6362, 0x0064])]) {
    await dunlin.call('SET', 'view', view)
    assert.equal((await dunlin.call('GET', 'view')).replace('\0', ''), 'bcd')
  }
  await dunlin.call('RPUSH', 'list', ...Array.from({ length: 50_000 }, (_, index) => `element ${index}`))
  assert.equal((await dunlin.call('LRANGE', 'list', 0, -1)).at(-1), 'element 49999')
})
