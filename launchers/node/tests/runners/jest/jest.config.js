module.exports = { preset: 'dunlin', testEnvironmentOptions: { dunlin: { strict: { 'endless-waits': 'error' } } } }
