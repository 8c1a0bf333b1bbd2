/**
 * Places in a list that is higher than a browser lets anything be. Near both ends a pixel that is scrolled is a pixel of
 * the list; between them it is as many as the rest of the list needs. So the scroll bar reaches every row, and rows next
 * to an end come one after the other.
 */

/** The most pixels that are scrolled: browsers draw nothing beyond 17 to 33 million. */
export const HIGHEST = 8_000_000
/** The pixels from each end that are those of the list. */
const EXACT = 1_000_000

/** How high a list of so many pixels is drawn. @param {number} pixels */
export const heightOf = pixels => Math.min(pixels, HIGHEST)

/** The pixels of the list for each that is scrolled between the ends. @param {number} pixels */
const scale = pixels => (pixels - 2 * EXACT) / (HIGHEST - 2 * EXACT)

/** The place in a list of so many pixels that scrolling to `at` shows. @param {number} at @param {number} pixels */
export function placeAt(at, pixels) {
  if (pixels <= HIGHEST || at <= EXACT) return at
  if (at >= HIGHEST - EXACT) return pixels - (HIGHEST - at)
  return EXACT + (at - EXACT) * scale(pixels)
}

/** Where to scroll for a place in the list. @param {number} place @param {number} pixels */
export function scrollFor(place, pixels) {
  if (pixels <= HIGHEST || place <= EXACT) return place
  if (place >= pixels - EXACT) return HIGHEST - (pixels - place)
  return EXACT + (place - EXACT) / scale(pixels)
}
