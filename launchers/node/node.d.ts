import type { World, WorldOptions } from './index.js'

/** The part of node:test's context that is used. */
export interface TestContext {
  after(hook: () => Promise<void>): void
  diagnostic(message: string): void
}

/** A world for this test, dropped when it ends. If the test fails, its output shows the last commands and the seed. */
export function world(test: TestContext, options?: WorldOptions): Promise<World>
