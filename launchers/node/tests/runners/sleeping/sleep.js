// Tells where a test is, and has it wait until its process is killed.

const fs = require('node:fs')

module.exports = async (dunlin, name) => {
  const server = (await dunlin.call('INFO', 'server')).match(/process_id:(\d+)/)[1]
  const told = JSON.stringify({ process: process.pid, server: Number(server), world: dunlin.name })
  const file = `${process.env.DUNLIN_TEST_FOLDER}/${name}`
  fs.writeFileSync(`${file}.new`, told)
  fs.renameSync(`${file}.new`, file)
  await new Promise(resolve => setTimeout(resolve, 60_000))
}
