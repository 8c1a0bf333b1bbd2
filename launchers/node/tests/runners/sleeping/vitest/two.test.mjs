import { test } from 'dunlin/vitest'
import sleep from '../sleep.js'

test('it sleeps', ({ dunlin }) => sleep(dunlin, 'two'), 70_000)
