// Worlds follow each other on the same connections, and live beside each other, without meeting.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { start } from './support.mjs'

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
  assert.equal(await second.journal.count(), 0)
})

test('a world whose entrance is refused changes nothing in the default one', async t => {
  const server = await start(t)
  await server.call('SET', 'key', 'value')
  await server.call('ACL', 'SETUSER', 'default', '-dunlin|world')
  await assert.rejects(server.world({ load: 'SET other 1', strict: 'error' }), /NOPERM/)
  assert.equal(await server.diff('SET key value'), '')
})
