/**
 * Rules: what strict mode finds and how strict it is, and the faults by which commands fail.
 */
import { html, useSignal } from './vendor/preact.js'
import { goToCommand } from './feed.js'
import { Choice, Field, Problem, Section, Send, SendForm, Table, useReplies, WithKit } from './parts.js'
import { count, errorOf, fields, items, number, shown, split } from './words.js'

/** What each rule advises to do instead, as docs/test-kit/strict.md does. */
const ADVICE = /** @type {Record<string, string>} */ ({
  'undeclared-keys': 'Pass every key in KEYS.',
  'cross-slot': 'Use one hash tag: {user:1}:cart.',
  'keys-command': 'Use SCAN.',
  'whole-reads': 'Read in parts.',
  'large-elements': 'Store an id there, and the rest in a key of its own.',
  'unbounded-collection': 'Trim it, let it expire, or allow it.',
  'late-expire': 'Use one script or MULTI, or SET key value EX seconds.',
  'lossy-scores': 'One number in the score, the rest in the member.',
  'endless-waits': 'Use a timeout of some seconds, and a retry.',
  select: 'Tell keys apart by a prefix.',
  'whole-server': 'Ask each node, or keep the names in a set.',
  'sort-outside': 'Use one hash tag before the *.',
  'moved-unhandled': 'Use a client for clusters.',
  'stale-read': 'Read at the primary, or WAIT after the write.',
})

const LEVELS = ['off', 'warn', 'error']

function StrictRules(/** @type {{rules: Record<string, any>[], problem: any}} */ { rules, problem }) {
  const row = (/** @type {number} */ at) => {
    const { rule, level, about, limit, allowed } = rules[at]
    const name = shown(rule)
    const levels = LEVELS.map(each => html`<${Send} key=${each} kind="small" words=${['DUNLIN', 'STRICT', 'SET', name, each]} name=${`${name}: ${each}`} isPressed=${each === shown(level)}>${each}<//>`)
    return [html`<b>${name}</b>`, html`<span class="levels" role="group" aria-label=${`Level of ${name}`}>${levels}</span>`,
      limit === null ? '' : count(number(limit)), html`<span title=${shown(about)}>${shown(about)}</span>`, items(allowed).map(each => shown(each)).join(' ')]
  }
  return html`<div class="line">${['All', 'Cluster'].flatMap(rules => LEVELS.map(level => html`<${Send} key=${rules + level} words=${['DUNLIN', 'STRICT', 'SET', rules.toUpperCase(), level]}>${rules} ${level}<//>`))}
      <${SendForm} label="Allow" words=${(/** @type {FormData} */ data) => ['DUNLIN', 'STRICT', 'ALLOW', String(data.get('rule')), String(data.get('glob'))]}>
        <${Field} name="glob" label="Keys like" required placeholder="countries:*" /><${Choice} name="rule" label="in" options=${['ALL', 'CLUSTER', ...rules.map(each => shown(each.rule))]} /><//></div>
    <${Table} name="Rules of strict mode" kind="rules" columns=${['Rule', 'Level', { name: 'Limit', kind: 'number' }, 'Finds that', 'Allowed']} count=${rules.length} row=${row} problem=${problem} />`
}

/** The command of a finding, and the way to it in the feed. @param {{client: number, command: any}} props */
function Found({ client, command }) {
  const isGone = useSignal(false)
  return html`<p class="line"><code>${shown(command, 300)}</code>
    <button type="button" class="small" onClick=${() => (isGone.value = !goToCommand(client, command))}>In the feed</button>
    <span class="quiet" role="status">${isGone.value && 'The feed does not have it.'}</span></p>`
}

function Findings(/** @type {{findings: Record<string, any>[], problem: any}} */ { findings, problem }) {
  return html`<div class="line"><${Send} words=${['DUNLIN', 'STRICT', 'CHECK']}>Check<//><${Send} words=${['DUNLIN', 'STRICT', 'CLEAR']}>Clear<//></div>
    ${!findings.length && !errorOf(problem) && html`<p class="quiet empty">Nothing was found. Rules that are off find nothing.</p>`}
    <ul class="findings">${findings.slice(0, 200).map((each, at) => html`<li key=${at}>
      <p><span class=${`level ${shown(each.level)}`}>${shown(each.level)}</span> <b>${shown(each.rule)}</b> <span class="quiet">${count(number(each.times))} ${number(each.times) === 1 ? 'time' : 'times'}, by ${shown(each['client-name'] || `client ${number(each.client)}`)}</span></p>
      <p>${shown(each.text, 600)}</p>${each.command && html`<${Found} client=${number(each.client)} command=${each.command} />`}
      <p class="advice"><b>Instead:</b> ${ADVICE[shown(each.rule)] ?? ''}</p></li>`)}</ul>`
}

const FAILURES = ['DELAY', 'ERROR', 'DROP-BEFORE', 'DROP-AFTER', 'HALF-REPLY', 'SPLIT-REPLY', 'SILENCE', 'LOADING', 'BUSY', 'READONLY', 'OOM', 'MASTERDOWN', 'MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN', 'CROSSSLOT']
/** Failures that lead to another node. */
const REDIRECTS = ['MOVED', 'ASK']
/** What a failure needs besides, and how it reads in the form. */
const MORE = /** @type {Record<string, string>} */ ({ DELAY: 'milliseconds', ERROR: 'ERR the text', MOVED: 'slot host:port', ASK: 'slot host:port' })

/** The command that a form makes. @param {FormData} data */
function faultOf(data) {
  const value = (/** @type {string} */ name) => String(data.get(name) ?? '').trim()
  const matches = ['command', 'key', 'client', 'nth', 'times', 'percent'].flatMap(name => (value(name) ? [name.toUpperCase(), value(name)] : []))
  const failure = value('failure')
  const more = REDIRECTS.includes(failure) ? split(value('more')) ?? [] : MORE[failure] ? [value('more')] : []
  return value('name') ? ['DUNLIN', 'FAULT', 'ADD', value('name'), ...matches, failure, ...more] : null
}

const DISK_CALLS = ['WRITE', 'READ', 'SYNC', 'RENAME', 'ANY']
/** How a call of the disk fails, and what a failure needs besides. */
const DISK_FAILURES = /** @type {Record<string, string>} */ ({ ENOSPC: '', EIO: '', SPACE: 'bytes', DELAY: 'milliseconds' })

/** The command that a form for the disk makes. @param {FormData} data */
function diskFaultOf(data) {
  const value = (/** @type {string} */ name) => String(data.get(name) ?? '').trim()
  const matches = ['file', 'nth', 'times', 'percent'].flatMap(name => (value(name) ? [name.toUpperCase(), value(name)] : []))
  const failure = value('failure')
  return value('name') ? ['DUNLIN', 'FAULT', 'ADD', value('name'), 'DISK', value('calls'), ...matches, failure, ...(DISK_FAILURES[failure] ? [value('more')] : [])] : null
}

function DiskFault() {
  const failure = useSignal('ENOSPC')
  return html`<${SendForm} label="Add" name="New fault of the disk" words=${diskFaultOf}>
    <${Field} name="name" label="Name" required placeholder="the disk is full" width="16" />
    <${Choice} name="calls" label="Calls of the disk" options=${DISK_CALLS} value="WRITE" />
    <${Choice} name="failure" label="fail by" options=${Object.keys(DISK_FAILURES)} value=${failure.value} onChange=${(/** @type {string} */ each) => (failure.value = each)} />
    ${DISK_FAILURES[failure.value] && html`<${Field} name="more" label=${DISK_FAILURES[failure.value]} type="number" min="0" required />`}
    <${Field} name="file" label="File" placeholder="*.rdb" width="9" />
    <${Field} name="nth" label="From the nth" type="number" min="1" width="4" /><${Field} name="times" label="Times" type="number" min="1" width="4" /><${Field} name="percent" label="Percent" type="number" min="0" max="100" step="any" width="4" /><//>`
}

function Faults(/** @type {{faults: Record<string, any>[], problem: any}} */ { faults, problem }) {
  const failure = useSignal('DROP-AFTER')
  const row = (/** @type {number} */ at) => {
    const { name } = faults[at]
    return [html`<b>${shown(name)}</b>`, html`<code>${shown(faults[at].rule, 200)}</code>`, count(number(faults[at].matched)), count(number(faults[at].fired)),
      html`<${Send} kind="small danger" words=${['DUNLIN', 'FAULT', 'REMOVE', name]} name=${`Remove ${shown(name)}`}>Remove<//>`]
  }
  return html`<${Table} name="Faults" kind="short" columns=${['Fault', 'Rule', { name: 'Matched', kind: 'number' }, { name: 'Fired', kind: 'number' }, { name: 'Actions', title: '' }]} count=${faults.length} row=${row} problem=${problem} empty="Every command runs as it should." />
    ${faults.length > 0 && html`<div class="line"><${Send} words=${['DUNLIN', 'FAULT', 'CLEAR']}>Remove all<//></div>`}
    <${SendForm} label="Add" name="New fault" words=${faultOf}>
      <${Field} name="name" label="Name" required placeholder="the reply is lost" width="16" />
      <${Choice} name="failure" label="fails by" options=${FAILURES} value=${failure.value} onChange=${(/** @type {string} */ each) => (failure.value = each)} />
      ${MORE[failure.value] && html`<${Field} name="more" label=${MORE[failure.value]} required />`}
      <${Field} name="command" label="Command" placeholder="ZADD" width="9" /><${Field} name="key" label="Key" placeholder="user:*" width="9" /><${Field} name="client" label="Client" placeholder="name" width="9" />
      <${Field} name="nth" label="From the nth" type="number" min="1" width="4" /><${Field} name="times" label="Times" type="number" min="1" width="4" /><${Field} name="percent" label="Percent" type="number" min="0" max="100" step="any" width="4" /><//>
    <${DiskFault} />`
}

export default function Rules() {
  const replies = useReplies([['DUNLIN', 'STRICT'], ['DUNLIN', 'STRICT', 'FINDINGS'], ['DUNLIN', 'FAULT', 'LIST']], 2000)
  const [rules, findings, faults] = [0, 1, 2].map(at => items(replies?.[at]).map(fields))
  const problem = replies?.find(reply => errorOf(reply))
  return html`<${WithKit}><${Problem} reply=${problem} />
    <${Section} title="Findings"><${Findings} findings=${findings} problem=${replies?.[1]} /><//>
    <${Section} title="Strict mode"><${StrictRules} rules=${rules} problem=${replies?.[0]} /><//>
    <${Section} title="Faults"><${Faults} faults=${faults} problem=${replies?.[2]} /><//><//>`
}
