/**
 * Looks at the server that do not pile up, however often data change: one is never under way twice, and after it the
 * server has a rest that is longer than the look was.
 */

/** How many times as long as a look took the server is left alone after it. */
const RESTS = 2

/**
 * A look that is wanted again and again. What is wanted while one is under way comes after it, as one; what a person
 * waits for comes without the rest.
 * @param {() => Promise<unknown>} look @param {() => number} now the time in milliseconds
 */
export function paced(look, now = () => performance.now()) {
  let isBusy = false
  let wanted = /** @type {'' | 'after a rest' | 'at once'} */ ('')
  let restsUntil = 0
  let timer = /** @type {any} */ (0)
  const begin = async () => {
    wanted = ''
    isBusy = true
    const start = now()
    try {
      await look()
    } finally {
      isBusy = false
      restsUntil = now() + RESTS * (now() - start)
      if (wanted) plan()
    }
  }
  const plan = () => {
    if (isBusy) return
    clearTimeout(timer)
    const rest = restsUntil - now()
    if (wanted === 'at once' || rest <= 0) begin()
    else timer = setTimeout(begin, rest)
  }
  return {
    /** Looks, at once if a person waits for it. */
    want(isAtOnce = false) {
      wanted = isAtOnce || wanted === 'at once' ? 'at once' : 'after a rest'
      plan()
    },
    /** Begins no other look. */
    stop() {
      clearTimeout(timer)
      wanted = ''
    },
  }
}
