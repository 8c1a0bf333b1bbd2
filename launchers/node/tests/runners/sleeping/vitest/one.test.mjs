import { test } from 'dunlin/vitest'
import sleep from '../sleep.js'

test('it sleeps', ({ dunlin }) => sleep(dunlin, 'one'), 70_000)
