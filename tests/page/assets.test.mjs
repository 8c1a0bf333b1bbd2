// The files of the page: they are small, ask for nothing from elsewhere, hold their types, and the library among them is
// the one that its packages make.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { bundle } from './vendor.mjs'

const require = createRequire(import.meta.url)
const ASSETS = fileURLToPath(new URL('../../src/server/page/assets/', import.meta.url))
const read = name => readFileSync(join(ASSETS, name))
const own = readdirSync(ASSETS).filter(name => /\.(js|css|html)$/.test(name))
const zipped = names => names.reduce((sum, name) => sum + gzipSync(read(name), { level: 9 }).length, 0)

/** A module with all that it imports at once. */
function withImports(name, all = new Set()) {
  if (all.has(name)) return all
  all.add(name)
  for (const [, path] of read(name).toString().matchAll(/^(?:import|\}) .*from '\.\/(.+)'$/gm)) withImports(path, all)
  return all
}

/** The files that the first view needs. */
const FIRST = ['index.html', 'style.css', ...new Set([...withImports('app.js'), ...withImports('feed.js')])]

test('all files have less than 120 KB as gzip has them, those of the first view less than 46 KB', () => {
  const [all, first] = [zipped([...own, 'vendor/preact.js']), zipped(FIRST)]
  console.log(`${all} bytes in all, ${first} for the first view`)
  assert(all < 120_000 && first < 46_000, `${all} and ${first}`)
})

test('no file names another host, sets HTML or evaluates a text', () => {
  for (const name of own) {
    const text = read(name).toString().replaceAll('http://www.w3.org/2000/svg', '')
    assert.doesNotMatch(text, /https?:\/\/|innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function|<style|style="| on\w+="/, name)
  }
})

test('the first view preloads what it imports', () => {
  const html = read('index.html').toString()
  for (const name of FIRST.filter(name => name.endsWith('.js'))) assert(html.includes(`/assets/${name}`), name)
})

test('the library is what its packages make', async () => {
  assert.deepEqual(read('vendor/preact.js'), Buffer.from(await bundle()))
  for (const line of read('vendor/SHA256SUMS').toString().trim().split('\n')) {
    const [sum, name] = line.split(/ +/)
    assert.equal(createHash('sha256').update(read(`vendor/${name}`)).digest('hex'), sum, name)
  }
})

test('the types hold', () => {
  const folder = fileURLToPath(new URL('../../target/page/types/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const options = { target: 'es2023', module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom', 'dom.iterable'], checkJs: true, strict: true, noEmit: true, types: [] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: [join(ASSETS, 'app.js')] }))
  const program = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc')
  const { stdout, status } = spawnSync(process.execPath, [program, '--project', folder], { encoding: 'utf8' })
  assert.equal(status, 0, stdout)
})
