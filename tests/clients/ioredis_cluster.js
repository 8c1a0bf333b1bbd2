// A Node.js backend on a cluster, with ioredis, while slots move: `node ioredis_cluster.js PORT PROTOCOL`.
const assert = require("assert");
const Redis = require("ioredis");

const [port, protocol] = process.argv.slice(2).map(Number);
const [COUNTERS, ROUNDS] = [20, 40];
const numbers = (count) => Array.from({ length: count }, (_, number) => number);

async function main() {
  const cluster = new Redis.Cluster([{ host: "127.0.0.1", port }], { redisOptions: { protocol } });
  cluster.on("error", (error) => console.error(error));
  for (const _ of numbers(ROUNDS)) {
    await Promise.all(numbers(COUNTERS).map((number) => cluster.incr(`counter:${number}`)));
  }
  const counts = await Promise.all(numbers(COUNTERS).map((number) => cluster.get(`counter:${number}`)));
  assert.deepEqual(counts, numbers(COUNTERS).map(() => String(ROUNDS)));
  // One that was replaced is among them until the next look at the slots.
  assert.ok(cluster.nodes("master").length >= 3);

  // What belongs together has one hash tag: then a pipeline and a transaction work.
  const replies = await cluster.multi().set("{cart:7}:apples", 1).incr("{cart:7}:pears").exec();
  assert.deepEqual(replies, [[null, "OK"], [null, 1]]);
  assert.deepEqual(await cluster.mget("{cart:7}:apples", "{cart:7}:pears"), ["1", "1"]);
  cluster.defineCommand("take", {
    numberOfKeys: 2,
    lua: "return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}",
  });
  assert.deepEqual(await cluster.take("{cart:7}:apples", "{cart:7}:pears"), [0, 2]);
  await assert.rejects(cluster.mset("a", 1, "b", 2), /CROSSSLOT|same slot/);

  // What one node publishes, subscribers of every node receive.
  const listener = new Redis({ port, protocol });
  await listener.subscribe("news");
  const heard = new Promise((resolve) => listener.on("message", (_, message) => resolve(message)));
  await cluster.publish("news", "hello");
  assert.equal(await heard, "hello");
  listener.disconnect();
  cluster.disconnect();
  console.log("ioredis is content");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
