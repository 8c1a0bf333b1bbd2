import type { World } from '../index.js'

declare global {
  /** The world of this test file. */
  const dunlin: World
}
