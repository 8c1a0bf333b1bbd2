/// <reference lib="esnext.disposable" />

/** Milliseconds, or a sum of units. */
export type Duration =
  | number
  | { days?: number; hours?: number; minutes?: number; seconds?: number; milliseconds?: number }

/** A word of a command. */
export type Word = string | number | bigint | ArrayBufferView

/** A reply of RESP2. */
export type Reply = string | number | null | Reply[]

/** An error that the server replied. */
export class ReplyError extends Error {}

export type Level = 'off' | 'warn' | 'error'

export type Rule =
  | 'undeclared-keys'
  | 'cross-slot'
  | 'keys-command'
  | 'whole-reads'
  | 'large-elements'
  | 'unbounded-collection'
  | 'late-expire'
  | 'lossy-scores'
  | 'endless-waits'
  | 'select'
  | 'whole-server'
  | 'sort-outside'
  | 'moved-unhandled'
  | 'stale-read'

export interface WorldOptions {
  /** Seeds the random generator; by default DUNLIN_SEED, else at random. */
  seed?: number | bigint | string
  /** Whether the journal is kept from the start; it is by default. */
  journal?: boolean
  /** One level for the general rules of strict mode, or a level for each of some; `cluster` are those of a cluster. */
  strict?: Level | Partial<Record<Rule | 'all' | 'cluster', Level>>
  /** The data to start with: a text of commands, or the bytes of an RDB file. */
  load?: string | ArrayBufferView
}

/** Any of args, binary, port and socket starts a server of one's own, also where DUNLIN_URL is set. */
export interface ServerOptions extends WorldOptions {
  /** Further arguments, as of redis-server: `['--requirepass', 'secret']`. */
  args?: readonly (string | number)[]
  /** The path of the program. */
  binary?: string
  /** A port; by default the system picks one. */
  port?: number
  /**
   * The path of a Unix socket to open beside the port; true for one in the folder for temporary files, where there is one
   * by default if the system picks the port and the folder can be written in.
   */
  socket?: string | true
}

export interface Filter {
  command?: string
  key?: string
  client?: string
  errors?: boolean
  /** The reply was MOVED or ASK. */
  redirected?: boolean
}

export type Expectation = Filter &
  ({ none: true } | { exactly: number } | { atMost: number } | { atLeast: number })

export interface JournalEntry {
  number: number
  unixTimeMicroseconds: number
  durationMicroseconds: number
  client: number
  clientName: string
  world: string
  database: number
  source: 'client' | 'script' | 'transaction'
  command: string[]
  /** As redis-cli shows it; null while the command is blocked. */
  reply: string | null
}

export interface Journal {
  /** Starts a new journal of the last `count` commands, 10,000 by default. */
  start(count?: number): Promise<void>
  stop(): Promise<void>
  clear(): Promise<void>
  list(filter?: Filter): Promise<JournalEntry[]>
  count(filter?: Filter): Promise<number>
  /** Rejects with an AssertionError that lists the commands, unless there are as many as expected. */
  expect(expectation: Expectation): Promise<void>
  /** The journal as a transcript. */
  export(): Promise<string>
}

export interface Finding {
  rule: Rule
  level: Level
  text: string
  command: string
  client: number
  clientName: string
  times: number
}

export interface Strict {
  rules(): Promise<{ rule: Rule; level: Level; about: string; limit: number | null; allowed: string[] }[]>
  set(rule: Rule | 'ALL', level: Level, options?: { limit?: number }): Promise<void>
  /** The rule ignores keys that match the glob. */
  allow(rule: Rule | 'ALL', pattern: string): Promise<void>
  findings(): Promise<Finding[]>
  /** Rejects with an AssertionError that lists the findings of rules whose level is error. */
  check(): Promise<void>
  clear(): Promise<void>
}

/** What a rule matches. */
export interface FaultMatch {
  command?: string
  key?: string
  client?: string
  nth?: number
  times?: number
  percent?: number
}

/** How the commands fail that a rule matches; each method adds the rule. */
export interface Fault {
  delay(duration: Duration): Promise<void>
  error(text: string): Promise<void>
  dropBefore(): Promise<void>
  dropAfter(): Promise<void>
  halfReply(): Promise<void>
  splitReply(): Promise<void>
  silence(): Promise<void>
  loading(): Promise<void>
  busy(): Promise<void>
  readonly(): Promise<void>
  oom(): Promise<void>
  masterdown(): Promise<void>
  moved(slot: number, node: string): Promise<void>
  ask(slot: number, node: string): Promise<void>
  clusterdown(): Promise<void>
  tryagain(): Promise<void>
  crossslot(): Promise<void>
}

/** Waits take five seconds of real time at most, or their timeout. */
export interface WaitOptions {
  timeout?: Duration
}

/** A private server behind the port of another. */
export class World {
  readonly name: string
  readonly host: string
  /** What an application connects to: its user name leads into this world. */
  readonly url: string
  readonly journal: Journal
  readonly strict: Strict
  protected constructor()

  /** A host and a port whose clients are in this world without a user name. */
  listen(): Promise<{ host: string; port: number }>
  /** The reply to any command in this world; it rejects after ten seconds without one. */
  call(command: string, ...words: Word[]): Promise<any>
  /** The reply to `DUNLIN ...words`. */
  dunlin(subcommand: string, ...words: Word[]): Promise<any>
  /** A client of the package ioredis, if that is installed; it ends with this world. */
  client(options?: object): any

  advance(duration: Duration): Promise<Date>
  /** The moment to which the clock was moved, or null if nothing is due. */
  advanceToNext(): Promise<Date | null>
  freeze(): Promise<Date>
  resume(): Promise<void>
  setTime(time: Date | number): Promise<Date>
  setSpeed(factor: number): Promise<void>
  now(): Promise<Date>
  seed(seed: number | bigint | string): Promise<void>

  snapshot(name: string): Promise<void>
  rollback(name: string): Promise<void>
  dropSnapshot(name: string): Promise<void>
  snapshots(): Promise<string[]>
  load(text: string | ArrayBufferView): Promise<void>
  dump(): Promise<string>
  /** The lines that differ from a text or from another world; empty if none does. */
  diff(other: string | World): Promise<string>
  /** New worlds of the server start as a copy of this one. */
  makeTemplate(): Promise<void>
  dropTemplate(): Promise<void>

  fault(name: string, match?: FaultMatch): Fault
  faults(): Promise<{ name: string; rule: string; matched: number; fired: number }[]>
  removeFault(name: string): Promise<void>
  clearFaults(): Promise<void>

  waitUntilBlocked(key: string, options?: WaitOptions & { clients?: number }): Promise<void>
  waitForSubscribers(channel: string, count?: number, options?: WaitOptions): Promise<void>
  waitForCommands(count: number, options?: WaitOptions & Filter): Promise<void>
  waitUntilFired(fault: string, count?: number, options?: WaitOptions): Promise<void>
  /** Waits until exactly so many clients are connected besides the connections of this object. */
  waitForClients(count: number, options?: WaitOptions): Promise<void>

  /** The seed, the last 20 commands and the findings, as text. */
  report(): Promise<string>
  /** Ends this world and its connections. */
  drop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** A server; as a world it is that of the clients that name none. */
export class Dunlin extends World {
  protected constructor()
  /** A port whose clients are in this world. */
  readonly port: number
  /** The id of the process that was started, or null. */
  readonly pid: number | null
  readonly socket: string | null
  /** The link to the page, with its token, of a server that was started with `args: ['--page-port', 0]`; otherwise null. */
  readonly pageUrl: string | null

  /** Starts a server. If DUNLIN_URL names one, nothing is started, and the result is a world of its own there. */
  static start(options?: ServerOptions): Promise<Dunlin>
  /** A world of its own on a server that runs with `test-kit yes`. */
  static connect(url: string, options?: WorldOptions): Promise<Dunlin>
  /** A new world on this server. */
  world(options?: WorldOptions): Promise<World>
  /** Ends the server; one that was not started here goes on. */
  stop(): Promise<void>
}
