'use strict'
// Jest: one server for the run, and a world for each test file.

module.exports = {
  globalSetup: require.resolve('./jest/setup.js'),
  globalTeardown: require.resolve('./jest/teardown.js'),
  testEnvironment: require.resolve('./jest/environment.js')
}
