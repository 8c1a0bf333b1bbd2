/**
 * Time: the server's clock, and the buttons that stop and move it. Below: what falls due next, and what the last step
 * has brought to its end.
 */
import { html, useSignal } from './vendor/preact.js'
import { clock, now, ROW_BYTES } from './link.js'
import { Choice, Deadline, Field, Key, Problem, Section, Send, SendForm, Table, useReplies, WithKit } from './parts.js'
import { count, duration, errorOf, fields, items, moment, number, shown } from './words.js'

/** How far the clock is moved by a button. */
const STEPS = [['+1 s', 1000], ['+1 min', 60_000], ['+1 h', 3_600_000], ['+1 day', 86_400_000]]
/** The most deadlines that are asked for, so that it is known what a step ends, and the most of each that are listed. */
const ASKED = 1000
const LISTED = 20
const SPEEDS = ['0.1', '0.5', '1', '2', '10', '60', '3600']

/** @typedef {{at: number, kind: string, word: any, field: any}} Due */

/** Reads the reply of DUNLIN DUE. @param {any} reply @returns {Due[]} */
function readDue(reply) {
  return items(reply).map(each => {
    const due = fields(each)
    return { at: number(due.deadline), kind: due.field === undefined ? 'key' : 'field', word: due.key, field: due.field }
  })
}

/** What is due, in words. @param {{due: Due}} props */
const Name = ({ due }) => html`<${Key} word=${due.word} />${due.field !== undefined && html` <span class="quiet">field</span> <b>${shown(due.field, 60)}</b>`}`

function Face() {
  const { isFrozen, speed } = clock.value
  return html`<div class="face"><p class="figure"><time>${moment(now.value)}</time> <span class="unit">UTC</span></p>
    <p class=${isFrozen ? 'state frozen' : 'state'} role="status">${isFrozen ? 'Frozen: time passes only when it is moved' : speed === 1 ? 'Runs as fast as real time' : `Runs ${speed} times as fast as real time`}</p></div>`
}

/** How many have ended, in words: of those that were asked for there may be more. @param {number} ended */
function endedShown(ended) {
  if (!ended) return 'nothing has ended.'
  return `${ended >= ASKED ? 'at least ' : ''}${count(ended)} ${ended === 1 ? 'deadline has' : 'deadlines have'} passed${ended > LISTED ? `; the first ${LISTED} are` : ''}:`
}

/** What a step of the clock has brought to its end; the step has no time if nothing was due. @param {{time: number | null, ended: Due[]}} props */
function LastStep({ time, ended }) {
  return html`<${Section} title="The last step"><p role="status">${time === null ? 'Nothing is due any more.' : `At ${moment(time)}, ${endedShown(ended.length)}`}</p>
    <ul class="ended">${ended.slice(0, LISTED).map((each, at) => html`<li key=${at}><${Name} due=${each} /> <span class="quiet">${duration(Math.max(0, now.peek() - each.at))} before now</span></li>`)}</ul><//>`
}

export default function Time() {
  const last = useSignal(/** @type {{time: number | null, ended: Due[]} | null} */ (null))
  const replies = useReplies([['DUNLIN', 'DUE', 'COUNT', String(ASKED)], ['DUNLIN', 'WORLD']], 2000, 0, ROW_BYTES)
  const due = readDue(replies?.[0])
  const stepped = (/** @type {any} */ reply) => {
    if (errorOf(reply)) return
    const time = number(reply)
    const before = now.peek()
    last.value = reply === null ? { time: null, ended: [] } : { time, ended: due.filter(each => each.at <= Math.max(time, before)) }
  }
  const move = (/** @type {FormData} */ data) => ['DUNLIN', 'ADVANCE', String(Math.round(Number(data.get('ms'))))]
  const set = (/** @type {FormData} */ data) => {
    const time = Date.parse(`${data.get('time')}Z`)
    return Number.isFinite(time) ? ['DUNLIN', 'SET-TIME', String(time)] : null
  }
  const row = (/** @type {number} */ at) => [html`<${Name} due=${due[at]} />`, due[at].kind, html`<time>${moment(due[at].at)}</time>`, html`<${Deadline} at=${due[at].at} />`]
  return html`<${WithKit}>
    <${Section} title="Clock"><${Face} />
      <div class="line">${clock.value.isFrozen ? html`<${Send} kind="main" words=${['DUNLIN', 'RESUME']}>Resume<//>` : html`<${Send} kind="main" words=${['DUNLIN', 'FREEZE']}>Freeze<//>`}
        ${STEPS.map(([name, ms]) => html`<${Send} key=${name} words=${['DUNLIN', 'ADVANCE', String(ms)]} onReply=${stepped}>${name}<//>`)}
        <${Send} words=${['DUNLIN', 'ADVANCE-TO-NEXT']} onReply=${stepped}>Next deadline<//></div>
      <div class="line forms"><${SendForm} label="Advance" words=${move} onReply=${stepped}><${Field} name="ms" label="By milliseconds" type="number" min="0" required width="9" /><//>
        <${SendForm} label="Set" words=${set} onReply=${stepped}><${Field} name="time" label="To (UTC)" type="datetime-local" step="1" required /><//>
        <${SendForm} label="Run" name="Speed" words=${(/** @type {FormData} */ data) => ['DUNLIN', 'SPEED', String(data.get('speed'))]}><${Choice} name="speed" label="Times as fast as real time" options=${SPEEDS} value=${SPEEDS.includes(String(clock.value.speed)) ? String(clock.value.speed) : '1'} /><//></div><//>
    ${last.value && html`<${LastStep} ...${last.value} />`}
    <${Section} title="Due next"><${Problem} reply=${replies?.[0]} />
      ${replies && !errorOf(replies[0]) && html`<${Table} name="Due next" kind="due" columns=${['What', 'Kind', 'When', 'Left']} count=${Math.min(due.length, LISTED)} row=${row} empty="Nothing has a deadline." />`}<//>
  <//>`
}
