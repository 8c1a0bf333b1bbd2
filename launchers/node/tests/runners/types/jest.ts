import 'dunlin/jest'

export const url: string = dunlin.url
