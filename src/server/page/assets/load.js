/**
 * Load: how much the server does now. Figures are asked for once a second, and kept for a minute in the page; charts
 * over days are what /metrics is for.
 */
import { html, signal, useEffect, useSignal } from './vendor/preact.js'
import { RUNS } from './feed.js'
import { listen, ROW_BYTES, send, world } from './link.js'
import { Choice, Key, Problem, Section, Send, Table, Tabs, useLook, useReplies } from './parts.js'
import { brief, count, errorOf, fields, idOf, isBinary, isCut, items, moment, number, pairs, quoted, shown, size, textOf } from './words.js'

const KEPT = 60

/** @typedef {import('./words.js').Word} Word */
/** @typedef {import('./words.js').Reply} Reply */
/** @typedef {{commands: number, read: number, written: number}} Sample */
const samples = signal(/** @type {Sample[]} */ ([]))
/** The memory of each reply; its first one is no sample, as rates need two. */
const memory = signal(/** @type {number[]} */ ([]))
const rates = signal(/** @type {{name: string, calls: number, rate: number, mean: number, failed: number}[]} */ ([]))
let before = /** @type {Map<string, number>} */ (new Map())
let last = { commands: NaN, at: 0 }

/** The sections of INFO as one object. @param {string} text */
const infoOf = text => Object.fromEntries(text.split('\r\n').filter(line => line.includes(':')).map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))

/** Takes what happened in the last second from INFO. @param {Record<string, string>} info */
function sample(info) {
  const now = { commands: Number(info.total_commands_processed), at: performance.now() }
  const seconds = (now.at - last.at) / 1000
  if (seconds < 0.5) return
  const isFirst = !Number.isFinite(last.commands)
  if (!isFirst) {
    samples.value = [...samples.value, { commands: Math.max(0, Math.round((now.commands - last.commands) / seconds)), read: Number(info.instantaneous_input_kbps), written: Number(info.instantaneous_output_kbps) }].slice(-KEPT)
  }
  last = now
  memory.value = [...memory.value, Number(info.used_memory)].slice(-KEPT)
  const found = Object.entries(info).filter(([name]) => name.startsWith('cmdstat_'))
  const calls = /** @type {Map<string, number>} */ (new Map())
  rates.value = found.map(([name, text]) => {
    const values = Object.fromEntries(text.split(',').map(pair => pair.split('=')))
    const all = Number(values.calls)
    calls.set(name, all)
    return { name: name.slice(8).replace('|', ' '), calls: all, rate: isFirst ? NaN : Math.max(0, Math.round((all - (before.get(name) ?? 0)) / seconds)), mean: Number(values.usec_per_call), failed: Number(values.failed_calls) + Number(values.rejected_calls) }
  }).sort((one, other) => other.calls - one.calls)
  before = calls
}

/** Sixty values as a line. */
function Spark(/** @type {{name: string, values: number[], show: (value: number) => string}} */ { name, values, show }) {
  const most = Math.max(1, ...values)
  const points = values.map((value, at) => `${(at + KEPT - values.length) * (300 / (KEPT - 1))},${58 - (54 * value) / most}`)
  const last = values.length ? show(values[values.length - 1]) : '…'
  return html`<figure class="spark"><figcaption>${name} <b>${last}</b> ${values.length > 0 && html`<span class="quiet">at most ${show(Math.max(...values))}</span>`}</figcaption>
    <svg viewBox="0 0 300 60" preserveAspectRatio="none" role="img" aria-label=${`${name}: ${last} now`}>${points.length > 1 && html`<path class="area" d=${`M${points[0].split(',')[0]},60L${points.join('L')}L300,60Z`} /><polyline points=${points.join(' ')} />`}</svg></figure>`
}

function Now() {
  const list = samples.value
  return html`<div class="sparks"><${Spark} name="Commands a second" values=${list.map(each => each.commands)} show=${count} />
    <${Spark} name="Read" values=${list.map(each => each.read * 1024)} show=${(/** @type {number} */ value) => `${size(value)}/s`} />
    <${Spark} name="Written" values=${list.map(each => each.written * 1024)} show=${(/** @type {number} */ value) => `${size(value)}/s`} />
    <${Spark} name="Memory" values=${memory.value} show=${size} /></div>`
}

/** How long the calls of a command took: how many were below each power of two. */
function Histogram(/** @type {{command: string}} */ { command }) {
  const replies = useReplies([['LATENCY', 'HISTOGRAM', command.replace(' ', '|')]], 2000)
  const [found] = pairs(replies?.[0])
  const steps = found ? pairs(fields(found[1]).histogram_usec).map(([limit, total]) => ({ limit: number(limit), total: number(total) })) : []
  const bars = steps.map((step, at) => ({ limit: step.limit, calls: step.total - (steps[at - 1]?.total ?? 0) }))
  const most = Math.max(1, ...bars.map(bar => bar.calls))
  return html`<${Problem} reply=${replies?.[0]} /><h3>How long ${command} took</h3>
    ${replies && !errorOf(replies[0]) && !bars.length && html`<p class="quiet empty">It was not called yet.</p>`}
    <table class="histogram"><tbody>${bars.map(bar => html`<tr key=${bar.limit}><th scope="row">up to ${brief(bar.limit)}</th><td><span class="bar" aria-hidden="true"><span style=${{ width: `${(100 * bar.calls) / most}%` }}></span></span></td><td class="number">${count(bar.calls)}</td></tr>`)}</tbody></table>`
}

function Commands(/** @type {{problem: any}} */ { problem }) {
  const chosen = useSignal('')
  const list = rates.value
  const row = (/** @type {number} */ at) => {
    const each = list[at]
    return [html`<button type="button" class="link" aria-pressed=${chosen.value === each.name} onClick=${() => (chosen.value = each.name)}>${each.name}</button>`, Number.isNaN(each.rate) ? '…' : count(each.rate), count(each.calls), brief(each.mean), each.failed ? count(each.failed) : '']
  }
  return html`<div class="columns"><${Table} name="Commands" kind="short" columns=${['Command', ...['A second', 'Calls', 'Mean', 'Failed'].map(name => ({ name, kind: 'number' }))]} count=${list.length} row=${row} problem=${problem} />
    <div>${chosen.value ? html`<${Histogram} command=${chosen.value} key=${chosen.value} />` : html`<p class="quiet empty">Choose a command to see how long its calls took.</p>`}</div></div>`
}

function Slow() {
  const replies = useReplies([['SLOWLOG', 'GET', '100'], ['CONFIG', 'GET', 'slowlog-log-slower-than']], 2000)
  const list = items(replies?.[0])
  const limit = Number(pairs(replies?.[1])[0]?.[1])
  const row = (/** @type {number} */ at) => {
    const [, time, took, words, address, name] = list[at]
    return [html`<time>${moment(number(time) * 1000)}</time>`, brief(number(took)), html`<code>${items(words).map(word => quoted(word, 60)).join(' ')}</code>`, shown(name || address)]
  }
  return html`<${Problem} reply=${replies?.[0]} /><div class="line"><span class="quiet">Commands that take ${Number.isFinite(limit) ? brief(limit) : 'long'} or more</span><${Send} words=${['CONFIG', 'SET', 'slowlog-log-slower-than', '0']}>Log all<//>
      <${Send} words=${['SLOWLOG', 'RESET']}>Clear<//></div>
    <${Table} name="Slow log" kind="short" columns=${['Time', { name: 'Took', kind: 'number' }, 'Command', 'Client']} count=${list.length} row=${row} problem=${replies?.[0]} empty="No command was slow." />`
}

/** A client's flags that say what it waits for. @param {Record<string, string>} client */
const waits = client => (client.flags.includes('b') ? `blocked in ${client.cmd}` : client.flags.includes('P') ? 'for messages' : client.flags.includes('x') ? 'in a transaction' : '')

function Clients() {
  const replies = useReplies([['CLIENT', 'LIST']], 2000)
  const list = textOf(replies?.[0]).split('\n').filter(line => line.startsWith('id=')).map(line => Object.fromEntries(line.split(' ').map(pair => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)])))
  const row = (/** @type {number} */ at) => {
    const client = list[at]
    return [client.id, html`<span title=${client.addr}>${client.name || client.addr}</span>`, client['lib-name'] ? `${client['lib-name']} ${client['lib-ver'] ?? ''}` : '', client.user, client.db, client.cmd, waits(client), `${client.idle} s`,
      html`<${Send} kind="small danger" words=${['CLIENT', 'KILL', 'ID', client.id]} name=${`Close client ${client.id}`}>Close<//>`]
  }
  return html`<${Problem} reply=${replies?.[0]} /><${Table} name="Clients" kind="short" columns=${['Id', 'Client', 'Library', 'User', { name: 'Db', kind: 'number' }, 'Last command', 'Waits', 'Idle', { name: 'Actions', title: '' }]} count=${list.length} row=${row} empty="" />`
}

/** Rectangles for weights, each row as square as it can be. @param {{weight: number}[]} list @param {number} width @param {number} height */
export function squares(list, width, height) {
  const total = list.reduce((sum, each) => sum + each.weight, 0)
  const found = /** @type {{x: number, y: number, width: number, height: number}[]} */ ([])
  let [x, y, wide, high] = [0, 0, width, height]
  for (let at = 0; at < list.length; ) {
    const side = Math.min(wide, high)
    const area = (/** @type {number} */ weight) => (weight / total) * width * height
    const worst = (/** @type {number} */ end) => {
      const areas = list.slice(at, end).map(each => area(each.weight))
      const sum = areas.reduce((one, other) => one + other, 0)
      return Math.max(...areas.map(each => Math.max((side * side * each) / (sum * sum), (sum * sum) / (side * side * each))))
    }
    let end = at + 1
    while (end < list.length && worst(end + 1) <= worst(end)) end += 1
    const sum = list.slice(at, end).reduce((part, each) => part + area(each.weight), 0)
    const thick = sum / side
    let along = 0
    for (const each of list.slice(at, end)) {
      const long = area(each.weight) / thick
      found.push(wide >= high ? { x, y: y + along, width: thick, height: long } : { x: x + along, y, width: long, height: thick })
      along += long
    }
    if (wide >= high) [x, wide] = [x + thick, wide - thick]
    else [y, high] = [y + thick, high - thick]
    at = end
  }
  return found
}

/** The most namespaces that are asked for: those with the most keys come. */
const ASKED = 1000
/** The most of them that are drawn: those with the most bytes. */
const DRAWN = 60

/**
 * An area without a word is the rest.
 * @typedef {{word: any, isKey: boolean, weight: number, keys: number}} Area
 */

/** The namespaces with the most bytes, and what is left beside them. @param {any} reply @returns {Area[]} */
export function areasOf(reply) {
  const top = fields(reply)
  const all = items(top.children).map(fields).map(each => ({ word: each.name, isKey: each.kind === 'key', weight: Math.max(1, number(each.bytes)), keys: number(each.keys) }))
    .sort((one, other) => other.weight - one.weight)
  const more = fields(top.more)
  const left = all.splice(DRAWN)
  const rest = left.reduce((sum, each) => ({ weight: sum.weight + each.weight, keys: sum.keys + each.keys }), { weight: number(more.bytes) || 0, keys: number(more.keys) || 0 })
  return rest.keys ? [...all, { word: null, isKey: false, ...rest }].sort((one, other) => other.weight - one.weight) : all
}

/** What an area is, in so many letters. @param {Area} area */
const nameOf = ({ word }, most = 120) => (word === null ? 'the rest' : shown(word, most))

/** A namespace as a link to its keys, where a glob can name it. @param {{area: Area}} props */
function AreaName({ area }) {
  if (area.word === null) return html`<span class="quiet">the rest</span>`
  if (area.isKey) return html`<${Key} word=${area.word} />`
  if (isBinary(area.word) || isCut(area.word)) return html`<span>${nameOf(area)}</span>`
  return html`<a href=${`#keys?${new URLSearchParams({ glob: `${area.word.replace(/[\\*?[\]]/g, '\\$&')}*` })}`}>${nameOf(area)}</a>`
}

/** The memory of the namespaces as areas. */
function Memory() {
  const replies = useReplies([['DUNLIN', 'TREE', '', 'DELIMITER', ':', 'LIMIT', String(ASKED), 'ORDER', 'BYTES']], 5000, 0, ROW_BYTES)
  const list = areasOf(replies?.[0])
  const boxes = squares(list, 1000, 320)
  return html`<${Problem} reply=${replies?.[0]} />${list.length > 0 && html`<svg class="treemap" viewBox="0 0 1000 320" role="img" aria-label="Memory by namespace">
    ${list.map((each, at) => html`<g key=${each.word === null ? '' : idOf(each.word)}><title>${nameOf(each)}: ${size(each.weight)}</title><rect x=${boxes[at].x + 1} y=${boxes[at].y + 1} width=${Math.max(0, boxes[at].width - 2)} height=${Math.max(0, boxes[at].height - 2)} />
      ${boxes[at].width > 70 && boxes[at].height > 34 && html`<text x=${boxes[at].x + 8} y=${boxes[at].y + 19}>${nameOf(each, Math.floor(boxes[at].width / 11))}</text>`}
      ${boxes[at].width > 70 && boxes[at].height > 52 && html`<text class="quiet" x=${boxes[at].x + 8} y=${boxes[at].y + 37}>${size(each.weight)}</text>`}</g>`)}</svg>
    <${Table} name="Memory by namespace" kind="short" columns=${['Namespace', { name: 'Bytes', kind: 'number' }, { name: 'Keys', kind: 'number' }]} count=${list.length}
      row=${(/** @type {number} */ at) => [html`<${AreaName} area=${list[at]} />`, size(list[at].weight), count(list[at].keys)]} />`}`
}

/** Channels with their subscribers, asked for again and again: usual and sharded ones, and how many patterns there are. */
function useChannels() {
  const found = useSignal({ list: /** @type {{name: Word, kind: string, clients: Reply}[]} */ ([]), patterns: NaN, problem: /** @type {Reply} */ (null) })
  useLook(async () => {
    const [channels, shards, patterns] = await send([['PUBSUB', 'CHANNELS'], ['PUBSUB', 'SHARDCHANNELS'], ['PUBSUB', 'NUMPAT']], ROW_BYTES)
    const names = [channels, shards].map(reply => items(reply).filter(name => !isCut(name)))
    const numbers = await send([['PUBSUB', 'NUMSUB', ...names[0]], ['PUBSUB', 'SHARDNUMSUB', ...names[1]]])
    const list = ['channel', 'sharded'].flatMap((kind, at) => pairs(numbers[at]).map(([name, clients]) => ({ name, kind, clients })))
    found.value = { list, patterns: number(patterns), problem: [channels, ...numbers].find(errorOf) }
  }, '', { everyMs: 2000 })
  return found.value
}

/** What is published, the newest first, as the feed tells it. */
function useMessages() {
  const heard = useSignal(/** @type {{time: number, channel: any, message: any}[]} */ ([]))
  useEffect(() => listen((name, event) => {
    if (name !== 'command' || !/^s?publish$/i.test(shown(event.command[0]))) return
    heard.value = [{ time: event.time, channel: event.command[1], message: event.command[2] }, ...heard.value].slice(0, 500)
  }), [])
  return heard.value
}

function Channels() {
  const { list, patterns, problem } = useChannels()
  const heard = useMessages()
  const channel = (/** @type {number} */ at) => [shown(list[at].name, 120), list[at].kind, count(number(list[at].clients))]
  const message = (/** @type {number} */ at) => [html`<time>${moment(heard[at].time, true)}</time>`, shown(heard[at].channel, 60), shown(heard[at].message, 200)]
  return html`<${Problem} reply=${problem} />
    ${patterns > 0 && html`<p class="quiet">Patterns with subscribers: ${count(patterns)}. A server does not tell their names.</p>`}
    <div class="columns"><${Table} name="Channels" kind="short" columns=${['Channel', 'Kind', { name: 'Subscribers', kind: 'number' }]} count=${list.length} row=${channel} problem=${problem} empty="Nobody has subscribed to a channel." />
    <${Table} name="Messages" kind="short" columns=${['Time', 'Channel', 'Message']} count=${heard.length} row=${message} empty="Listening. What is published now is shown here." /></div>`
}

/** The most keys whose commands are counted: beyond them, those with the fewest commands are forgotten. */
const COUNTED = 10_000
/** The most keys that are shown. */
const HOTTEST = 20

/** @typedef {{word: any, database: number, commands: number}} Counted */

/** What is counted: each key, or all of a pattern. */
const KINDS = [{ value: 'keys', title: 'key' }, { value: 'patterns', title: 'pattern of keys' }]

/** Those of the most commands, by what identifies them. @param {Map<string, Counted>} keys @param {number} most */
const hottestOf = (keys, most) => [...keys].sort((one, other) => other[1].commands - one[1].commands).slice(0, most)

/** The keys that commands name most often, as the feed tells it; for a script, those of the commands that it runs. */
function HotKeys() {
  const kind = useSignal('keys')
  const hottest = useSignal(/** @type {Counted[]} */ ([]))
  const seen = useSignal({ commands: 0, missed: 0 })
  useEffect(() => {
    let keys = /** @type {Map<string, Counted>} */ (new Map())
    let [commands, missed] = [0, 0]
    const stop = listen((name, event) => {
      if (name === 'lag') missed += event.dropped
      if (name !== 'command' || RUNS.test(shown(event.command[0]))) return
      commands += 1
      // However often a command names it.
      const words = new Map((event[kind.value] ?? []).map((/** @type {any} */ word) => [idOf(word), word]))
      for (const word of words.values()) {
        const id = `${event.database} ${idOf(word)}`
        const counted = keys.get(id)
        if (counted) counted.commands += 1
        else keys.set(id, { word, database: event.database, commands: 1 })
      }
      if (keys.size > 2 * COUNTED) keys = new Map(hottestOf(keys, COUNTED))
    })
    const timer = setInterval(() => {
      hottest.value = hottestOf(keys, HOTTEST).map(([, each]) => ({ ...each }))
      seen.value = { commands, missed }
    }, 1000)
    return () => {
      clearInterval(timer)
      stop()
    }
  }, [world.value, kind.value])
  const { commands, missed } = seen.value
  const row = (/** @type {number} */ at) => {
    const each = hottest.value[at]
    return [kind.value === 'keys' ? html`<${Key} word=${each.word} />` : html`<code>${shown(each.word, 120)}</code>`, each.database, count(each.commands), `${((100 * each.commands) / commands).toFixed(1)} %`]
  }
  const choose = (/** @type {string} */ value) => {
    hottest.value = []
    seen.value = { commands: 0, missed: 0 }
    kind.value = value
  }
  return html`<div class="line"><${Choice} name="kind" label="By" options=${KINDS} value=${kind.value} onChange=${choose} /></div>
    <p class="quiet">${count(commands)} commands since this was opened${missed > 0 && `, and ${count(missed)} that were too fast to be counted`}</p>
    <${Table} name="Hot keys" kind="short" columns=${[kind.value === 'keys' ? 'Key' : 'Pattern', { name: 'Db', kind: 'number' }, { name: 'Commands', kind: 'number' }, { name: 'Of all', kind: 'number' }]} count=${hottest.value.length} row=${row} empty="Counting. The keys of commands that run now are shown here." />`
}

const PARTS = /** @type {Record<string, any>} */ ({ Commands, 'Hot keys': HotKeys, 'Slow log': Slow, Clients, Memory, Channels })
const chosen = signal('Commands')

export default function Load() {
  const replies = useReplies([['INFO', 'stats', 'memory', 'commandstats', 'clients']], 1000)
  useEffect(() => {
    if (replies && !errorOf(replies[0])) sample(infoOf(textOf(replies[0])))
  }, [replies])
  return html`<${Problem} reply=${replies?.[0]} /><${Section} title="Now"><${Now} /><//>
    <div class="line"><${Tabs} name="Load of" all=${Object.keys(PARTS)} chosen=${chosen.value} onChoose=${(/** @type {string} */ each) => (chosen.value = each)} /></div>
    <${Section} title=${chosen.value}><${PARTS[chosen.value]} problem=${replies?.[0]} /><//>`
}
