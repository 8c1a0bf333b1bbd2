import Redis from 'ioredis'
import { describe, expect } from 'vitest'
import { test } from 'dunlin/vitest'

describe.concurrent('worlds', () => {
  for (let index = 0; index < 5; index++) {
    test(`a client of the test's world counts alone, ${index}`, async ({ dunlin }) => {
      const redis = new Redis(dunlin.url)
      expect(await redis.incr('counter')).toBe(1)
      await redis.expire('counter', 60)
      await dunlin.advance({ seconds: 60 })
      expect(await redis.exists('counter')).toBe(0)
      redis.disconnect()
    })
  }
})

test('the server is that of the run', ({ dunlin }) => expect(dunlin.url).toContain(new URL(process.env.DUNLIN_URL).host))
