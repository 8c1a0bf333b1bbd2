// What the page does without a browser: quoting, replies as redis-cli shows them, lines of the launchers, decoders.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bitsIn, hexRows, isCounter, json, messagePack, pickle, pieceOf, waysFor } from '../../src/server/page/assets/decode.js'
import { lineIn } from '../../src/server/page/assets/launchers.js'
import { heightOf, HIGHEST, placeAt, scrollFor } from '../../src/server/page/assets/scrolling.js'
import { asCli, beginning, bytesOf, duration, idOf, isCut, line, parts, plain, shown, size, slotOf, split, wordOf, wordOfId } from '../../src/server/page/assets/words.js'

const bytes = (...all) => Uint8Array.from(all)

test('a line that is quoted is split into the words that it was', () => {
  for (const words of [['GET', 'k'], ['SET', 'two words', ''], ['SET', '"\'\\', 'a\nb\tc'], ['SET', wordOf(bytes(255, 0, 92, 34)), 'ü'], ['SET', 'right\u202eto', 'left']]) {
    assert.deepEqual(split(line(words)), words, line(words))
  }
  assert.equal(line(['SET', 'a b', wordOf(bytes(255))]), 'SET "a b" "\\xff"')
})

test('a line is split as redis-cli does', () => {
  assert.deepEqual(split(`  SET 'it\\'s' "a\\x41\\n" b"c d"`), ['SET', "it's", 'aA\n', 'bc d'])
  for (const open of ['GET "k', "GET 'k", 'GET "k"x']) assert.equal(split(open), null, open)
  assert.deepEqual(split('   '), [])
})

test('a word comes back from an address', () => {
  for (const word of ['text', '', 'ü\n', wordOf(bytes(255, 1))]) assert.deepEqual(wordOfId(idOf(word)), word)
  assert.deepEqual([...bytesOf({ base64: '/wE=' })], [255, 1])
})

test('a word is shown in one line, and as text', () => {
  assert.equal(shown('a\nb\u0000c\u202ed'), 'a\\nb\\x00c\\xe2\\x80\\xaed')
  assert.equal(shown('x'.repeat(500), 3), 'xxx…')
  assert.equal(shown({ cut: 'abc', length: 3000 }), 'abc… (2.9 KiB)')
  assert.equal(shown({ cut: 'abc', length: 3000 }, 2), 'ab… (2.9 KiB)')
})

test('a reply is shown as redis-cli does', () => {
  assert.equal(asCli([{ integer: '1' }, [null, 'two'], { map: [['a', true]] }]), '1) (integer) 1\n2) 1) (nil)\n   2) "two"\n3) 1# "a" => (true)')
  assert.equal(asCli({ error: 'ERR no' }), '(error) ERR no')
  assert.equal(asCli({ status: 'OK' }), 'OK')
  assert.equal(asCli([]), '(empty array)')
  assert.deepEqual(plain({ map: [['n', { integer: '9007199254740993' }], ['d', { double: 'inf' }]] }), { n: '9007199254740993', d: 'inf' })
})

test('the beginning of a long reply is shown without a look at the rest', () => {
  const part = (reply, left) => {
    const budget = { left }
    return [beginning(reply, budget), budget.left < 0]
  }
  const many = [Array(1e6).fill('element'), { map: [['name', 'v'.repeat(1e7)]] }, wordOf(new Uint8Array(1e6).fill(255))]
  const [found, isCut] = part(many, 100)
  assert(isCut && asCli(found).length < 1000)
  assert.deepEqual(part(many[2], 3), [{ base64: '////' }, true])
  assert.deepEqual(part({ verbatim: 'txt', text: 'abcdef' }, 3), [{ verbatim: 'txt', text: 'abc' }, true])
  assert.deepEqual(part({ cut: 'abcdef', length: 9 }, 3), [{ cut: 'abc', length: 9 }, true])
  for (const whole of [null, 'abc', { integer: '1' }, ['a', { set: [true, { status: 'OK' }] }, { push: [] }], { base64: '/wE=' }]) assert.deepEqual(part(whole, 100), [whole, false])
  assert.equal(shown(many[2], 8), '\\xff\\xff…')
})

test('a word without its end is told from all others', () => {
  const cut = { cut: 'abc', length: 9 }
  assert(isCut(cut) && !isCut('abc') && !isCut(null) && !isCut({ base64: '/w==' }))
  assert.equal(new Set([cut, { cut: 'abc', length: 8 }, { cut: { base64: 'YWJj' }, length: 9 }, 'abc'].map(idOf)).size, 4)
  assert.equal(asCli(['a', cut]), '1) "a"\n2) "abc"… (9 B)')
})

test('a list is parted by weight', () => {
  const weigh = word => word.length
  assert.deepEqual(parts([], weigh, 4), [])
  assert.deepEqual(parts(['a', 'bb', 'cc', 'dddddd', 'e'], weigh, 4), [['a', 'bb'], ['cc'], ['dddddd'], ['e']])
})

test('a scroll bar reaches every row of a list of any height', () => {
  for (const pixels of [0, 600, HIGHEST, HIGHEST + 1, 6e7, 3e10]) {
    const height = heightOf(pixels)
    assert(height <= HIGHEST && height <= pixels)
    assert.equal(placeAt(0, pixels), 0)
    assert.equal(placeAt(height, pixels), pixels)
    let last = -1
    for (let at = 0; at <= height; at += Math.max(1, height / 997)) {
      const place = placeAt(at, pixels)
      assert(place > last && Math.abs(scrollFor(place, pixels) - at) < 0.01, `${at} of ${pixels}`)
      last = place
    }
    if (pixels <= HIGHEST) continue
    for (const near of [0, 1, 30_000, 900_000]) {
      assert.equal(placeAt(near, pixels), near, 'near the top')
      assert.equal(placeAt(HIGHEST - near, pixels), pixels - near, 'near the end')
    }
  }
})

test('a command is a line of each language', () => {
  const words = ['SET', "it's", 'a "b"']
  assert.equal(lineIn('Python', words), 'dunlin.call("SET", "it\'s", "a \\"b\\"")')
  assert.equal(lineIn('Node.js', words), "await dunlin.call('SET', 'it\\'s', 'a \"b\"')")
  assert.equal(lineIn('Rust', ['SET', 'k', '\u0001']), 'server.client()?.call(["SET", "k", "\\u{0001}"])?;')
  assert.equal(lineIn('Go', ['SET', wordOf(bytes(255)), 'v']), 'dunlin.Call("SET", "\\xff", "v")')
  assert.equal(lineIn('Java', ['SET', wordOf(bytes(255)), 'v']), undefined)
  assert.equal(lineIn('Node.js', ['DUNLIN', 'ROLLBACK', 'fixture']), "await dunlin.rollback('fixture')")
  assert.equal(lineIn('Rust', ['DUNLIN', 'ROLLBACK', 'fixture']), 'server.rollback("fixture")?;')
  assert.equal(lineIn('Rust', ['DUNLIN', 'SPEED', '60']), 'server.set_speed(60.0);')
})

test('bytes are read as what they are', () => {
  assert.deepEqual(waysFor('42', true), ['Counter', 'Text', 'Hex', 'Bits'])
  assert.equal(isCounter('042') || isCounter('4.2'), false)
  assert.equal(json('{"a":1}'), '{\n  "a": 1\n}')
  assert.equal(json('{"id":12345678901234567}'), '{"id":12345678901234567}')
  assert.equal(json('{'), undefined)
  assert.equal(messagePack(bytes(0x82, 0xa1, 97, 0x01, 0xa1, 98, 0x93, 0xc0, 0xc3, 0xff)), '{\n  "a": 1,\n  "b": [\n    null,\n    true,\n    -1\n  ]\n}')
  assert.match(pickle(bytes(0x80, 4, 0x4b, 1, 0x2e)), /protocol 4/)
  assert.equal(hexRows(bytes(65, 0, 255), 16), '00000010  41 00 ff                                         A··')
})

test('bytes that only look like a MessagePack or a pickle are none, however they end', () => {
  for (const all of [[0x81], [0xdf, 255, 255, 255, 255], [0x91, 0xdd, 255, 255, 255, 255], Array(200).fill(0x91), [0x80, 4], [0x81, 0xa1, 97, 1, 9]]) {
    assert.equal(messagePack(bytes(...all)), undefined)
    assert.equal(pickle(bytes(...all)), undefined)
  }
})

test('a piece of a long text is a text without the characters that it ends within', () => {
  const all = bytesOf('aü€😀b')
  const piece = (from, to) => pieceOf(wordOf(all.subarray(from, to)), from === 0, to === all.length)
  assert.equal(piece(0, 2), 'a')
  assert.equal(piece(2, 5), '')
  assert.equal(piece(2, 6), '€')
  assert.equal(piece(4, 9), '')
  assert.equal(piece(4, 10), '😀')
  assert.equal(piece(8, 11), 'b')
  assert.deepEqual(pieceOf(wordOf(bytes(0x80, 97)), true, true), { base64: 'gGE=' })
  assert.deepEqual(pieceOf(wordOf(bytes(97, 0xff, 97)), false, false), { base64: 'Yf9h' })
})

test('sizes and times are read at a glance', () => {
  assert.deepEqual([0, 1023, 1536, 64 << 20].map(size), ['0 B', '1023 B', '1.5 KiB', '64 MiB'])
  assert.deepEqual([5, 1500, 61_000, 3_600_000, 90_000_000].map(duration), ['5 ms', '1.5 s', '1 min 1 s', '1 h 0 min', '1 d 1 h'])
})

test('a key has the slot that a cluster gives it', () => {
  assert.deepEqual(slotOf('123456789'), { slot: 12739, tag: null })
  assert.deepEqual(slotOf('{user:1}:cart'), { slot: slotOf('user:1').slot, tag: 'user:1' })
  assert.equal(slotOf('a{}b').tag, null)
  assert.equal(bitsIn(bytes(255, 1, 0)), 9)
})
