// Vitest's global set-up: one server for the run, which the workers find by DUNLIN_URL.

import { Dunlin } from '../index.js'

export default async function setup() {
  if (process.env.DUNLIN_URL) return
  const server = await Dunlin.start()
  process.env.DUNLIN_URL = server.url
  return async () => {
    delete process.env.DUNLIN_URL
    await server.stop()
  }
}
