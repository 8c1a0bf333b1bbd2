// The packages as package managers lay them out.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { run } from './support.mjs'

const PACKAGES = '../packages'
const PLATFORM = `@dunlin/${process.platform}-${process.arch}`
const PING = "require('dunlin').Dunlin.start().then(s => s.call('PING')).then(console.log)"

function folderFor(t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'dunlin-test-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  return folder
}

/** A project in which npm has installed the packages. */
function installed(t, ...options) {
  const folder = folderFor(t)
  const fileOf = name => {
    const start = name.replace('@', '').replace('/', '-')
    const packed = new RegExp(`^${start}-[0-9.]+\\.tgz$`)
    return path.resolve(PACKAGES, fs.readdirSync(PACKAGES).find(file => packed.test(file)))
  }
  // Not as one that the tests run in, whose settings npm would find in the variables.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')))
  const [dependencies, optionalDependencies] = ['dunlin', PLATFORM].map(name => ({ [name]: fileOf(name) }))
  const project = { private: true, dependencies, optionalDependencies }
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(project))
  execFileSync('npm', ['install', '--silent', '--offline', ...options], { cwd: folder, env })
  return folder
}

test('without scripts the program is there, and is not a link', async t => {
  const folder = installed(t, '--ignore-scripts')
  const { output, errors } = await run(['-e', PING], { cwd: folder })
  assert.equal(output, 'PONG\n', errors)
  const manifests = ['dunlin', PLATFORM].map(name => fs.readFileSync(`${folder}/node_modules/${name}/package.json`))
  for (const manifest of manifests) assert.equal(JSON.parse(manifest).scripts, undefined)
})

test('without optional packages the error says how to get the program', async t => {
  const folder = installed(t, '--omit=optional')
  assert(!fs.existsSync(`${folder}/node_modules/${PLATFORM}`))
  const { errors, status } = await run(['-e', PING], { cwd: folder })
  assert.equal(status, 1)
  assert(errors.includes(`the package ${PLATFORM} is not installed`), errors)
  assert.match(errors, /npm leaves it out with --omit=optional/)
  assert.match(errors, new RegExp(`run 'npm install --save-dev ${PLATFORM}@\\d+\\.\\d+\\.\\d+'`))
  const command = await run(['node_modules/.bin/dunlin', 'ping'], { cwd: folder })
  assert.equal(command.status, 125)
  assert(command.errors.startsWith('dunlin: there is no program: the package '), command.errors)
})

test('packages that pnpm keeps apart find each other', async t => {
  const folder = folderFor(t)
  const kept = `${folder}/node_modules/.pnpm`
  const [own, program] = [`${kept}/dunlin@0.0.0/node_modules`, `${kept}/program@0.0.0/node_modules`]
  fs.cpSync('node_modules/dunlin', `${own}/dunlin`, { recursive: true })
  fs.cpSync(`node_modules/${PLATFORM}`, `${program}/${PLATFORM}`, { recursive: true })
  fs.mkdirSync(`${own}/@dunlin`)
  fs.symlinkSync(`${program}/${PLATFORM}`, `${own}/${PLATFORM}`)
  fs.symlinkSync(`${own}/dunlin`, `${folder}/node_modules/dunlin`)
  const { output, errors } = await run(['-e', PING], { cwd: folder })
  assert.equal(output, 'PONG\n', errors)
})
