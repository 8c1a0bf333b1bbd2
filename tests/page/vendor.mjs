// Makes src/server/page/assets/vendor/preact.js, one module of Preact with its hooks, signals and htm, so that the page
// needs neither an import map nor a build. `node vendor.mjs` writes it; its test makes it again and compares the bytes.

import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

// By `require`, which finds packages in the folder that NODE_PATH names.
const require = createRequire(import.meta.url)

const CONTENTS = `
  import { h, render } from 'preact'
  import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
  import { batch, computed, signal, useSignal } from '@preact/signals'
  import htm from 'htm'
  const html = htm.bind(h)
  export { batch, computed, html, render, signal, useEffect, useLayoutEffect, useRef, useSignal, useState }
`
const BANNER = '/* preact 11.2.0 (MIT), @preact/signals 2.11.4 (MIT), htm 3.1.1 (Apache-2.0); see README.md */'

export const path = fileURLToPath(new URL('../../src/server/page/assets/vendor/preact.js', import.meta.url))

/** The bundle. */
export async function bundle() {
  const { build } = require('esbuild')
  const { outputFiles } = await build({
    stdin: { contents: CONTENTS, resolveDir: dirname(require.resolve('preact/package.json')) },
    bundle: true, minify: true, write: false, format: 'esm', target: 'es2022', legalComments: 'none', banner: { js: BANNER },
  })
  return outputFiles[0].contents
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(path, await bundle())
