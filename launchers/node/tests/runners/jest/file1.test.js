const Redis = require('ioredis')
const url = process.env.REDIS_URL

afterEach(() => dunlin.call('FLUSHALL'))

for (let index = 0; index < 5; index++) {
  test(`a client of the file's world counts alone, ${index}`, async () => {
    const redis = new Redis(url)
    expect(await redis.incr('counter')).toBe(1)
    await redis.expire('counter', 60)
    await dunlin.advance({ seconds: 60 })
    expect(await redis.exists('counter')).toBe(0)
    await dunlin.journal.expect({ none: true, command: 'KEYS' })
    redis.disconnect()
  })
}

test('an assertion of the journal fails as one', async () => {
  await expect(dunlin.journal.expect({ atLeast: 1, command: 'KEYS' })).rejects.toThrow(/expected at least 1/)
})
