/**
 * Feed: the commands as they run, with their replies, newest first. Filters run in the server, so what is left out
 * costs nothing here. The last 5,000 rows stay; while the feed is paused or scrolled, new ones wait outside of it.
 *
 * Commands of a script or a transaction are folded below the command that ran them, and findings of strict mode are
 * above the command that they are about.
 */
import { html, signal, useEffect, useRef, useSignal } from './vendor/preact.js'
import { filterStream, listen, refusal, stream, world } from './link.js'
import { Field, Key, ROW, Table } from './parts.js'
import { asCli, brief, errorOf, idOf, line, moment, quoted, shown } from './words.js'

/** @typedef {{kind: string, number: number, world: string, event: any, inner: any[], isOld?: boolean}} Row */

const KEPT = 5000

/** Rows outlive the view, so that they are there when it is looked at again. */
const rows = signal(/** @type {Row[]} */ ([]))
const isPaused = signal(false)
const waiting = signal(0)
const filters = signal(/** @type {Record<string, string>} */ ({}))

let arrived = /** @type {Row[]} */ ([])
let isScrolled = false
let numbered = 0
let timer = 0

/** What scripts and transactions have run, by client, until the command that ran it comes: that ends after them. */
const loose = /** @type {Map<string, {events: any[], isOld: boolean}>} */ (new Map())
/** Commands that run others. */
export const RUNS = /^(exec|eval|evalsha|eval_ro|evalsha_ro|fcall|fcall_ro)$/i

/** The client of an event: two worlds may number theirs alike. @param {any} event */
const of = event => `${world.peek()} ${event.client}`

const SHOWN = ['command', 'finding', 'lag', 'away']

listen((name, event) => {
  if (!SHOWN.includes(name)) return
  if (!timer) timer = window.setTimeout(flush, 100)
  if (name === 'command' && event.source !== 'client') {
    const found = loose.get(of(event))
    if (found) found.events.push(event)
    else loose.set(of(event), { events: [event], isOld: false })
    return
  }
  const runs = name === 'command' && RUNS.test(shown(event.command[0]))
  add(name, event, runs ? loose.get(of(event))?.events : undefined)
  if (runs) loose.delete(of(event))
})

/** @param {string} kind @param {any} event @param {any[]} inner */
function add(kind, event, inner = []) {
  numbered += 1
  arrived.push({ kind, number: numbered, world: world.value, event, inner })
  if (arrived.length > KEPT) arrived = arrived.slice(-KEPT)
}

/** What a filter has left without the command that ran it stands for itself. */
function addOld() {
  for (const [client, found] of loose) {
    if (found.isOld) found.events.forEach(event => add('command', event))
    if (found.isOld) loose.delete(client)
    found.isOld = true
  }
  if (loose.size) timer = window.setTimeout(flush, 100)
}

/**
 * Whether a row has a command of a client, as a finding shows it: shortened. For one that a script has run that is the
 * row of the script.
 * @param {Row} row @param {string} client @param {string} command @param {number} [time] the time of the command, if it is known
 */
function isRowOf(row, client, command, time) {
  const beginning = command.replace(/\.\.\.$/, '')
  const fits = (/** @type {any} */ event) => event.client === client && (time === undefined || event.time === time)
    && line(event.command.filter((/** @type {any} */ word) => !word.more)).startsWith(beginning)
  return row.kind === 'command' && (fits(row.event) || row.inner.some(fits))
}

/** The number of the newest row with a command of a client, as a finding shows it. @param {string} client @param {string} command */
export const rowFor = (client, command) => rows.peek().find(row => row.world === world.peek() && isRowOf(row, client, command))?.number

/**
 * Inserts findings directly above the rows of their commands. One without such a row waits once, as it may come before
 * its command, and then is at the top. Returns those that wait.
 * @param {Row[]} list the newest first @param {Row[]} findings
 */
function insert(list, findings) {
  return findings.filter(finding => {
    const { client, command, time } = finding.event
    const at = list.findIndex(row => row.world === finding.world && isRowOf(row, client, shown(command), time))
    if (at < 0 && !finding.isOld) return (finding.isOld = true)
    const { address, user, database } = list[at]?.event ?? {}
    list.splice(Math.max(0, at), 0, { ...finding, event: { address, user, database, ...finding.event } })
    return false
  })
}

/** Goes to the command of a finding in the feed, and returns whether it is there. @param {any} client @param {any} command */
export function goToCommand(client, command) {
  const number = rowFor(String(client), shown(command))
  if (number !== undefined) location.hash = `feed?row=${number}`
  return number !== undefined
}

/** Shows what has arrived, unless the feed stands still. */
function flush() {
  timer = 0
  addOld()
  if (isPaused.value || isScrolled) {
    waiting.value = arrived.length
    return
  }
  waiting.value = 0
  const findings = arrived.filter(row => row.kind === 'finding')
  const list = [...arrived.filter(row => row.kind !== 'finding').reverse(), ...rows.value]
  arrived = findings.length ? insert(list, findings) : []
  if (arrived.length) timer = window.setTimeout(flush, 100)
  rows.value = list.slice(0, KEPT)
}

function setPaused(/** @type {boolean} */ paused) {
  isPaused.value = paused
  if (!paused) flush()
}

/** Asks the server for what the filters let through. */
function applyFilters() {
  const wanted = Object.entries(filters.value).filter(([, value]) => value)
  filterStream(new URLSearchParams(wanted))
}

function Filters() {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null))
  const change = () => {
    if (!form.current) return
    const data = new FormData(form.current)
    filters.value = Object.fromEntries([...data].map(([name, value]) => [name, String(value).trim()]))
    applyFilters()
  }
  const { command = '', key = '', client = '', errors, page } = filters.value
  return html`<form class="line filters" ref=${form} onChange=${change} onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); change() }} aria-label="Filter">
    <${Field} name="command" label="Command" value=${command} placeholder="GET" width="10" data-search />
    <${Field} name="key" label="Key" value=${key} placeholder="user:*" width="14" />
    <${Field} name="client" label="Client" value=${client} placeholder="name" width="10" />
    <label class="check"><input type="checkbox" name="errors" value="1" checked=${!!errors} />Errors only</label>
    <label class="check"><input type="checkbox" name="page" value="1" checked=${!!page} />This page's own</label>
    <button class="hidden" tabindex="-1">Filter</button>
  </form>`
}

/** A command with its keys as links. */
function Words(/** @type {{event: any}} */ { event }) {
  const keys = new Set((event.keys ?? []).map(idOf))
  return html`<code class="words">${event.command.map((/** @type {any} */ word, /** @type {number} */ at) => html`${at > 0 && ' '}${
    word.more ? html`<span class="quiet">… ${word.more} more</span>` : at === 0 ? html`<b>${shown(word)}</b>` : keys.has(idOf(word)) ? html`<${Key} word=${word} most=${60} />` : html`<span>${quoted(word, 60)}</span>`}`)}</code>`
}

/** A reply in one line. @param {any} reply */
function inLine(reply) {
  if (reply === undefined) return ''
  const lines = asCli(reply).split('\n')
  return lines.length > 1 ? `${lines[0].slice(0, 80)} … ${lines.length} lines` : lines[0].slice(0, 160)
}

/** The cells of when and where a command ran. @param {any} event @param {any[]} place */
function placeCells(event, place) {
  const { client, address, user } = event
  const about = `client ${shown(client)}${address === undefined ? '' : ` at ${shown(address)}, user ${shown(user)}`}`
  return [
    html`<time>${moment(event.time, true).slice(0, isNarrow.value ? 8 : undefined)}</time>`,
    html`<span title=${about}>${shown(event.name || address || client, 24)}</span>`,
    event.database ?? '',
    ...place,
  ]
}

/** The cells of a command, with those of its place. @param {any} event @param {any[]} place */
function cells(event, place, /** @type {any} */ toggle = null) {
  const error = errorOf(event.reply)
  return [
    ...placeCells(event, place),
    html`${toggle}<${Words} event=${event} />`,
    html`<span class=${error ? 'reply bad' : 'reply'} title=${inLine(event.reply)}>${inLine(event.reply)}</span>`,
    event.duration === undefined || event.duration === null ? '' : brief(event.duration),
  ]
}

const FIRST = ['Time', 'Client', { name: 'Db', kind: 'number' }]
const WORLD = { name: 'World', kind: 'world' }
const LAST = ['Command', 'Reply', { name: 'Took', kind: 'number' }]

/** On a narrow page the client is behind the reply, so that what was asked and answered is seen first. */
const NARROW = matchMedia('(max-width: 760px)')
const isNarrow = signal(NARROW.matches)
NARROW.addEventListener('change', () => (isNarrow.value = NARROW.matches))

/** The columns, or the cells of a row, in the order in which they are shown. @param {any[]} all */
const inOrder = all => (isNarrow.value ? [all[0], ...all.slice(-LAST.length), ...all.slice(1, -LAST.length)] : all)

/** What is no command, in a row of its own. @param {Row} row */
function Note({ kind, event }) {
  if (kind === 'lag') return html`<span class="quiet">${event.dropped} commands were too fast for this page, and are not shown</span>`
  if (kind === 'away') return html`<span class="quiet">The stream was away: what ran meanwhile is not shown</span>`
  const go = (/** @type {Event} */ click) => {
    if (goToCommand(event.client, event.command)) click.preventDefault()
  }
  return html`<a href="#rules" class="finding" onClick=${go} title="Its command"><b>${event.rule}</b> ${shown(event.text, 200)}</a>`
}

/** The address for which the feed has stopped: it does so once, and not again in another world. */
let stoppedFor = /** @type {URLSearchParams | null} */ (null)

/** Stops at the row that the address names, so that it stays where it is. */
function useMarked(/** @type {URLSearchParams} */ parameters, /** @type {Row[]} */ all, /** @type {{current: HTMLDivElement | null}} */ box) {
  const wanted = Number(parameters.get('row') ?? NaN)
  useEffect(() => {
    const at = all.findIndex(row => row.number === wanted)
    if (at < 0 || stoppedFor === parameters) return
    stoppedFor = parameters
    setPaused(true)
    box.current?.querySelector('.table')?.scrollTo({ top: Math.max(0, at - 4) * ROW })
  }, [parameters])
  return wanted
}

export default function Feed(/** @type {{parameters: URLSearchParams}} */ { parameters }) {
  const open = useSignal(new Set(/** @type {number[]} */ ([])))
  const box = useRef(/** @type {HTMLDivElement | null} */ (null))
  const said = useSignal('')
  useEffect(() => {
    applyFilters()
    return () => {
      isScrolled = false
      filterStream(new URLSearchParams())
    }
  }, [])
  useEffect(() => {
    const timer = setInterval(() => (said.value = isPaused.value ? 'Paused' : `${rows.value.length} commands shown`), 5000)
    return () => clearInterval(timer)
  }, [])
  const all = rows.value.flatMap(row => [{ row, event: row.event, isInner: false }, ...(open.value.has(row.number) ? row.inner.map(event => ({ row, event, isInner: true })) : [])])
  const toggle = (/** @type {Row} */ row) => {
    const chosen = new Set(open.value)
    if (!chosen.delete(row.number)) chosen.add(row.number)
    open.value = chosen
  }
  const marked = useMarked(parameters, all.map(each => each.row), box)
  const hasWorlds = rows.value.some(row => row.world !== world.value)
  const row = (/** @type {number} */ at) => {
    const { row, event, isInner } = all[at]
    const place = hasWorlds ? [shown(row.world, 24)] : []
    if (row.kind === 'finding') return [...placeCells(event, place), html`<${Note} ...${row} />`, event.level, '']
    if (row.kind !== 'command') return ['', '', '', ...place, html`<${Note} ...${row} />`, '', '']
    const unfold = row.inner.length > 0 && !isInner && html`<button type="button" class="fold" aria-expanded=${open.value.has(row.number)}
      aria-label=${`${row.inner.length} commands inside`} onClick=${() => toggle(row)}>${open.value.has(row.number) ? '▾' : '▸'} ${row.inner.length}</button>`
    return cells(event, place, unfold)
  }
  const classOf = (/** @type {number} */ at) => `${all[at].isInner ? 'inner' : ''} ${all[at].row.kind} ${errorOf(all[at].event.reply) ? 'failed' : ''} ${all[at].row.number === marked ? 'marked' : ''}`
  const scroll = (/** @type {any} */ event) => {
    isScrolled = event.target.scrollTop > 40
    if (!isScrolled && arrived.length && !timer) flush()
  }
  return html`<div class="tools"><${Filters} />
      <div class="line"><button type="button" data-pause aria-keyshortcuts="." aria-pressed=${isPaused.value} onClick=${() => setPaused(!isPaused.value)}>${isPaused.value ? 'Go on' : 'Pause'}</button>
      <button type="button" onClick=${() => { rows.value = []; arrived = []; waiting.value = 0 }}>Clear</button></div></div>
    <p class="quiet state" role="status"><span class=${`dot ${stream.value}`} aria-hidden="true"></span>${
      isPaused.value ? `Paused; ${waiting.value} are waiting` : waiting.value ? `${waiting.value} newer above` : stream.value === 'open' ? `Live from the world ${world.value}, all databases` : refusal.value ? `No stream: ${refusal.value}` : stream.value === 'lost' ? 'The stream is lost; opening it again' : 'Opening the stream'}</p>
    <div class="fill" ref=${box} onScrollCapture=${scroll}>
      <${Table} name="Commands" kind="feed" columns=${inOrder([...FIRST, ...(hasWorlds ? [WORLD] : []), ...LAST])} count=${all.length} row=${(/** @type {number} */ at) => inOrder(row(at))} classOf=${classOf}
        rowProps=${(/** @type {number} */ at) => ({ 'aria-current': all[at].row.number === marked ? 'true' : undefined })}
        empty=${refusal.value ? '' : 'No command yet. Whatever a client sends now is shown here.'} /></div>
    <p class="hidden" role="status">${said.value}</p>`
}
