import type { TestAPI } from 'vitest'
import type { World, WorldOptions } from '../index.js'

/** A fixture for `test.extend`, with settings for its worlds. */
export function withWorld(
  options?: WorldOptions
): (context: { task: any }, use: (world: World) => Promise<void>) => Promise<void>

/** Vitest's `test`, whose fixture `dunlin` is a world of the test's own. */
export const test: TestAPI<{ dunlin: World }>
