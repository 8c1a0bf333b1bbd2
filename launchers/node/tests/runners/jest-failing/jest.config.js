module.exports = { preset: 'dunlin', testEnvironmentOptions: { dunlin: { strict: 'error', seed: 5 } } }
