'use strict'
// A connection that speaks RESP2: words go out, values come back in order. It does not keep the process alive unless a
// reply is awaited, so that no test runner waits for it.

const net = require('node:net')

// Those that are there now: a test may replace them to move a clock of its own.
const { clearTimeout, setTimeout } = globalThis
/** How long a reply may take, in milliseconds, where nothing else is said. */
const PATIENCE_MS = 10_000
/** What a connection reports that has ended after it was there. */
const LOST = [undefined, 'EPIPE', 'ECONNRESET']

/** An error that the server replied. */
class ReplyError extends Error {
  name = 'ReplyError'
}

/** Such an error among the replies of an exchange, without the stack that an Error takes long to gather. */
class Refusal {
  constructor(text) {
    this.text = text
  }
}

/** A reply, which is thrown if it is an error. */
function checked(reply) {
  if (reply instanceof Refusal) throw new ReplyError(reply.text)
  return reply
}

class Connection {
  #socket
  #waiting = []
  #chunks = []
  #received = 0
  #needed = 1
  #ended

  /** Connects; commands can be sent at once, and fail if nobody answers. */
  constructor({ host, port, socket: file }) {
    this.address = port === undefined ? file : `${host}:${port}`
    const socket = net.connect(file ? { path: file } : { host, port, noDelay: true })
    this.#socket = socket.unref()
    socket.on('data', chunk => {
      try {
        this.#receive(chunk)
      } catch (error) {
        this.#end(error.message)
        socket.destroy()
      }
    })
    socket.on('error', error => this.#end(error.message, error.code))
    socket.on('close', () => this.#end('it was closed'))
  }

  get isOpen() {
    return !this.#ended && this.#socket.writable
  }

  /**
   * Sends commands at once, as one write; the replies are all there or none, and an error is a Refusal among them. If they
   * do not come for so many milliseconds, the connection is closed.
   */
  exchange(commands, patience = PATIENCE_MS) {
    if (this.#ended) return Promise.reject(this.#lost(commands))
    return new Promise((resolve, reject) => {
      const asked = { commands, replies: [], resolve, reject, isUnsent: false }
      const late = () => this.close(`${named(commands[0])} got no reply for ${patience / 1000} s`)
      asked.timer = patience === Infinity ? undefined : setTimeout(late, patience)
      this.#waiting.push(asked)
      this.#socket.ref().write(encode(commands), error => (asked.isUnsent = Boolean(error)))
    })
  }

  /** Sends commands at once, and throws the first error among their replies. */
  async send(commands, patience) {
    const replies = await this.exchange(commands, patience)
    return replies.map(checked)
  }

  async call(words, patience) {
    const [reply] = await this.exchange([words], patience)
    return checked(reply)
  }

  close(reason = 'it was closed') {
    this.#socket.destroy()
    this.#end(reason)
  }

  #receive(chunk) {
    this.#chunks.push(chunk)
    this.#received += chunk.length
    if (this.#received < this.#needed) return
    const reader = new Reader(Buffer.concat(this.#chunks))
    for (let value; (value = reader.next()) !== undefined;) {
      const { commands, replies, resolve, timer } = this.#waiting[0]
      if (replies.push(value) < commands.length) continue
      clearTimeout(timer)
      this.#waiting.shift()
      resolve(replies)
    }
    this.#chunks = [reader.rest()]
    this.#received = this.#chunks[0].length
    this.#needed = reader.needed
    if (this.#waiting.length === 0) this.#socket.unref()
  }

  #end(reason, code) {
    this.#ended ??= reason
    const waiting = this.#waiting.splice(0)
    for (const { commands, replies, reject, isUnsent, timer } of waiting) {
      clearTimeout(timer)
      const isReset = code === 'ECONNRESET' && waiting.length === 1 && replies.length === 0
      reject(this.#lost(commands, isReset || (isUnsent && LOST.includes(code))))
    }
  }

  #lost([words], isUnread = false) {
    const reason = this.#ended
    const text = `no reply to ${named(words)}, as the connection to ${this.address} has ended: ${reason}`
    return isUnread ? unread(text) : new Error(`dunlin: ${text}`)
  }
}

/** An error by which the server has not read a request. */
function unread(text) {
  return Object.defineProperty(new Error(`dunlin: ${text}`), 'isUnread', { value: true })
}

/** A command as an error names it. */
function named(words) {
  return words.slice(0, 3).join(' ')
}

/** Commands as they are sent: a text, or bytes where a word is binary. */
function encode(commands) {
  const parts = []
  let text = ''
  for (const words of commands) {
    text += `*${words.length}\r\n`
    for (const word of words) {
      if (ArrayBuffer.isView(word)) {
        parts.push(Buffer.from(`${text}$${word.byteLength}\r\n`))
        parts.push(Buffer.from(word.buffer, word.byteOffset, word.byteLength))
        text = '\r\n'
      } else {
        const value = String(word)
        text += `$${Buffer.byteLength(value)}\r\n${value}\r\n`
      }
    }
  }
  return parts.length === 0 ? text : Buffer.concat([...parts, Buffer.from(text)])
}

/** Reads values from bytes; a value that is not complete stays in `rest`, and `needed` is how long that must grow. */
class Reader {
  #bytes
  #at = 0
  #whole = 0
  needed = 1

  constructor(bytes) {
    this.#bytes = bytes
  }

  rest() {
    return this.#bytes.subarray(this.#whole)
  }

  /** The next value, or undefined if it is not complete. */
  next() {
    const value = this.#value()
    if (value !== undefined) this.#whole = this.#at
    return value
  }

  #value() {
    const end = this.#bytes.indexOf('\r\n', this.#at)
    if (end < 0) return this.#wait(this.#bytes.length + 1)
    const [type, text] = [String.fromCharCode(this.#bytes[this.#at]), this.#bytes.toString('utf8', this.#at + 1, end)]
    this.#at = end + 2
    switch (type) {
      case '+': return text
      case '-': return new Refusal(text)
      case ':': return Number(text)
      case '$': return this.#bulk(Number(text))
      case '*': return this.#array(Number(text))
      default: throw new Error(`the server sent ${type}${text}, which is no reply in RESP2`)
    }
  }

  #bulk(length) {
    if (length < 0) return null
    const end = this.#at + length
    if (this.#bytes.length < end + 2) return this.#wait(end + 2)
    const text = this.#bytes.toString('utf8', this.#at, end)
    this.#at = end + 2
    return text
  }

  #array(length) {
    if (length < 0) return null
    const values = []
    while (values.length < length) {
      const value = this.#value()
      if (value === undefined) return undefined
      values.push(value)
    }
    return values
  }

  #wait(end) {
    this.needed = end - this.#whole
    return undefined
  }
}

module.exports = { Connection, Refusal, ReplyError, named, unread }
