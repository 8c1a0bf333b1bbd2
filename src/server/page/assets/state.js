/**
 * State: snapshots to roll back to, what differs from a snapshot, another world or a server without data, and the worlds
 * of the server.
 */
import { html, useSignal } from './vendor/preact.js'
import { enter, world } from './link.js'
import { Choice, Field, Problem, Section, Send, SendForm, Table, useReplies, WithKit } from './parts.js'
import { count, errorOf, fields, idOf, isBinary, items, number, shown, split, textOf } from './words.js'

/** @typedef {import('./words.js').Word} Word */

/** The most lines of a difference that are shown. */
const MOST_LINES = 2000

/** The lines of a difference, those of one key together. @param {string} text */
function byKey(text) {
  const groups = /** @type {Map<string, {key: Word, lines: string[]}>} */ (new Map())
  for (const line of text.split('\n').filter(Boolean).slice(0, MOST_LINES)) {
    const words = split(line.slice(2))
    const at = words && /^(XGROUP|SELECT|FUNCTION)$/i.test(shown(words[0])) ? 2 : 1
    const key = words?.[at] ?? words?.[1] ?? ''
    const group = groups.get(idOf(key))
    if (group) group.lines.push(line)
    else groups.set(idOf(key), { key, lines: [line] })
  }
  return [...groups.values()]
}

function Difference(/** @type {{text: string}} */ { text }) {
  if (!text) return html`<p class="quiet empty">Nothing differs.</p>`
  const groups = byKey(text)
  const total = text.split('\n').filter(Boolean).length
  return html`<p class="quiet" role="status">${count(groups.length)} keys differ, in ${count(total)} lines${total > MOST_LINES && `, of which ${MOST_LINES} are shown`}.${' '}
      <b>−</b> only before, <b>+</b> only after</p>
    <div class="difference" tabindex="0" role="region" aria-label="Difference">${groups.map(({ key, lines }) => html`<section key=${idOf(key)}><h3>${shown(key, 120)}</h3>${lines.map((line, at) => html`<p key=${at} class=${line[0] === '+' ? 'added' : line[0] === '-' ? 'removed' : ''}><code>${line}</code></p>`)}</section>`)}</div>`
}

/** Chooses what to compare, and shows what differs. */
function Compare(/** @type {{snapshots: Word[], worlds: Word[]}} */ { snapshots, worlds }) {
  const found = useSignal(/** @type {{reply: any} | null} */ (null))
  const from = useSignal('')
  const others = worlds.filter(name => name !== world.value)
  const all = [
    ...snapshots.map(name => ({ title: `snapshot ${shown(name)}`, words: ['SNAPSHOT', name] })),
    ...others.map(name => ({ title: `world ${shown(name)}`, words: ['WORLD', name] })),
    { title: 'nothing: a server without data', words: [''] },
  ].map(each => ({ ...each, value: each.words.map(idOf).join(' ') }))
  const chosen = all.find(each => each.value === from.value) ?? all[0]
  // Only a snapshot is compared with another one.
  const later = chosen.words[0] === 'SNAPSHOT' ? snapshots.filter(name => name !== chosen.words[1]) : []
  const targets = [{ value: '', title: 'the data now' }, ...later.map(name => ({ value: idOf(name), title: `snapshot ${shown(name)}` }))]
  const words = (/** @type {FormData} */ data) => ['DUNLIN', 'DIFF', ...chosen.words, ...later.filter(name => idOf(name) === data.get('to'))]
  return html`<${SendForm} label="Compare" words=${words} onReply=${(/** @type {any} */ reply) => (found.value = { reply })}>
      <${Choice} name="from" label="From" options=${all} value=${chosen.value} onChange=${(/** @type {string} */ value) => (from.value = value)} />
      <${Choice} name="to" label="To" options=${targets} /><//>
    ${found.value && (errorOf(found.value.reply) ? html`<${Problem} reply=${found.value.reply} />` : html`<${Difference} text=${textOf(found.value.reply)} />`)}`
}

function Worlds(/** @type {{list: Record<string, any>[]}} */ { list }) {
  const open = (/** @type {FormData} */ data) => {
    const name = String(data.get('world')).trim()
    return name ? ['DUNLIN', 'WORLD', name] : null
  }
  const opened = (/** @type {any} */ reply, /** @type {Word[]} */ words) => {
    if (!errorOf(reply)) enter(String(words[2]))
  }
  const isTemporary = (/** @type {Record<string, any>} */ each) => number(each.temporary) === 1
  const hasTemporary = list.some(isTemporary)
  const row = (/** @type {number} */ at) => {
    const word = list[at].name
    const name = shown(word)
    const isHere = word === world.value
    return [html`<b>${name}</b>${isHere && html` <span class="quiet">this one</span>`}`, count(number(list[at].clients)), count(number(list[at].keys)), ...(hasTemporary ? [isTemporary(list[at]) ? 'temporary' : ''] : []),
      html`<span class="line tight"><button type="button" class="small" disabled=${isHere || isBinary(word)} aria-label=${`Look at it: ${name}`} onClick=${() => enter(word)}>Look at it</button>
        ${word !== 'default' && html`<${Send} kind="small danger" words=${['DUNLIN', 'DROP-WORLD', word]} name=${`Drop ${name}`} onReply=${() => isHere && enter('default')}>Drop<//>`}</span>`]
  }
  return html`<div class="line"><${SendForm} label="Enter" name="New world" words=${open} onReply=${opened}><${Field} name="world" label="World" required placeholder="name" /><//>
      <${Send} words=${['DUNLIN', 'TEMPLATE']}>Start new worlds as a copy of this one<//><${Send} words=${['DUNLIN', 'DROP-TEMPLATE']}>Start them empty<//></div>
    <${Table} name="Worlds" kind="short worlds" columns=${['World', { name: 'Clients', kind: 'number' }, { name: 'Keys', kind: 'number' }, ...(hasTemporary ? ['Kind'] : []), { name: 'Actions', title: '' }]} count=${list.length} row=${row} empty="" />`
}

export default function State() {
  const replies = useReplies([['DUNLIN', 'SNAPSHOTS'], ['DUNLIN', 'WORLDS']], 2000)
  const snapshots = items(replies?.[0])
  const worlds = items(replies?.[1]).map(fields)
  const hasLater = snapshots.length > 1
  const row = (/** @type {number} */ at) => {
    const word = snapshots[at]
    const name = shown(word)
    const later = snapshots.length - at - 1
    return [html`<b>${name}</b>`, ...(hasLater ? [later ? `${count(later)} later` : ''] : []), html`<span class="line tight"><${Send} kind="small" words=${['DUNLIN', 'ROLLBACK', word]} name=${`Roll back to ${name}`}>Roll back<//>
      <${Send} kind="small danger" words=${['DUNLIN', 'DROP-SNAPSHOT', word]} name=${`Drop ${name}`}>Drop<//></span>`]
  }
  return html`<${WithKit}>
    <${Section} title="Snapshots"><${Problem} reply=${replies?.[0]} />
      <${SendForm} label="Take a snapshot" words=${(/** @type {FormData} */ data) => ['DUNLIN', 'SNAPSHOT', String(data.get('name'))]}><${Field} name="name" label="Name" required placeholder="fixture" data-search /><//>
      <${Table} name="Snapshots" kind="short" columns=${['Snapshot', ...(hasLater ? ['A rollback drops'] : []), { name: 'Actions', title: '' }]} count=${snapshots.length} row=${row} problem=${replies?.[0]} empty="No snapshot yet. One takes microseconds, however much data there is." /><//>
    <${Section} title="What differs"><${Compare} snapshots=${snapshots} worlds=${worlds.map(each => each.name)} /><//>
    <${Section} title="Worlds"><${Problem} reply=${replies?.[1]} /><${Worlds} list=${worlds} /><//>
  <//>`
}
