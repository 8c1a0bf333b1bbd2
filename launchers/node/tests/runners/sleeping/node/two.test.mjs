import { test } from 'node:test'
import { world } from 'dunlin/node'
import sleep from '../sleep.js'

test('it sleeps', async t => sleep(await world(t), 'two'))
