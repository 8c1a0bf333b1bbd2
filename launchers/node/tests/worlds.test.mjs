// Worlds follow each other on the same connections, and live beside each other, without meeting.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { run, start, until } from './support.mjs'

const changes = {
  'another database': world => world.call('SELECT', 3),
  'a transaction': world => world.call('MULTI'),
  'a subscription': world => world.call('SUBSCRIBE', 'news'),
  'no replies': world => void world.call('CLIENT', 'REPLY', 'OFF').catch(() => {}),
  'a password': world => world.call('CONFIG', 'SET', 'requirepass', 'secret'),
  'a lost connection': world => world.call('QUIT')
}

for (const [change, make] of Object.entries(changes)) {
  test(`after a test that left ${change} on its connection the next world is as new`, async t => {
    const server = await start(t)
    const first = await server.world()
    await make(first)
    await first.drop()
    assert.deepEqual(await server.dunlin('WORLDS').then(worlds => worlds.length), 1)
    const second = await server.world()
    assert.equal(await second.call('SET', 'key', 'value'), 'OK')
    assert.equal(await second.diff('SET key value'), '')
    assert.match((await second.call('CLIENT', 'INFO')), / name= .* db=0 /)
  })
}

for (const more of [[], ['--requirepass', 'top/secret']]) {
  const how = more.length > 0 ? 'with a password' : 'without a password'
  test(`worlds that follow each other share one connection, ${how}`, async t => {
    const server = await start(t, { args: ['--unixsocket', '', ...more] })
    const addresses = new Set()
    for (let round = 0; round < 20; round++) {
      const world = await server.world()
      assert.equal(await world.call('INCR', 'counter'), 1)
      addresses.add((await world.call('CLIENT', 'INFO')).match(/ addr=(\S+)/)[1])
      await world.drop()
    }
    assert.equal(addresses.size, 1)
    await server.waitForClients(0)
  })
}

test('a world that was dropped answers nothing, and does not reach the next one', async t => {
  const server = await start(t)
  const first = await server.world()
  await first.drop()
  const second = await server.world()
  const lost = /no reply to FLUSHALL, as the world test-[0-9a-f]{16}-\d+ has been dropped/
  await assert.rejects(first.call('FLUSHALL'), lost)
  await assert.rejects(first.freeze(), /no reply to DUNLIN FREEZE, as the world /)
  await assert.rejects(first.waitForClients(0), /no wait for CLIENTS 1, as the world .* has been dropped/)
  assert.throws(() => first.client(), /there is no client, as the world .* has been dropped/)
  assert.equal(await second.journal.count(), 0)
})

test('a world whose entrance is refused changes nothing in the default one', async t => {
  const server = await start(t)
  await server.call('SET', 'key', 'value')
  await server.call('ACL', 'SETUSER', 'default', '-dunlin|world')
  await assert.rejects(server.world({ load: 'SET other 1', strict: 'error' }), /NOPERM/)
  assert.equal(await server.diff('SET key value'), '')
})

test('a connection that the server has closed is replaced, by one in the same world', async t => {
  const server = await start(t)
  for (const world of [await server.world(), server]) {
    const client = net.connect((await world.listen()).port, '127.0.0.1')
    t.after(() => client.destroy())
    client.write('SET key value\r\n')
    await once(client, 'data')
    for (let round = 0; round < 3; round++) {
      assert.equal(await world.call('QUIT'), 'OK')
      assert.equal(await world.call('GET', 'key'), 'value')
      assert.equal(await world.call('QUIT'), 'OK')
      await until(() => !world.isConnected)
      assert.deepEqual(await Promise.all([world.call('GET', 'key'), world.call('PING')]), ['value', 'PONG'])
    }
    await world.fault('lost', { command: 'INCR' }).dropAfter()
    await assert.rejects(world.call('INCR', 'counter'), /no reply to INCR counter, as the connection .* has ended/)
    await world.clearFaults()
    assert.equal(await world.call('GET', 'counter'), '1')
  }
})

test('a world that has ended with its last connection is not made anew', async t => {
  const server = await start(t)
  const world = await server.world()
  assert.equal(await world.call('QUIT'), 'OK')
  while ((await server.dunlin('WORLDS')).length > 1);
  await assert.rejects(world.dump(), { message: `dunlin: the world ${world.name} has ended with its last connection` })
  await world.drop()
  assert.equal((await server.dunlin('WORLDS')).length, 1)
})

test('a call without a reply is given up after ten seconds, and says which', async () => {
  // Its ten seconds are half a second of ours.
  const script = `
    const { setTimeout } = globalThis
    globalThis.setTimeout = (run, time) => setTimeout(run, time / 20)
    const { Dunlin } = require('dunlin')
    globalThis.setTimeout = setTimeout
    const told = error => console.log(error.message.replace(/connection to .* has/, 'connection has'))
    Dunlin.start().then(async server => {
      await Promise.all([server.call('BLPOP', 'queue', 0).catch(told), server.call('PING').catch(told)])
      console.log(await server.call('PING'))
    })`
  const { output, errors } = await run(['-e', script])
  const reason = 'as the connection has ended: BLPOP queue 0 got no reply for 10 s'
  assert.equal(output, `dunlin: no reply to BLPOP queue 0, ${reason}\ndunlin: no reply to PING, ${reason}\nPONG\n`, errors)
})
