// Vitest: a `test` whose fixture `dunlin` is a world of the test's own.

import { test as base } from 'vitest'
import hooks from '../lib/hooks.js'

/** A fixture for `test.extend`, with settings for its worlds. */
export const withWorld = given => async ({ task }, use) => {
  const world = await hooks.openWorld(given)
  await use(world)
  await hooks.endWorld(world, { failed: task.result?.state === 'fail', show: text => console.error(text) })
}

export const test = base.extend({ dunlin: withWorld() })
