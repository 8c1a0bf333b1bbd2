// The lines that the page shows for each language are calls that the packages have: each method that a line names is in
// the source of its package.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { LANGUAGES, lineIn } from '../../src/server/page/assets/launchers.js'
import { wordOf } from '../../src/server/page/assets/words.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const sources = (folder, end) => readdirSync(ROOT + folder).filter(name => name.endsWith(end)).map(name => readFileSync(`${ROOT}${folder}/${name}`, 'utf8')).join('\n')

/** The source of each package, and how it defines a method or a name. */
const PACKAGES = {
  Python: [sources('launchers/python/src/dunlin_redis', '.py'), name => new RegExp(`def ${name}\\(|self\\.${name}\\b|, self\\.${name} =`)],
  'Node.js': [readFileSync(`${ROOT}launchers/node/index.d.ts`, 'utf8'), name => new RegExp(`\\b${name}(\\(|:)`)],
  Java: [sources('launchers/java/src/dunlin', '.java'), name => new RegExp(`public [^=;]*\\b${name}\\(|^ {4}${name},?$`, 'm')],
  Go: [sources('launchers/go', '.go'), name => new RegExp(`^func \\(\\w+ \\*?\\w+\\) ${name}\\(`, 'm')],
  Rust: [sources('src/testkit', '.rs') + sources('src/engine/state/kit', 'faults.rs') + sources('src/engine/state/kit/strict', 'rule.rs'), name => new RegExp(`pub fn ${name}\\b|^ {4}${name}\\b`, 'm')],
}

/** What belongs to a language itself. */
const OF_LANGUAGE = new Set(['datetime', 'fromisoformat', 'Date', 'Instant', 'parse', 'UnixMilli', 'from_millis', 'into', 'Duration', 'ofMillis', 'Millisecond', 'time'])

const FAULTS = ['DELAY 10', 'ERROR "ERR no"', 'DROP-BEFORE', 'DROP-AFTER', 'HALF-REPLY', 'SPLIT-REPLY', 'SILENCE', 'LOADING', 'BUSY', 'READONLY', 'OOM', 'MASTERDOWN', 'MOVED 7 127.0.0.1:7001', 'ASK 7 127.0.0.1:7001', 'CLUSTERDOWN', 'TRYAGAIN', 'CROSSSLOT']
const RULES = ['undeclared-keys', 'cross-slot', 'keys-command', 'whole-reads', 'large-elements', 'unbounded-collection', 'late-expire', 'lossy-scores', 'endless-waits', 'select', 'whole-server', 'sort-outside', 'moved-unhandled', 'stale-read']
const COMMANDS = [
  'FREEZE', 'RESUME', 'ADVANCE 1000', 'ADVANCE-TO-NEXT', 'SPEED 60', 'SPEED 0.5', 'SET-TIME 1782986400000', 'SNAPSHOT s', 'ROLLBACK s', 'DROP-SNAPSHOT s', 'DUMP', 'TEMPLATE', 'DROP-TEMPLATE',
  'WORLD north', 'FAULT REMOVE f', 'FAULT CLEAR', 'STRICT CLEAR', 'STRICT CHECK', 'STRICT ALLOW ALL a:*',
  ...FAULTS.map(failure => `FAULT ADD f COMMAND ZADD KEY k:* CLIENT shop NTH 2 TIMES 1 PERCENT 50 ${failure}`),
  ...['ALL', 'CLUSTER', ...RULES].flatMap(rule => ['off', 'warn', 'error'].map(level => `STRICT SET ${rule} ${level}`)),
  ...RULES.map(rule => `STRICT ALLOW ${rule} a:*`),
].map(line => ['DUNLIN', ...line.replaceAll('"ERR no"', 'ERR-no').split(' ')])

/** The names in a line that are called or chosen: not those in a text, and not a variable. */
const namesIn = line => [...line.replace(/"[^"]*"|'[^']*'/g, '""').matchAll(/(?:\.|::|\bnew )(\w+)/g)].map(found => found[1]).filter(name => !OF_LANGUAGE.has(name) && !/^\d/.test(name))

test('every method that a line calls is in its package', () => {
  for (const [language, [source, defines]] of Object.entries(PACKAGES)) {
    assert(source.length > 1000, language)
    for (const words of COMMANDS) {
      const line = lineIn(language, words)
      for (const name of line === undefined ? [] : namesIn(line)) assert.match(source, defines(name), `${language}: ${line}`)
    }
  }
  assert.doesNotMatch(PACKAGES.Rust[0], PACKAGES.Rust[1]('no_such_method'))
})

test('a command of the test kit is a method wherever a package has it', () => {
  const byCall = { Python: /dunlin\.call\(/, 'Node.js': /dunlin\.call\(/, Java: /dunlin\.call\(/, Go: /dunlin\.Call\(/, Rust: /\.call\(/ }
  const without = COMMANDS.flatMap(words => Object.entries(byCall).filter(([language, call]) => call.test(lineIn(language, words) ?? '')).map(([language]) => `${language}: ${words.slice(1, 3).join(' ')}`))
  assert.deepEqual([...new Set(without)].sort(), ['Go: DROP-SNAPSHOT s', 'Go: DROP-TEMPLATE', 'Go: STRICT CHECK', 'Go: TEMPLATE', 'Rust: STRICT ALLOW'])
})

test('where a package has no method, its line is a call that works', () => {
  assert.equal(lineIn('Go', ['DUNLIN', 'DROP-SNAPSHOT', 'fixture']), 'dunlin.Call("DUNLIN", "DROP-SNAPSHOT", "fixture")')
  assert.equal(lineIn('Go', ['DUNLIN', 'TEMPLATE']), 'dunlin.Call("DUNLIN", "TEMPLATE")')
  assert.equal(lineIn('Java', ['DUNLIN', 'SNAPSHOT', wordOf(Uint8Array.of(255))]), undefined)
  assert.equal(lineIn('Python', ['DUNLIN', 'SET-TIME', '9e99']), 'dunlin.call("DUNLIN", "SET-TIME", "9e99")')
  assert.equal(lineIn('Python', ['DUNLIN', 'FAULT', 'ADD', 'full', 'DISK', 'WRITE', 'ENOSPC']), 'dunlin.call("DUNLIN", "FAULT", "ADD", "full", "DISK", "WRITE", "ENOSPC")')
})

test('faults and levels are written as each language writes them', () => {
  const fault = ['DUNLIN', 'FAULT', 'ADD', 'the reply is lost', 'COMMAND', 'ZADD', 'TIMES', '1', 'DROP-AFTER']
  assert.deepEqual(LANGUAGES.map(language => lineIn(language, fault)), [
    'DUNLIN FAULT ADD "the reply is lost" COMMAND ZADD TIMES 1 DROP-AFTER',
    'dunlin.fault("the reply is lost", command="ZADD", times=1).drop_after()',
    "await dunlin.fault('the reply is lost', { command: 'ZADD', times: 1 }).dropAfter()",
    'dunlin.fault("the reply is lost").command("ZADD").times(1).dropAfter();',
    'dunlin.Fault("the reply is lost").Command("ZADD").Times(1).DropAfter()',
    'server.fault("the reply is lost").command("ZADD").times(1).drop_after();',
  ])
  assert.deepEqual(LANGUAGES.map(language => lineIn(language, ['DUNLIN', 'STRICT', 'SET', 'lossy-scores', 'error'])), [
    'DUNLIN STRICT SET lossy-scores error', 'dunlin.strict.set("error", "lossy-scores")', "await dunlin.strict.set('lossy-scores', 'error')",
    'dunlin.strict().set("lossy-scores", Level.ERROR);', 'dunlin.Strict("lossy-scores", "error")', 'server.strict().set(Rule::LossyScores, Level::Error);',
  ])
})

test('a line leads to the world and the database of its command', () => {
  const place = { world: 'north', database: 3 }
  assert.equal(lineIn('redis-cli', ['SET', 'k', 'v'], place), 'DUNLIN WORLD north\nSELECT 3\nSET k v')
  assert.equal(lineIn('Rust', ['SET', 'k', 'v'], place), 'server.client()?.call(["SET", "k", "v"])?;  // in world north, database 3')
  assert.equal(lineIn('redis-cli', ['DUNLIN', 'FREEZE'], place), 'DUNLIN WORLD north\nDUNLIN FREEZE')
  assert.equal(lineIn('redis-cli', ['DUNLIN', 'WORLD', 'south'], place), 'DUNLIN WORLD south')
  assert.equal(lineIn('redis-cli', ['SET', 'k', 'v'], { world: 'default', database: 0 }), 'SET k v')
})
