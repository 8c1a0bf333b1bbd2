// A worker of the shop, in a process of its own: `node worker.js`. SIGTERM ends it when its orders are done.

const { UnrecoverableError, Worker } = require('bullmq')
const { connect, connection } = require('./shop.js')

const redis = connect()

async function sell({ data: { user, product, count }, attemptsMade }) {
  if (attemptsMade === 0) throw new Error('the bank does not answer')
  if (!(await redis.take('stock', product, count))) throw new UnrecoverableError('sold out')
  await redis.hincrby('charged', user, 3 * count)
  return `${count} for ${user}`
}

const worker = new Worker('orders', sell, { connection, concurrency: 4 })
worker.on('error', error => console.error(error))
process.on('SIGTERM', async () => {
  await worker.close()
  redis.disconnect()
})
