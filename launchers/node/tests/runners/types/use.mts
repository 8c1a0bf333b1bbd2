import { test } from 'node:test'
import { Dunlin, ReplyError, type World } from 'dunlin'
import { world } from 'dunlin/node'
import { RedisMemoryServer } from 'dunlin/redis-memory-server'
import { test as vitest, withWorld } from 'dunlin/vitest'

test('a world has these methods', async t => {
  const dunlin: World = await world(t, { strict: { all: 'error', 'late-expire': 'off' }, seed: 7 })
  const moved: Date = await dunlin.advance({ hours: 1 })
  const next: Date | null = await dunlin.advanceToNext()
  await dunlin.fault('dies', { command: 'LMOVE', times: 1 }).dropAfter()
  await dunlin.journal.expect({ exactly: 1, command: 'HSET', key: 'cart:*' })
  // @ts-expect-error: an expectation says how many.
  await dunlin.journal.expect({ command: 'HSET' })
  // @ts-expect-error: there is no such unit.
  await dunlin.advance({ hour: 1 })
  const { host, port }: { host: string; port: number } = await dunlin.listen()
  return void [moved, next, host, port, ReplyError]
})

test('a server is a world', async () => {
  await using server = await Dunlin.start({ args: ['--databases', 3], socket: true })
  const dunlin: World = server
  const other = await server.world()
  const text: string = await dunlin.diff(other)
  await new RedisMemoryServer({ instance: { port: 7 } }).stop()
  const page: string | null = server.pageUrl
  return void [text, server.port, page]
})

vitest('it has a fixture', async ({ dunlin }) => void (await dunlin.dump()))
vitest.extend({ other: withWorld({ seed: 1 }) })('and another', async ({ other }) => void (await other.dump()))
