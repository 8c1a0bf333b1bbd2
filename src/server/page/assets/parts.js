/**
 * What several views are made of: buttons that show the command they send, tables of any length, deadlines that run
 * down, notes about what is missing.
 *
 * Everything from the server is put into text nodes. No part sets HTML.
 */
import { html, useEffect, useLayoutEffect, useRef, useSignal, useState } from './vendor/preact.js'
import { act, changes, explain, hasKit, lookSoon, needsConfirmation, now, send, showCommand, world, database } from './link.js'
import { paced } from './pacing.js'
import { heightOf, placeAt, scrollFor } from './scrolling.js'
import { duration, errorOf, idOf, line, moment, shown } from './words.js'

/** @typedef {import('./words.js').Word} Word */
/** @typedef {import('./words.js').Reply} Reply */

/** The command that waits for a second click, and what follows it. */
export const pending = { current: /** @type {import('./vendor/preact.js').Signal<any> | null} */ (null) }

/**
 * Sends a command after the second click that it may need. Returns undefined where that did not come.
 * @param {Word[]} words @returns {Promise<Reply | undefined>}
 */
export async function perform(words) {
  if (!needsConfirmation(words)) return act(words)
  const isWanted = await new Promise(resolve => {
    if (pending.current) pending.current.value = { words, resolve }
  })
  return isWanted ? act(words) : undefined
}

/**
 * A button that sends a command, which the strip shows while the button is pointed at or focused.
 * @param {{words: Word[] | (() => Word[] | null), children?: any, kind?: string, name?: string, isOff?: boolean,
 *   isPressed?: boolean, onReply?: (reply: Reply) => void}} props
 */
export function Send({ words, children, kind = '', name, isOff = false, isPressed, onReply }) {
  const all = () => (typeof words === 'function' ? words() : words)
  const show = () => {
    const sent = all()
    if (sent) showCommand(sent)
  }
  const click = async () => {
    const sent = all()
    const reply = sent && (await perform(sent))
    if (reply !== undefined && reply !== null) onReply?.(reply)
    else if (reply === null) onReply?.(null)
  }
  const title = all()
  return html`<button type="button" class=${`send ${kind}`} aria-label=${name} aria-pressed=${isPressed} disabled=${isOff} onClick=${click}
    onFocus=${show} onMouseEnter=${show} title=${title ? line(title, 60) : undefined}>${children}</button>`
}

/** A form whose button sends what its fields make of a command; what follows is told the reply, and what was sent. */
export function SendForm(/** @type {any} */ { words, label, children, onReply, name }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null))
  const made = () => (form.current ? words(new FormData(form.current)) : null)
  const show = () => {
    const sent = made()
    if (sent) showCommand(sent)
  }
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault()
    const sent = made()
    const reply = sent && (await perform(sent))
    if (reply === undefined) return
    if (!errorOf(reply)) form.current?.reset()
    onReply?.(reply, sent)
  }
  return html`<form class="line" ref=${form} onSubmit=${submit} onInput=${show} onFocusIn=${show} aria-label=${name ?? label}>
    ${children}<button class="send">${label}</button>
  </form>`
}

/**
 * Looks at the server when the view comes, at once when `key` tells that it looks at something else, and paced when data
 * have changed, another count has, or so much time has passed. What is hidden does not look. The look is told how to ask
 * whether its answer still belongs to what is looked at.
 * @param {(isCurrent: () => boolean) => Promise<unknown>} look @param {string} key
 */
export function useLook(look, key, { counted = 0, everyMs = 0 } = {}) {
  const latest = useRef(look)
  latest.current = look
  const seen = useRef(/** @type {string | null} */ (null))
  const pace = useRef(/** @type {ReturnType<typeof paced> | null} */ (null))
  pace.current ??= paced(async () => {
    const mine = seen.current
    if (!document.hidden) await latest.current(() => seen.current === mine)
  })
  useEffect(() => {
    const isOther = seen.current !== key
    seen.current = key
    pace.current?.want(isOther)
  }, [key, changes.value, counted])
  useEffect(() => {
    const timer = everyMs && setInterval(() => pace.current?.want(), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  useEffect(() => () => {
    seen.current = null
    pace.current?.stop()
  }, [])
}

/**
 * Replies to commands that are sent again whenever the data may have changed, or another count has; null until the
 * first ones come.
 */
export function useReplies(/** @type {Word[][]} */ commands, everyMs = 0, counted = 0, cut = /** @type {number | undefined} */ (undefined)) {
  const [replies, setReplies] = useState(/** @type {Reply[] | null} */ (null))
  useLook(async isCurrent => {
    if (!commands.length) return
    const found = await send(commands, cut)
    if (isCurrent()) setReplies(found)
  }, JSON.stringify([commands, world.value, database.value]), { counted, everyMs })
  return replies
}

/** What stands in a row in place of its buttons if its word has not come to its end, so that it cannot be sent. */
export const TooLong = () => html`<span class="quiet">too long for this page</span>`

/** What went wrong, in words; nothing where nothing did. */
export function Problem(/** @type {{reply: Reply}} */ { reply }) {
  const error = errorOf(reply)
  return error ? html`<p class="problem" role="alert"><b aria-hidden="true">! </b>${explain(error)}</p>` : null
}

/** A note instead of a view that needs the test kit. */
export function NoKit() {
  return html`<div class="note">
    <h2>The test kit is off</h2>
    <p>Time, state and rules are moved by the command <code>DUNLIN</code>, which this server does not have. Start it with</p>
    <pre>dunlin --test-kit yes</pre>
    <p>or with the line <code>test-kit yes</code> in its configuration. Servers that a test embeds have it always.</p>
  </div>`
}

/** A view's content, unless the server has no test kit. */
export const WithKit = (/** @type {any} */ { children }) => (hasKit.value === false ? html`<${NoKit} />` : children)

/** Keys that are too long for an address, by their places. */
const longKeys = /** @type {string[]} */ ([])
const LONGEST = 4096

/** Where the view of a key is. @param {Word} key */
export function keyAddress(key) {
  const id = idOf(key)
  if (id.length <= LONGEST) return `#value?${new URLSearchParams({ key: id })}`
  if (!longKeys.includes(id)) longKeys.push(id)
  return `#value?long=${longKeys.indexOf(id)}`
}

/** The key that an address names. @param {URLSearchParams} parameters @returns {string | null} */
export const idIn = parameters => parameters.get('key') ?? longKeys[Number(parameters.get('long') ?? -1)] ?? null

/** A key as a link to its view. */
export function Key(/** @type {{word: any, most?: number}} */ { word, most = 120 }) {
  if (word?.cut !== undefined) return html`<span class="key">${shown(word, Math.min(most, 40))}</span>`
  return html`<a class="key" href=${keyAddress(word)} title=${shown(word)}>${shown(word, most) || '(empty)'}</a>`
}

/** The part of a bar that is filled for what is left: a month is all of it, and each unit of time has a share. */
const share = (/** @type {number} */ ms) => Math.min(1, Math.log1p(ms / 1000) / Math.log1p(30 * 86_400))

/** A deadline: a bar and the time that is left by the server's clock. */
export function Deadline(/** @type {{at: number}} */ { at }) {
  const left = at - now.value
  const wasOver = useRef(left <= 0)
  useEffect(() => {
    if (left <= 0 && !wasOver.current) lookSoon()
    wasOver.current = left <= 0
  }, [left <= 0])
  if (!Number.isFinite(left)) return html`<span class="quiet">–</span>`
  return html`<span class="deadline" title=${moment(at)}>
    <span class="bar" aria-hidden="true"><span style=${{ width: `${100 * share(Math.max(0, left))}%` }}></span></span>
    <span class="left">${left > 0 ? duration(left) : 'due'}</span>
  </span>`
}

/** The height of a row in pixels. */
export const ROW = 30
/** The most rows in the page at a time. */
export const WINDOW = 200
/** The pixels that are scrolled row by row; a longer way is that of the scroll bar. */
const NEAR = 100 * ROW

/**
 * Where a table of so many pixels is scrolled to: the place in all of it that is at the top, and how far its box is
 * scrolled for that, which differs where the table is higher than a box may be.
 * @param {number} pixels @param {{current: HTMLDivElement | null}} box
 */
function useScrolling(pixels, box) {
  const top = useSignal({ place: 0, at: 0 })
  const follow = (/** @type {number} */ at) => {
    const moved = at - top.peek().at
    const wanted = Math.abs(moved) <= NEAR ? top.peek().place + moved : placeAt(at, pixels)
    const place = Math.max(0, Math.min(wanted, pixels))
    top.value = { place, at: scrollFor(place, pixels) }
  }
  useLayoutEffect(() => {
    if (box.current && box.current.scrollTop !== top.peek().at) follow(box.current.scrollTop)
  }, [pixels])
  useLayoutEffect(() => {
    if (box.current && Math.abs(box.current.scrollTop - top.value.at) > 1) box.current.scrollTop = top.value.at
  }, [top.value])
  const onScroll = () => {
    const at = box.current?.scrollTop ?? 0
    if (Math.abs(at - top.peek().at) > ROW * 20 || at === 0) follow(at)
  }
  return { ...top.value, onScroll }
}

/**
 * A table of any length, of which the rows that can be seen are in the page. Rows are of one height, and are their
 * places unless `keyOf` names them. What it says when it is empty is not said beside a problem.
 * @param {{name: string, columns: any[], count: number, row: (at: number) => any[] | null, empty?: string,
 *   onRange?: (from: number, to: number) => void, kind?: string, classOf?: (at: number) => string,
 *   role?: string, rowProps?: (at: number) => Record<string, any>, onKeyDown?: (event: KeyboardEvent) => void,
 *   keyOf?: (at: number) => string, problem?: Reply}} props
 */
export function Table({ name, columns, count, row, empty = 'Nothing yet.', onRange, kind = '', classOf, role, rowProps, onKeyDown, keyOf, problem = null }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null))
  const { place, at: scrolled, onScroll } = useScrolling(count * ROW, box)
  const from = Math.max(0, Math.min(Math.floor(place / ROW) - 60, count - WINDOW))
  const to = Math.min(count, from + WINDOW)
  const above = from * ROW - place + scrolled
  const below = heightOf(count * ROW) - above - (to - from) * ROW
  useEffect(() => onRange?.(from, to), [from, to, count])
  if (!count) return errorOf(problem) ? null : html`<p class="quiet empty">${empty}</p>`
  const rows = []
  for (let at = from; at < to; at += 1) {
    const cells = row(at)
    rows.push(html`<tr key=${keyOf?.(at) ?? at} class=${classOf?.(at)} aria-rowindex=${at + 2} ...${rowProps?.(at)}>
      ${cells ? cells.map((cell, place) => html`<td key=${place} class=${columns[place]?.kind} data-name=${columns[place]?.name ?? columns[place]}>${cell}</td>`) : html`<td class="quiet" colspan=${columns.length}>…</td>`}
    </tr>`)
  }
  return html`<div class=${`table ${kind}`} ref=${box} onScroll=${onScroll} tabindex=${role ? -1 : 0} role="region" aria-label=${name} onKeyDown=${onKeyDown}>
    <table aria-rowcount=${count + 1} role=${role} aria-label=${name}>
      <thead><tr aria-rowindex="1">${columns.map(each => html`<th key=${each.name ?? each} scope="col" class=${each.kind} data-name=${each.name ?? each}>${each.title === '' ? html`<span class="hidden">${each.name}</span>` : each.title ?? each.name ?? each}</th>`)}</tr></thead>
      <tbody>
        ${from > 0 && html`<tr class="gap" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${above}px` }}></td></tr>`}
        ${rows}
        ${to < count && html`<tr class="gap" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${below}px` }}></td></tr>`}
      </tbody>
    </table>
  </div>`
}

/** Tabs, of which one is shown; arrow keys move between them. */
export function Tabs(/** @type {{name: string, all: string[], chosen: string, onChoose: (name: string) => void}} */ { name, all, chosen, onChoose }) {
  const list = useRef(/** @type {HTMLDivElement | null} */ (null))
  const move = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    const next = all[(all.indexOf(chosen) + step + all.length) % all.length]
    onChoose(next)
    const buttons = list.current?.querySelectorAll('button')
    buttons?.[all.indexOf(next)]?.focus()
  }
  return html`<div class="tabs" role="tablist" aria-label=${name} ref=${list} onKeyDown=${move}>
    ${all.map(each => html`<button type="button" role="tab" key=${each} aria-selected=${each === chosen}
      tabindex=${each === chosen ? 0 : -1} onClick=${() => onChoose(each)}>${each}</button>`)}
  </div>`
}

/** Gives the focus to what comes into the page. @param {HTMLElement | null} element */
const focus = element => element?.focus()

/**
 * A field of a form with its name, for so many lines if there are several. The value is the one to begin with: what is
 * typed stays when the view is drawn anew.
 */
export function Field(/** @type {any} */ { name, label, width, value, lines = 0, hasLabel = true, isFirst = false, ...rest }) {
  return html`<label class="field"><span class=${hasLabel ? '' : 'hidden'}>${label ?? name}</span>
    <${lines ? 'textarea' : 'input'} rows=${lines || undefined} cols=${lines ? 40 : undefined} name=${name} defaultValue=${value} ref=${isFirst ? focus : undefined} autocomplete="off" spellcheck=${false} size=${width ?? 12} ...${rest} /></label>`
}

/** A choice in a form. */
export function Choice(/** @type {any} */ { name, label, options, value, onChange, hasLabel = true, ...rest }) {
  return html`<label class="field"><span class=${hasLabel ? '' : 'hidden'}>${label ?? name}</span>
    <select name=${name} value=${onChange ? value : undefined} onChange=${onChange && ((/** @type {any} */ event) => onChange(event.currentTarget.value))} ...${rest}>
      ${options.map((/** @type {any} */ each) => html`<option key=${each.value ?? each} value=${each.value ?? each} selected=${!onChange && value === (each.value ?? each)}>${each.title ?? each}</option>`)}
    </select></label>`
}

/** A part of a view with its heading. */
export const Section = (/** @type {any} */ { title, aside, children, kind = '' }) => html`<section class=${`part ${kind}`}>
  <header><h2>${title}</h2>${aside && html`<div class="aside">${aside}</div>`}</header>${children}</section>`
