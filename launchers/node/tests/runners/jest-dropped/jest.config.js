module.exports = { preset: 'dunlin' }
