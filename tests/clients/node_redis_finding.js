// Reads a key of a cluster with node-redis for each line of its input:
// `node node_redis_finding.js PORT PROTOCOL KEY`.
const readline = require("readline");
const { createCluster } = require("redis");

const [port, protocol] = process.argv.slice(2, 4).map(Number);
const key = process.argv[4];

async function main() {
  const cluster = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }], defaults: { RESP: protocol } });
  await cluster.connect();
  for await (const _ of readline.createInterface({ input: process.stdin })) console.log(await cluster.get(key));
  await cluster.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
