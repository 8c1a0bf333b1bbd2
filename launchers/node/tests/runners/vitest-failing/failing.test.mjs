import { test as base } from 'vitest'
import { withWorld } from 'dunlin/vitest'

const test = base.extend({ dunlin: withWorld({ strict: 'error', seed: 5 }) })

test('it fails', async ({ dunlin }) => {
  await dunlin.call('SET', 'key', 'of the failing test')
  throw new Error('as it should')
})

test('it leaves a set behind', ({ dunlin }) => dunlin.call('SADD', 'members', 'ann'))
