// The shop's own tests, with a worker in a process of its own: `dunlin run -- node --test`.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const path = require('node:path')
const { after, before, beforeEach, test } = require('node:test')
const { QueueEvents } = require('bullmq')
const { connect, connection, Shop } = require('./shop.js')

const redis = connect()
const events = new QueueEvents('orders', { connection })
const shop = new Shop()
let worker

const finish = job => job.waitUntilFinished(events, 30_000)

before(async () => {
  await events.waitUntilReady()
  worker = spawn(process.execPath, [path.join(__dirname, 'worker.js')], { stdio: 'inherit' })
})

beforeEach(async () => {
  await redis.del('charged')
  await redis.hset('stock', 'apple', 10)
})

after(async () => {
  worker.kill()
  assert.deepEqual(await once(worker, 'exit'), [0, null])
  await Promise.all([shop.orders.close(), events.close()])
  redis.disconnect()
})

test('an order is sold once, although the bank fails at first', async () => {
  assert.equal(await finish(await shop.place({ user: 'ann', product: 'apple', count: 2 })), '2 for ann')
  assert.deepEqual(await redis.hgetall('charged'), { ann: '6' })
  assert.equal(await redis.hget('stock', 'apple'), '8')
})

test('what is sold out is not tried again', async () => {
  const job = await shop.place({ user: 'ann', product: 'apple', count: 11 })
  await assert.rejects(finish(job), /sold out/)
  assert.equal((await shop.orders.getJob(job.id)).attemptsMade, 2)
  assert.equal(await redis.exists('charged'), 0)
})

test('no piece is sold twice', async () => {
  const users = Array.from({ length: 15 }, (_, number) => `user${number}`)
  const jobs = await Promise.all(users.map(user => shop.place({ user, product: 'apple', count: 1 })))
  let sold = 0
  for (const job of jobs) await finish(job).then(() => sold++, error => assert.equal(error.message, 'sold out'))
  assert.equal(sold, 10)
  assert.equal(await redis.hget('stock', 'apple'), '0')
})

test('an order is placed once in a minute', async () => {
  await shop.orders.pause()
  const order = { user: 'bob', product: 'apple', count: 1 }
  const first = await shop.place(order)
  assert.equal((await shop.place(order)).id, first.id)
  await redis.call('DUNLIN', 'ADVANCE', 60_000)
  const second = await shop.place(order)
  assert.notEqual(second.id, first.id)
  await shop.orders.resume()
  await Promise.all([finish(first), finish(second)])
  assert.deepEqual(await redis.hgetall('charged'), { bob: '6' })
})
