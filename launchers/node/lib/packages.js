'use strict'
// Where packages are that this one does not need itself.

const path = require('node:path')
const { createRequire } = require('node:module')

/**
 * The file of a package: as the project sees it, else the file that was started, else this package. `through` are packages
 * that may see it where these do not.
 */
function locate(name, through = []) {
  const places = [path.join(process.cwd(), 'package.json'), process.argv[1], __filename]
  for (const place of places) {
    if (!place || !path.isAbsolute(place)) continue
    let from = createRequire(place)
    for (const each of through) {
      try {
        from = createRequire(from.resolve(each))
      } catch {
        // The next one may be visible from here all the same.
      }
    }
    try {
      return from.resolve(name)
    } catch {
      // It may be visible from another place.
    }
  }
  return undefined
}

module.exports = { locate }
