/**
 * The view of a stream: its entries from the newest on, its groups, and of a group the consumers and what they have
 * been given but have not acknowledged, with how long ago.
 */
import { html, useEffect, useLayoutEffect, useSignal } from './vendor/preact.js'
import { changes, ROW_BYTES, send } from './link.js'
import { Choice, Field, Problem, Send, SendForm, Table, Tabs, useReplies } from './parts.js'
import { count, duration, errorOf, fields, idOf, items, moment, number, pairs, shown, split, textOf } from './words.js'

/** @typedef {import('./words.js').Word} Word */

/** The number of entries that are asked for at a time. */
const PAGE = 200

/** When an entry was added, as its id says. */
const timeOf = (/** @type {string} */ id) => moment(Number(id.split('-')[0]))

function Entries(/** @type {{value: Word}} */ { value }) {
  const isNewFirst = useSignal(true)
  const found = useSignal({ entries: /** @type {any[]} */ ([]), isEnd: false, problem: /** @type {any} */ (null) })
  const look = async (isMore = false) => {
    const before = isMore ? found.peek().entries : []
    const start = before.length ? `(${shown(before[before.length - 1][0])}` : isNewFirst.value ? '+' : '-'
    const wanted = isMore ? PAGE : Math.max(PAGE, Math.min(2000, found.peek().entries.length))
    const words = isNewFirst.value ? ['XREVRANGE', value, start, '-'] : ['XRANGE', value, start, '+']
    const [reply] = await send([[...words, 'COUNT', String(wanted)]], ROW_BYTES)
    const more = items(reply)
    found.value = { entries: [...before, ...more], isEnd: more.length < wanted, problem: errorOf(reply) ? reply : null }
  }
  useLayoutEffect(() => void look(), [changes.value, isNewFirst.value])
  const { entries, isEnd, problem } = found.value
  const row = (/** @type {number} */ at) => {
    const id = shown(entries[at][0])
    return [html`<code>${id}</code>`, html`<time>${timeOf(id)}</time>`,
      html`<span class="pairs">${pairs(entries[at][1]).map(([name, word], place) => html`<span key=${place}><b>${shown(name, 60)}</b> ${shown(word, 160)}</span>`)}</span>`,
      html`<${Send} kind="small" words=${['XDEL', value, id]} name=${`Delete ${id}`}>Delete<//>`]
  }
  const add = (/** @type {FormData} */ data) => {
    const words = split(String(data.get('pairs')))
    return words && words.length > 1 ? ['XADD', value, '*', ...words] : null
  }
  return html`<${Problem} reply=${problem} />
    <div class="line"><button type="button" onClick=${() => (isNewFirst.value = !isNewFirst.value)}>${isNewFirst.value ? 'Oldest first' : 'Newest first'}</button>
      <${SendForm} label="XADD" words=${add}><${Field} name="pairs" label="Fields and values" hasLabel=${false} placeholder="field value …" required width="28" /><//></div>
    <div class="fill"><${Table} name="Entries" kind="stream" columns=${['Id', 'Time', 'Fields', { name: 'Actions', title: '' }]} count=${entries.length} row=${row} problem=${problem}
      onRange=${(/** @type {number} */ _, /** @type {number} */ to) => void (!isEnd && to + 60 > entries.length && entries.length >= PAGE && look(true))} /></div>`
}

const GROUP_COLUMNS = ['Group', { name: 'Consumers', kind: 'number' }, { name: 'Pending', kind: 'number' }, { name: 'Lag', kind: 'number' }, 'Last delivered', { name: 'Actions', title: '' }]

function Groups(/** @type {{value: Word}} */ { value }) {
  const chosen = useSignal('')
  // What is delivered and how long ago changes without a change of the key.
  const reply = useReplies([['XINFO', 'GROUPS', value]], 2000)?.[0] ?? null
  const groups = items(reply).map(fields)
  const group = groups.find(each => idOf(each.name) === chosen.value) ?? groups[0]
  const row = (/** @type {number} */ at) => {
    const group = groups[at]
    return [html`<b>${shown(group.name)}</b>`, count(number(group.consumers)), count(number(group.pending)), group.lag === null ? '?' : count(number(group.lag)), shown(group['last-delivered-id']),
      html`<${Send} kind="small danger" words=${['XGROUP', 'DESTROY', value, group.name]} name=${`Destroy ${shown(group.name)}`}>Destroy<//>`]
  }
  const create = (/** @type {FormData} */ data) => ['XGROUP', 'CREATE', value, String(data.get('group')), String(data.get('from'))]
  return html`<${Problem} reply=${reply} /><div class="line"><${SendForm} label="XGROUP CREATE" words=${create}><${Field} name="group" label="Group" required />
      <${Choice} name="from" label="reads from" options=${[{ value: '$', title: 'now on' }, { value: '0', title: 'the start' }]} /><//></div>
    <${Table} name="Groups" kind="short" columns=${GROUP_COLUMNS} count=${groups.length} row=${row} problem=${reply} empty="No group reads this stream." />
    ${groups.length > 1 && html`<div class="line"><${Choice} name="group" label="Of the group" options=${groups.map(each => ({ value: idOf(each.name), title: shown(each.name) }))} value=${idOf(group.name)} onChange=${(/** @type {string} */ id) => (chosen.value = id)} /></div>`}
    ${group && html`<${Pending} value=${value} group=${group.name} key=${idOf(group.name)} />`}`
}

/** The consumers of a group, and what is pending. */
function Pending(/** @type {{value: Word, group: Word}} */ { value, group }) {
  const replies = useReplies([['XINFO', 'CONSUMERS', value, group], ['XPENDING', value, group, '-', '+', String(PAGE)]], 2000)
  const [consumers, pending, problem] = [items(replies?.[0]).map(fields), items(replies?.[1]), replies?.[1]]
  const consumer = (/** @type {number} */ at) => [html`<b>${shown(consumers[at].name)}</b>`, count(number(consumers[at].pending)), duration(number(consumers[at].idle)),
    number(consumers[at].inactive) < 0 ? 'never' : duration(number(consumers[at].inactive))]
  const entry = (/** @type {number} */ at) => {
    const [id, owner, idle, deliveries] = pending[at]
    return [html`<code>${shown(id)}</code>`, shown(owner), duration(number(idle)), count(number(deliveries)),
      html`<span class="line tight"><${Send} kind="small" words=${['XACK', value, group, id]} name=${`Acknowledge ${textOf(id)}`}>Acknowledge<//>
        <${Send} kind="small" words=${['XCLAIM', value, group, owner, '0', id]} name=${`Give again: ${textOf(id)}`}>Give again<//></span>`]
  }
  return html`<${Problem} reply=${problem} /><h3>Consumers of ${shown(group)}</h3>
    <${Table} name="Consumers" kind="short" columns=${['Consumer', { name: 'Pending', kind: 'number' }, 'Idle', 'Without success']} count=${consumers.length} row=${consumer} problem=${problem} empty="No consumer has read yet." />
    <h3>Given, and not acknowledged</h3>
    <${Table} name="Pending entries" kind="short" columns=${['Id', 'Consumer', 'Idle', { name: 'Deliveries', kind: 'number' }, { name: 'Actions', title: '' }]} count=${pending.length} row=${entry} problem=${problem} empty="All that was given is acknowledged." />`
}

export function Stream(/** @type {{value: Word}} */ { value }) {
  const chosen = useSignal('Entries')
  const length = useSignal(NaN)
  useEffect(() => {
    send([['XLEN', value]]).then(([reply]) => (length.value = number(reply)))
  }, [changes.value])
  return html`<div class="line"><${Tabs} name="Of the stream" all=${['Entries', 'Groups']} chosen=${chosen.value} onChoose=${(/** @type {string} */ each) => (chosen.value = each)} />
      <span class="total"><b>${count(length.value)}</b> entries</span></div>
    ${chosen.value === 'Entries' ? html`<${Entries} value=${value} />` : html`<${Groups} value=${value} />`}`
}
