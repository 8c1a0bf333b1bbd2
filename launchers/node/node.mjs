// The same for an import, which waits for the server: that starts while other modules are loaded, and by the first test it
// is there. Why it is not is told by the first world.

import node from './node.js'

await node.ready

export const { world } = node
