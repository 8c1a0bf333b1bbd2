// A Node.js backend on a cluster, with node-redis, while slots move: `node node_redis_cluster.js PORT PROTOCOL`.
const assert = require("assert");
const { createClient, createCluster } = require("redis");

const [port, protocol] = process.argv.slice(2).map(Number);
const [COUNTERS, ROUNDS] = [20, 40];
const numbers = (count) => Array.from({ length: count }, (_, number) => number);

/** Does `work` again while a slot is on its way: node-redis leaves that to its callers. */
async function patiently(work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!/TRYAGAIN/.test(error.message)) throw error;
    }
  }
}

async function main() {
  const cluster = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }], defaults: { RESP: protocol } });
  cluster.on("error", (error) => console.error(error));
  await cluster.connect();
  assert.equal(cluster.masters.length, 3);
  for (const _ of numbers(ROUNDS)) {
    await Promise.all(numbers(COUNTERS).map((number) => cluster.incr(`counter:${number}`)));
  }
  const counts = await Promise.all(numbers(COUNTERS).map((number) => cluster.get(`counter:${number}`)));
  assert.deepEqual(counts, numbers(COUNTERS).map(() => String(ROUNDS)));

  const replies = await patiently(() => cluster.multi().set("{cart:7}:apples", 1).incr("{cart:7}:pears").exec());
  assert.deepEqual(replies, ["OK", 1]);
  assert.deepEqual(await patiently(() => cluster.mGet(["{cart:7}:apples", "{cart:7}:pears"])), ["1", "1"]);
  const take = "return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}";
  const keys = ["{cart:7}:apples", "{cart:7}:pears"];
  assert.deepEqual(await patiently(() => cluster.eval(take, { keys })), [0, 2]);
  // node-redis splits by slots what may be split.
  assert.equal(await patiently(() => cluster.mSet({ a: "1", b: "2" })), "OK");

  const listener = createClient({ socket: { port, host: "127.0.0.1" }, RESP: protocol });
  await listener.connect();
  const heard = new Promise((resolve) => listener.subscribe("news", resolve).then(() => cluster.publish("news", "hello")));
  assert.equal(await heard, "hello");
  await listener.close();
  await cluster.close();
  console.log("node-redis is content");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
