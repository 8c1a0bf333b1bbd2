test('it passes', () => dunlin.call('PING'))

test('it drops the world', async () => {
  await dunlin.drop()
  throw new Error('the reason of the test')
})

test('it has no world', () => {})
