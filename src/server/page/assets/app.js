/**
 * The frame of the page: the views, the world and the database that they look at, the keyboard shortcuts, the strip
 * that shows what a button sends, and the two dialogs. Views are loaded when they are first looked at.
 */
import { html, render, signal, useEffect, useRef, useSignal, useState } from './vendor/preact.js'
import {
  ask, changes, clock, command, database, enter, explain, hasKit, listen, logIn, lookSoon, mustLogIn, now, openStream,
  otherChanges, readClock, refusal, stream, trouble, world,
} from './link.js'
import { LANGUAGES, lineIn } from './launchers.js'
import { Choice, Field, idIn, pending, useReplies } from './parts.js'
import {
  asCli, beginning, bytesOf, errorOf, fields, idOf, isBinary, items, line, moment, number, pairs, shown, wordOf, wordOfId,
} from './words.js'

/** Each view: its name in the address, the key after `g`, the lines of its icon, and its module. */
const VIEWS = [
  { name: 'feed', title: 'Feed', key: 'f', icon: 'M2 4h12M2 8h8M2 12h10', load: () => import('./feed.js') },
  { name: 'keys', title: 'Keys', key: 'k', icon: 'M3 2v10h4M3 6h4M10 6h3M10 12h3', load: () => import('./keys.js') },
  { name: 'value', title: 'Value', key: 'v', icon: 'M8 2l6 3v6l-6 3-6-3V5zM2 5l6 3 6-3M8 8v6', load: () => import('./value.js') },
  { name: 'time', title: 'Time', key: 't', icon: 'M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM8 4.5V8l2.5 1.5', load: () => import('./time.js') },
  { name: 'state', title: 'State', key: 's', icon: 'M2 5l6-3 6 3-6 3zM2 8l6 3 6-3M2 11l6 3 6-3', load: () => import('./state.js') },
  { name: 'rules', title: 'Rules', key: 'r', icon: 'M8 2l6 11H2zM8 6v3M8 11v.2', load: () => import('./rules.js') },
  { name: 'load', title: 'Load', key: 'l', icon: 'M2 10h3l2-6 3 9 2-5h2', load: () => import('./load.js') },
  { name: 'console', title: 'Console', key: 'c', icon: 'M3 4l4 4-4 4M8 12h5', load: () => import('./console.js') },
]

/** A picture of lines, within the page: each one that a style names is a document of its own, which takes long. */
const Icon = (/** @type {{lines: string}} */ { lines }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${lines} /></svg>`

/** What the address names: a view, and what it looks at. */
const place = signal(read())
function read() {
  const [name, rest = ''] = location.hash.slice(1).split('?')
  return { view: VIEWS.find(view => view.name === name) ?? VIEWS[0], parameters: new URLSearchParams(rest) }
}
addEventListener('hashchange', () => (place.value = read()))

const isHelpShown = signal(false)
pending.current = signal(null)

/** The icons of light, dark, and what the system says. */
const THEMES = /** @type {Record<string, string>} */ ({
  light: 'M11 8A3 3 0 1 1 5 8a3 3 0 0 1 6 0zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  dark: 'M13 9.5A5.5 5.5 0 1 1 6.5 3a4.5 4.5 0 0 0 6.5 6.5z',
  system: 'M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM8 2v12M6.3 3v10M4.6 4v8M3.2 6v4',
})

/** Light, dark, or what the system says. */
const theme = signal(localStorage.getItem('dunlin.theme') ?? 'system')
function turnTheme() {
  theme.value = { system: 'light', light: 'dark', dark: 'system' }[theme.value] ?? 'system'
  localStorage.setItem('dunlin.theme', theme.value)
  document.documentElement.dataset.theme = theme.value
}
document.documentElement.dataset.theme = theme.value

/** Keys that work outside of fields. */
let isAfterG = false
function pressed(/** @type {KeyboardEvent} */ event) {
  const element = /** @type {HTMLElement} */ (event.target)
  if (event.ctrlKey || event.metaKey || event.altKey || element.closest('dialog')) return
  if (element.matches('input, textarea, select')) {
    if (event.key === 'Escape') element.blur()
    return
  }
  const view = isAfterG && VIEWS.find(each => each.key === event.key)
  isAfterG = !isAfterG && event.key === 'g'
  if (view) location.hash = view.name
  else if (event.key === '?') isHelpShown.value = true
  else if (event.key === 'd') turnTheme()
  else if (event.key === 'y') copyShown()
  else if (event.key === '/') document.querySelector('main')?.querySelector(/** @type {'input'} */ ('[data-search]'))?.focus()
  else if (event.key === '.') document.querySelector('main')?.querySelector(/** @type {'button'} */ ('[data-pause]'))?.click()
  else return
  event.preventDefault()
}
addEventListener('keydown', pressed)

function Navigation() {
  useEffect(() => void document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [place.value.view])
  return html`<nav aria-label="Views"><ul>
    ${VIEWS.map(view => html`<li key=${view.name}><a href=${`#${view.name}`} aria-current=${view === place.value.view ? 'page' : undefined}
      aria-keyshortcuts=${`g ${view.key}`} title=${`g ${view.key}`}><${Icon} lines=${view.icon} />${view.title}</a></li>`)}
  </ul></nav>`
}

/** The worlds and the databases with their keys, as choices. */
function Places() {
  const replies = useReplies([['DUNLIN', 'WORLDS'], ['INFO', 'keyspace'], ['CONFIG', 'GET', 'databases']], 5000, otherChanges.value)
  const worlds = items(replies?.[0]).map(each => fields(each).name).filter(name => !isBinary(name))
  if (!worlds.includes(world.value)) worlds.unshift(world.value)
  const text = replies?.[1]?.text ?? (typeof replies?.[1] === 'string' ? replies[1] : '')
  const sizes = new Map([...text.matchAll(/^db(\d+):keys=(\d+)/gm)].map(found => [Number(found[1]), found[2]]))
  const most = Number(pairs(replies?.[2])[0]?.[1] ?? 16) || 16
  const databases = Array.from({ length: Math.min(most, 1000) }, (_, at) => ({ value: String(at), title: sizes.has(at) ? `${at} · ${sizes.get(at)} keys` : String(at) }))
  return html`
    ${hasKit.value && html`<${Choice} name="world" label="World" options=${worlds.map(name => ({ value: name, title: shown(name) }))} value=${world.value} onChange=${(/** @type {string} */ name) => enter(name)} />`}
    <${Choice} name="database" label="Database" options=${databases} value=${String(database.value)} onChange=${(/** @type {string} */ index) => enter(world.value, Number(index))} />`
}

/** The server's time, and whether it passes. */
function Clock() {
  const { isFrozen, speed } = clock.value
  if (!Number.isFinite(now.value)) return null
  const state = isFrozen ? 'frozen' : speed === 1 ? '' : `× ${speed}`
  return html`<a class=${`clock ${isFrozen ? 'frozen' : ''}`} href="#time" title="The server's time, in UTC">
    <time>${moment(now.value)}</time>${state && html` <b>${state}</b>`}</a>`
}

function Head() {
  return html`<header class="top">
    <a class="name" href="#feed"><span class="bird" aria-hidden="true"></span>dunlin</a>
    <${Places} /><span class="space"></span><${Clock} />
    <button type="button" class="plain" onClick=${turnTheme} aria-keyshortcuts="d" aria-label=${`Colours: ${theme.value}`} title=${`Colours: ${theme.value} (d)`}>
      <${Icon} lines=${THEMES[theme.value] ?? ''} /></button>
    <button type="button" class="plain" onClick=${() => (isHelpShown.value = true)} aria-keyshortcuts="?" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)">?</button>
  </header>`
}

/** A view with its module. @param {typeof VIEWS[0]} view */
const loadedView = async view => ({ view, Component: /** @type {any} */ ((await view.load()).default) })

/** What the address names at first is there before anything is shown. */
const first = await loadedView(place.value.view)

/** The view that the address names, once its module has come. */
function View() {
  const { view, parameters } = place.value
  const [loaded, setLoaded] = useState(first)
  const main = useRef(/** @type {HTMLElement | null} */ (null))
  useEffect(() => {
    let isCurrent = true
    document.title = `${view.title} – dunlin`
    if (loaded.view !== view) loadedView(view).then(found => isCurrent && setLoaded(found))
    return () => void (isCurrent = false)
  }, [view])
  useEffect(() => {
    if (document.activeElement === document.body) main.current?.focus()
  }, [loaded])
  return html`<main ref=${main} tabindex="-1" id="view" class=${`view-${view.name}`}>
    <h1 class="hidden">${view.title}</h1>
    ${trouble.value && html`<p class="problem" role="alert"><b aria-hidden="true">! </b>${trouble.value}</p>`}
    ${loaded.view === view && html`<${loaded.Component} parameters=${parameters} key=${`${world.value} ${database.value}`} />`}
  </main>`
}

const language = signal(localStorage.getItem('dunlin.language') ?? LANGUAGES[0])
const copied = signal(false)

/** Copies the line that the strip shows. */
async function copyShown() {
  const text = command.value && lineIn(language.value, command.value.words, command.value.place)
  if (!text) return
  await navigator.clipboard.writeText(text)
  copied.value = true
  setTimeout(() => (copied.value = false), 1500)
}

/** What the last button sends or has sent, as a line to copy. */
function Strip() {
  const shownCommand = command.value
  const choose = (/** @type {string} */ name) => {
    language.value = name
    localStorage.setItem('dunlin.language', name)
  }
  const text = shownCommand && lineIn(language.value, shownCommand.words, shownCommand.place)
  const reply = shownCommand?.isSent ? shownCommand.reply : undefined
  const error = errorOf(reply)
  const told = reply === undefined ? '' : error ? explain(error) : asCli(beginning(reply, { left: 400 })).split('\n')[0].slice(0, 120)
  return html`<footer class="strip" aria-label="The command">
    <span class="quiet verb">${!shownCommand ? 'Point at a button to see what it sends.' : shownCommand.isSent ? 'Sent' : 'Sends'}</span>
    <code class="sent">${shownCommand ? cut(text?.replaceAll('\n', ' ⏎ ') ?? 'No short line in this language.') : ''}</code>
    <span class=${error ? 'told bad' : 'told'} role="status">${error && html`<b aria-hidden="true">! </b>`}${told}</span>
    <${Choice} name="language" label="Language" hasLabel=${false} options=${LANGUAGES} value=${language.value} onChange=${choose} />
    <button type="button" onClick=${copyShown} disabled=${!text} aria-keyshortcuts="y" title="Copy (y)">${copied.value ? 'Copied' : 'Copy'}</button>
  </footer>`
}
const cut = (/** @type {string} */ text) => (text.length > 400 ? `${text.slice(0, 400)}…` : text)

/** A dialog that is open as long as it is in the page. */
function Dialog(/** @type {any} */ { title, onClose, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null))
  useEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement)
    element.current?.showModal()
    return () => before?.focus?.()
  }, [])
  return html`<dialog ref=${element} onClose=${onClose} aria-label=${title}><h2>${title}</h2>${children}</dialog>`
}

/** Asks once more before a command that ends or exposes something. */
function Confirmation() {
  const wanted = pending.current?.value
  if (!wanted) return null
  const close = (/** @type {boolean} */ isWanted) => {
    wanted.resolve(isWanted)
    if (pending.current) pending.current.value = null
  }
  return html`<${Dialog} title="Send this command?" onClose=${() => close(false)}>
    <pre>${line(wanted.words, 500)}</pre>
    <p>It ends, exposes or deletes something that cannot be brought back.</p>
    <div class="line end"><button type="button" autofocus onClick=${() => close(false)}>Cancel</button>
      <button type="button" class="danger" onClick=${() => close(true)}>Send ${shown(wanted.words[0])}</button></div>
  <//>`
}

function LogIn() {
  if (!mustLogIn.value) return null
  const submit = (/** @type {any} */ event) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    logIn(String(form.get('user')), String(form.get('password')))
  }
  return html`<${Dialog} title="Log in" onClose=${() => (mustLogIn.value = false)}>
    <p>This server wants one of its users.</p>
    <form onSubmit=${submit} class="stack">
      <${Field} name="user" label="User" value="default" autocomplete="username" />
      <${Field} name="password" label="Password" type="password" autocomplete="current-password" isFirst />
      <div class="line end"><button class="send">Log in</button></div>
    </form>
  <//>`
}

function Help() {
  if (!isHelpShown.value) return null
  const rows = [
    ...VIEWS.map(view => [`g ${view.key}`, view.title]),
    ['/', 'Search, or the filter'], ['.', 'Pause, and go on'], ['y', 'Copy the command that the strip shows'], ['d', 'Light, dark, or as the system'],
    ['← → ↑ ↓', 'Move in a tree, or between tabs'], ['Esc', 'Leave a field, or close a dialog'], ['?', 'This list'],
  ]
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${() => (isHelpShown.value = false)}>
    <table class="shortcuts"><tbody>${rows.map(([key, text]) => html`<tr key=${key}><th scope="row"><kbd>${key}</kbd></th><td>${text}</td></tr>`)}</tbody></table>
    <form method="dialog" class="line end"><button autofocus>Close</button></form>
  <//>`
}

/** Says politely, and not more than once a second, whether the stream is lost. */
function Stream() {
  const told = useSignal('')
  useEffect(() => {
    const timer = setTimeout(() => (told.value = stream.value === 'lost' && !refusal.value ? 'The stream broke off; opening it again.' : ''), 1000)
    return () => clearTimeout(timer)
  }, [stream.value])
  return html`<p class=${told.value ? 'lost' : 'hidden'} role="status">${told.value}</p>`
}

function Page() {
  return html`<a class="skip" href="#view" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); document.getElementById('view')?.focus() }}>To the view</a>
    <${Head} /><${Navigation} /><${View} /><${Strip} /><${Stream} /><${Confirmation} /><${LogIn} /><${Help} />`
}

/** The bytes that the stream tells of a key, at most. */
const TOLD = 256

/** Whether one of the keys that have changed may be what the view shows. @param {any[]} keys */
function areShown(keys) {
  const id = place.value.view.name === 'value' ? idIn(place.value.parameters) : null
  if (id === null) return true
  const told = idOf(wordOf(bytesOf(wordOfId(id)).subarray(0, TOLD)))
  return keys.some(key => key.more !== undefined || idOf(key) === told)
}

/** Commands that change keys without a name. */
const WHOLE = /^(flushall|flushdb|swapdb)$/i

listen((name, event) => {
  if (name === 'clock' || (name === 'command' && WHOLE.test(shown(event.command[0])))) lookSoon()
  else if (name === 'keys') lookSoon(areShown(event) ? changes : otherChanges)
})

// Where there is no stream, as for a user who may not have one, views look again by themselves.
setInterval(() => {
  if (stream.value === 'open' || document.hidden) return
  changes.value += 1
  readClock()
}, 2000)

// What was missed while the page was hidden.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) changes.value += 1
})

render(html`<${Page} />`, document.body)
// The server is asked once the page was painted.
requestAnimationFrame(() => setTimeout(() => {
  openStream()
  readClock()
  ask('DUNLIN', 'WORLD')
}))
