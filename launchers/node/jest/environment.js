'use strict'
// Jest's environment with a world for each test file: the global `dunlin`, whose URL is in the file's REDIS_URL before
// any of its modules is loaded. Other environments, such as jsdom, get one by `withDunlin(Environment)`.

const { openWorld, reportOf } = require('../lib/hooks.js')
const { locate } = require('../lib/packages.js')

/** Jest's own environment. Package managers that keep dependencies apart let only Jest's own packages see it. */
function nodeEnvironment() {
  const found = locate('jest-environment-node', ['jest', 'jest-cli', 'jest-config'])
  if (found) return require(found)
  throw new Error(
    `dunlin: the environment for Jest needs the package jest-environment-node, which is not found from ${process.cwd()}; ` +
      "run 'npm install --save-dev jest' there, or start Jest in the folder that has it"
  )
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
      // An error that is thrown here would hide the results of the whole file.
      const fails = error => event.test.errors.push([error, event.test.asyncError])
      if (event.name === 'test_start') {
        await this.#begin().catch(fails)
      }
      // Here a test can still fail; its own hooks come later.
      if (event.name === 'test_fn_success') {
        await this.dunlin.strict.check().catch(fails)
      }
      if (event.name === 'test_done' && event.test.errors.length > 0) {
        process.stderr.write(`${event.test.name}\n${await reportOf(this.dunlin)}\n`)
      }
    }

    async #begin() {
      await this.dunlin.strict.clear()
      if (this.#options?.journal !== false) await this.dunlin.journal.start()
    }

    async teardown() {
      await this.dunlin?.drop()
      await super.teardown()
    }
  }
}

const { TestEnvironment } = nodeEnvironment()

module.exports = withDunlin(TestEnvironment)
module.exports.withDunlin = withDunlin
