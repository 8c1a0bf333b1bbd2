import type { Dunlin } from './index.js'

export interface RedisMemoryServerOptsT {
  instance?: { port?: number; ip?: string; args?: string[] }
  binary?: { systemBinary?: string }
  autoStart?: boolean
}

export interface RedisInstanceDataT {
  port: number
  ip: string
  instance: Dunlin
}

/** A class of the shape of redis-memory-server's. */
export class RedisMemoryServer {
  constructor(opts?: RedisMemoryServerOptsT)
  static create(opts?: RedisMemoryServerOptsT): Promise<RedisMemoryServer>
  start(): Promise<boolean>
  stop(): Promise<boolean>
  getInstanceInfo(): RedisInstanceDataT | false
  ensureInstance(): Promise<RedisInstanceDataT>
  getHost(): Promise<string>
  getIp(): Promise<string>
  getPort(): Promise<number>
}

export default RedisMemoryServer
