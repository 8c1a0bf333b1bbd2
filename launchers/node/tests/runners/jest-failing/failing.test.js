test('it fails', async () => {
  await dunlin.call('SET', 'key', 'of the failing test')
  throw new Error('as it should')
})

test('it leaves a set behind', () => dunlin.call('SADD', 'members', 'ann'))
