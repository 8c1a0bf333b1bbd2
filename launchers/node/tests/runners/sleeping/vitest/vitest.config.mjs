export default { test: { globalSetup: 'dunlin/vitest/global' } }
