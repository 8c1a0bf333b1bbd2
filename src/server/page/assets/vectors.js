/**
 * The view of a vector set: the elements most similar to one of them, on which a click goes on to those similar to the
 * one clicked, and their attributes, which a condition selects.
 */
import { html, useRef, useSignal } from './vendor/preact.js'
import { Editable } from './collections.js'
import { ROW_BYTES } from './link.js'
import { Field, Problem, Send, Table, TooLong, useReplies } from './parts.js'
import { count, errorOf, idOf, isCut, items, number, pairs, shown, textOf } from './words.js'

/** @typedef {import('./words.js').Word} Word */

/** The most elements that are asked for. */
const MOST = '200'

export function VectorSet(/** @type {{value: Word}} */ { value }) {
  const chosen = useSignal(/** @type {Word | null} */ (null))
  const filter = useSignal('')
  const first = useRef(/** @type {any} */ (null))
  const facts = useReplies([['VINFO', value], ['VRANDMEMBER', value]], 0, 0, ROW_BYTES)
  if (facts && !isCut(facts[1])) first.current ??= facts[1]
  const center = chosen.value ?? first.current
  const condition = filter.value ? ['FILTER', filter.value] : []
  const replies = useReplies(center === null ? [] : [['VSIM', value, 'ELE', center, 'WITHSCORES', 'WITHATTRIBS', 'COUNT', MOST, ...condition]], 0, 0, ROW_BYTES)
  const info = facts && !errorOf(facts[0]) ? Object.fromEntries(pairs(facts[0]).map(([name, fact]) => [textOf(name), fact])) : {}
  const found = replies?.[0] && !errorOf(replies[0]) ? pairs(replies[0]) : []
  const row = (/** @type {number} */ at) => {
    const [element, properties] = found[at]
    const [score, attributes] = items(properties)
    const name = shown(element, 60)
    if (isCut(element)) return [html`<span class="text">${shown(element, 300)}</span>`, number(score).toFixed(4), '', '', html`<${TooLong} />`]
    return [html`<button type="button" class="link text" title=${`Similar to ${name}`} onClick=${() => (chosen.value = /** @type {any} */ (element))}>${shown(element, 300)}</button>`,
      number(score).toFixed(4), html`<span class="bar" aria-hidden="true"><span style=${{ width: `${100 * number(score)}%` }}></span></span>`,
      html`<${Editable} word=${attributes ?? ''} name=${`the attributes of ${name}`} words=${(/** @type {string} */ new_) => ['VSETATTR', value, element, new_]} />`,
      html`<${Send} kind="small" words=${['VREM', value, element]} name=${`Remove ${name}`}>Remove<//>`]
  }
  const look = (/** @type {any} */ event) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    if (data.get('element')) chosen.value = String(data.get('element'))
    filter.value = String(data.get('filter'))
  }
  return html`<${Problem} reply=${replies?.[0]} />
    <form class="line" onSubmit=${look} aria-label="Search"><${Field} name="element" label="Similar to" hasLabel=${false} placeholder=${shown(center ?? '', 40)} />
      <${Field} name="filter" label="Condition" hasLabel=${false} placeholder=".year > 2000" width="20" value=${filter.value} /><button>VSIM</button>
      <span class="total"><b>${count(number(info.size))}</b> vectors of ${count(number(info['vector-dim']))} dimensions, ${textOf(info['quant-type'] ?? '')}</span></form>
    <div class="fill"><${Table} name="Similar elements" kind="zset" columns=${['Element', { name: 'Similarity', kind: 'number' }, { name: 'Bar', title: '' }, 'Attributes', { name: 'Actions', title: '' }]}
      count=${found.length} row=${row} problem=${replies?.[0]} keyOf=${(/** @type {number} */ at) => idOf(found[at][0])} empty="No element meets the condition." /></div>`
}
