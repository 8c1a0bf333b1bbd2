const sleep = require('../sleep.js')

test('it sleeps', () => sleep(dunlin, 'two'), 70_000)
