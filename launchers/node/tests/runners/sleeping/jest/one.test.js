const sleep = require('../sleep.js')

test('it sleeps', () => sleep(dunlin, 'one'), 70_000)
