// A Node.js backend that goes on while its cluster changes, with node-redis:
// `node node_redis_resharding.js PORT PROTOCOL`.
const { createCluster } = require("redis");
const { goOn } = require("./resharding.js");

const [port, protocol] = process.argv.slice(2).map(Number);
const cluster = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }], defaults: { RESP: protocol } });
cluster.on("error", () => {}); // each command says so itself
cluster.on("node-error", () => {});

const BOTH = "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])";

const kinds = {
  append: (worker, value) => cluster.rPush(worker.keys[0], String(value)),
  // Commands that are sent in one turn are one pipeline to each node.
  pipeline: (worker, value) => Promise.all(worker.keys.map((key) => cluster.rPush(key, String(value)))),
  transaction: (worker, value) => {
    const [left, right] = worker.keys;
    return cluster.multi().rPush(left, String(value)).rPush(right, String(value)).exec();
  },
  script: (worker, value) => cluster.eval(BOTH, { keys: worker.keys, arguments: [String(value)] }),
  news: (worker, value) => cluster.publish(worker.channel, String(value)),
  events: (worker, value) => cluster.sPublish(worker.channel, String(value)),
};

async function listen(publishers, hear) {
  await cluster.connect();
  for (const { kind, channel } of publishers) {
    const subscribe = kind === "news" ? "subscribe" : "sSubscribe";
    await cluster[subscribe](channel, (message) => hear(channel, message));
  }
}

goOn(kinds, listen, [
  "watch: a cluster's client has no connection of its own for it",
  "all while killed: commands wait for five seconds until another node is asked",
])
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
