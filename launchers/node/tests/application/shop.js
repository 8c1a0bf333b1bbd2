// A shop whose orders are worked on by BullMQ. It finds Redis by the variable REDIS_URL.

const { Queue } = require('bullmq')
const Redis = require('ioredis')

// All or none of the pieces are taken out of the stock.
const TAKE = `
  local left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
  if left < tonumber(ARGV[2]) then return 0 end
  redis.call('HINCRBY', KEYS[1], ARGV[1], -ARGV[2])
  return 1`

/** What BullMQ makes its connections of. */
const connection = { url: process.env.REDIS_URL, maxRetriesPerRequest: null }

/** A connection for the shop's own data. */
function connect() {
  const redis = new Redis(process.env.REDIS_URL)
  redis.defineCommand('take', { numberOfKeys: 1, lua: TAKE })
  return redis
}

/** Takes orders; the same one within a minute is a key that was pressed twice. */
class Shop {
  orders = new Queue('orders', { connection })

  place(order) {
    const { user, product, count } = order
    const deduplication = { id: `${user}/${product}/${count}`, ttl: 60_000 }
    return this.orders.add('order', order, { attempts: 3, deduplication, removeOnComplete: 1000 })
  }
}

module.exports = { connect, connection, Shop }
