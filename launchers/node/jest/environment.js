'use strict'
// Jest's environment with a world for each test file: the global `dunlin`, whose URL is in the file's REDIS_URL before
// any of its modules is loaded. Other environments, such as jsdom, get one by `withDunlin(Environment)`.

const path = require('node:path')
const { createRequire } = require('node:module')
const { openWorld } = require('../lib/hooks.js')

/** Jest's own environment. Package managers that keep dependencies apart let only Jest's own packages see it. */
function nodeEnvironment(rootDir) {
  let from = path.join(rootDir, 'package.json')
  for (const name of ['jest', 'jest-cli', 'jest-config']) {
    try {
      from = createRequire(from).resolve(name)
    } catch {
      // The next name may be visible from here all the same.
    }
  }
  let found
  try {
    found = createRequire(from).resolve('jest-environment-node')
  } catch {
    throw new Error(
      `dunlin: the environment for Jest needs the package jest-environment-node, which is not found from ${rootDir}; ` +
        "run 'npm install --save-dev jest' there, or start Jest in the folder that has it"
    )
  }
  return require(found)
}

/** Adds a world to an environment of Jest. */
function withDunlin(Base) {
  return class extends Base {
    #options

    constructor(config, context) {
      super(config, context)
      this.#options = config.projectConfig.testEnvironmentOptions.dunlin
    }

    async setup() {
      await super.setup()
      this.dunlin = await openWorld(this.#options)
      this.global.dunlin = this.dunlin
      this.global.process.env.REDIS_URL = this.dunlin.url
    }

    async handleTestEvent(event, state) {
      await super.handleTestEvent?.(event, state)
      if (event.name === 'test_start') {
        await this.dunlin.strict.clear()
        if (this.#options?.journal !== false) await this.dunlin.journal.start()
      }
      // Here a test can still fail; its own hooks come later.
      if (event.name === 'test_fn_success') {
        await this.dunlin.strict.check().catch(error => event.test.errors.push([error, event.test.asyncError]))
      }
      if (event.name === 'test_done' && event.test.errors.length > 0) {
        process.stderr.write(`${event.test.name}\n${await this.dunlin.report()}\n`)
      }
    }

    async teardown() {
      await this.dunlin?.drop()
      await super.teardown()
    }
  }
}

const { TestEnvironment } = nodeEnvironment(process.cwd())

module.exports = withDunlin(TestEnvironment)
module.exports.withDunlin = withDunlin
