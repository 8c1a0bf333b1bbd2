// A Node.js backend that goes on while its cluster changes, with ioredis: `node ioredis_resharding.js PORT PROTOCOL`.
const Redis = require("ioredis");
const { goOn } = require("./resharding.js");

const [port, protocol] = process.argv.slice(2).map(Number);
const connect = (options) => {
  const client = new Redis.Cluster([{ host: "127.0.0.1", port }], { redisOptions: { protocol }, ...options });
  return client.on("error", () => {}); // each command says so itself
};
const cluster = connect({ shardedSubscribers: true });
cluster.defineCommand("both", {
  numberOfKeys: 2,
  lua: "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])",
});

/** Fails with the first error of replies that are pairs of error and result. */
function checked(replies) {
  for (const [error] of replies) if (error) throw error;
}

const kinds = {
  append: (worker, value) => cluster.rpush(worker.keys[0], value),
  // Commands that are sent in one turn are one pipeline to each node: those of `pipeline` must have one node's keys.
  pipeline: (worker, value) => Promise.all(worker.keys.map((key) => cluster.rpush(key, value))),
  transaction: async (worker, value) => {
    const [left, right] = worker.keys;
    checked(await cluster.multi().rpush(left, value).rpush(right, value).exec());
  },
  script: (worker, value) => cluster.both(...worker.keys, value),
  news: (worker, value) => cluster.publish(worker.channel, value),
  events: (worker, value) => cluster.spublish(worker.channel, value),
};

async function listen(publishers, hear) {
  const channels = (kind) => publishers.filter((worker) => worker.kind === kind).map((worker) => worker.channel);
  cluster.on("message", hear);
  cluster.on("smessage", hear);
  await cluster.subscribe(...channels("news"));
  for (const channel of channels("events")) await cluster.ssubscribe(channel);
}

goOn(kinds, listen, ["watch: all share one connection to a node, so it would see what others change"])
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
