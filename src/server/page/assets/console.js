/**
 * Console: lines as for redis-cli, with completion and help from COMMAND DOCS. Lines that are sent together are one
 * session, so MULTI and EXEC belong into one go; Shift and Enter begin a new line.
 */
import { html, signal, useEffect, useLayoutEffect, useRef, useSignal } from './vendor/preact.js'
import { ask, changes, explain, needsConfirmation, send, showCommand, world } from './link.js'
import { pending, Tabs } from './parts.js'
import { asCli, beginning, errorOf, fields, line, pairs, plain, shown, split, textOf } from './words.js'

/** @typedef {import('./words.js').Word} Word */
/** @typedef {{name: string, summary: string, syntax: string, since: string, complexity: string}} Help */

const KEPT = 200

/** What was sent and answered outlives the view; the history outlives the page, without what may be a secret. */
const log = signal(/** @type {{number: number, words: Word[], reply: any}[]} */ ([]))
const history = signal(/** @type {string[]} */ (JSON.parse(sessionStorage.getItem('dunlin.history') ?? '[]')))
const helps = signal(/** @type {Help[]} */ ([]))
let numbered = 0

const SECRETS = /^\s*(auth|hello|acl|config\s+set|migrate)\b/i

/** Reads an argument as the line of the syntax that it is. @param {Record<string, any>} argument @returns {string} */
function syntaxOf(argument) {
  const inner = (argument.arguments ?? []).map((/** @type {any} */ each) => fields(each))
  const flags = argument.flags?.set ?? argument.flags ?? []
  const has = (/** @type {string} */ flag) => [...flags].some(each => textOf(each) === flag)
  const type = textOf(argument.type)
  const name = textOf(argument.display_text ?? argument.name)
  let text = type === 'oneof' ? inner.map(syntaxOf).join('|') : type === 'block' ? inner.map(syntaxOf).join(' ') : type === 'pure-token' ? '' : name
  if (argument.token) text = `${textOf(argument.token)} ${text}`.trim()
  if (has('multiple')) text = `${text} [${text} …]`
  if (has('optional')) return `[${text}]`
  return type === 'oneof' && inner.length > 1 ? `<${text}>` : text
}

/** @param {[any, any]} pair @returns {Help[]} */
function helpOf([reply, found]) {
  const docs = fields(found)
  const name = shown(reply).replace('|', ' ').toUpperCase()
  const syntax = (docs.arguments ?? []).map((/** @type {any} */ each) => syntaxOf(fields(each))).join(' ')
  const own = { name, syntax, summary: textOf(docs.summary), since: textOf(docs.since), complexity: textOf(docs.complexity) }
  return [own, ...pairs(docs.subcommands).flatMap(helpOf)]
}

async function loadHelp() {
  if (helps.peek().length) return
  const reply = await ask('COMMAND', 'DOCS')
  if (!errorOf(reply)) helps.value = pairs(reply).flatMap(helpOf).sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The help of the command that a line begins with, the longest name that fits. @param {string} text */
function helpFor(text) {
  const typed = text.trimStart().toUpperCase().replace(/\s+/g, ' ')
  return helps.value.filter(help => typed === help.name || typed.startsWith(`${help.name} `)).sort((one, other) => other.name.length - one.name.length)[0]
}

/** Commands that a line may become. @param {string} text */
function completions(text) {
  const typed = text.trimStart().toUpperCase().replace(/\s+/g, ' ')
  if (!typed) return []
  return helps.value.filter(help => help.name.startsWith(typed) && help.name !== typed).slice(0, 8)
}

/** The most letters of a reply that are shown. */
const MOST = 100_000

/** Runs the lines of a text in one session, after a second click where one needs it. @param {string} text */
async function run(text) {
  const lines = text.split('\n').filter(each => each.trim() && !each.trimStart().startsWith('#'))
  const commands = lines.map(each => split(each))
  const add = (/** @type {Word[]} */ words, /** @type {any} */ reply) => {
    numbered += 1
    log.value = [...log.value, { number: numbered, words, reply }].slice(-KEPT)
  }
  const bad = commands.findIndex(words => !words?.length)
  if (bad >= 0) return add([lines[bad]], { error: 'Invalid argument(s): a quote is not closed' })
  const all = /** @type {Word[][]} */ (commands)
  const dangerous = all.find(needsConfirmation)
  if (dangerous && !(await new Promise(resolve => pending.current && (pending.current.value = { words: dangerous, resolve })))) return
  const replies = await send(all, MOST)
  all.forEach((words, at) => add(words, replies[at]))
  if (all.length) showCommand(all[all.length - 1], replies[all.length - 1])
  changes.value += 1
  if (lines.every(each => !SECRETS.test(each))) {
    history.value = [...history.value.filter(each => each !== text), text].slice(-KEPT)
    sessionStorage.setItem('dunlin.history', JSON.stringify(history.value))
  }
}

/** A reply as it is shown, or the beginning of a long one. @param {any} reply @param {string} form */
function replyShown(reply, form) {
  const error = errorOf(reply)
  if (error && form !== 'JSON') return `(error) ${explain(error)}`
  const budget = { left: MOST }
  const part = beginning(reply, budget)
  // Long texts such as that of INFO keep their lines.
  const text = form === 'JSON' ? JSON.stringify(plain(part), null, 2) : part?.text ?? asCli(part)
  return budget.left < 0 ? `${text}\n… The reply is longer; the rest of it is not shown.` : text
}

function Log(/** @type {{form: string}} */ { form }) {
  const end = useRef(/** @type {HTMLDivElement | null} */ (null))
  useLayoutEffect(() => {
    if (end.current) end.current.scrollTop = end.current.scrollHeight
  }, [log.value])
  return html`<div class="log fill" ref=${end} role="log" tabindex="0" aria-label="Replies">
    ${!log.value.length && html`<p class="quiet empty">Type a command below. Tab completes, ↑ brings back what was sent before. Esc leaves the line, so that shortcuts work; ? lists them.</p>`}
    ${log.value.map(({ number, words, reply }) => html`<article key=${number}><p class="prompt"><code>${world.value}> ${line(words, 500)}</code></p>
      <pre class=${errorOf(reply) ? 'bad' : ''}>${replyShown(reply, form)}</pre></article>`)}
  </div>`
}

function Helps(/** @type {{text: string, found: Help[], chosen: number, onChoose: (help: Help) => void}} */ { text, found, chosen, onChoose }) {
  const help = helpFor(text)
  return html`<div class="helps">${found.length > 0 && html`<ul id="completions" role="listbox" aria-label="Completions">${found.map((each, at) => html`<li key=${each.name} id=${`completion-${at}`} role="option" aria-selected=${at === chosen} onMouseDown=${(/** @type {Event} */ event) => { event.preventDefault(); onChoose(each) }}>
      <b>${each.name}</b> <span class="quiet">${each.summary}</span></li>`)}</ul>`}
    ${help && html`<p><code><b>${help.name}</b> ${help.syntax}</code></p><p class="quiet">${help.summary} ${help.complexity} Since ${help.since}.</p>`}</div>`
}

export default function Console() {
  const text = useSignal('')
  const chosen = useSignal(0)
  const isClosed = useSignal(false)
  const form = useSignal('redis-cli')
  const at = useRef(0)
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null))
  useEffect(() => {
    loadHelp()
    area.current?.focus()
  }, [])
  const found = isClosed.value || text.value.includes('\n') ? [] : completions(text.value)
  const complete = (/** @type {Help | undefined} */ help) => {
    if (help) text.value = `${help.name} `
    chosen.value = 0
  }
  const recall = (/** @type {number} */ step) => {
    at.current = Math.max(0, Math.min(history.value.length, at.current + step))
    text.value = history.value[history.value.length - at.current] ?? ''
    isClosed.value = true
  }
  const submit = () => {
    const typed = text.value
    text.value = ''
    at.current = 0
    if (typed.trim()) run(typed)
  }
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const isSingle = !text.value.includes('\n')
    if (event.key === 'Enter' && !event.shiftKey) submit()
    else if (event.key === 'Tab' && !event.shiftKey && found.length) complete(found[Math.min(chosen.value, found.length - 1)])
    else if (event.key === 'ArrowDown' && found.length && at.current === 0) chosen.value = (chosen.value + 1) % found.length
    else if (event.key === 'ArrowUp' && isSingle) recall(1)
    else if (event.key === 'ArrowDown' && isSingle) recall(-1)
    else if (event.key === 'Escape' && found.length) isClosed.value = true
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const typed = (/** @type {any} */ event) => {
    text.value = event.currentTarget.value
    isClosed.value = false
    at.current = 0
    chosen.value = 0
  }
  return html`<div class="tools"><${Tabs} name="Replies as" all=${['redis-cli', 'JSON']} chosen=${form.value} onChoose=${(/** @type {string} */ each) => (form.value = each)} />
      <button type="button" onClick=${() => (log.value = [])}>Clear</button></div>
    <${Log} form=${form.value} />
    <${Helps} text=${text.value} found=${found} chosen=${chosen.value} onChoose=${(/** @type {Help} */ help) => { complete(help); area.current?.focus() }} />
    <div class="entry"><span class="quiet" aria-hidden="true">${world.value}></span>
      <textarea ref=${area} rows=${Math.min(8, text.value.split('\n').length)} value=${text.value} onInput=${typed} onKeyDown=${pressed} spellcheck=${false} autocapitalize="off" data-search
        aria-label="Command" aria-controls=${found.length ? 'completions' : undefined} aria-autocomplete="list" aria-activedescendant=${found.length ? `completion-${chosen.value}` : undefined} placeholder="GET key"></textarea>
      <button type="button" class="main" onClick=${submit}>Send</button></div>`
}
