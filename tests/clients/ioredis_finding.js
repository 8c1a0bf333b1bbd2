// Reads a key of a cluster with ioredis for each line of its input: `node ioredis_finding.js PORT PROTOCOL KEY`.
const readline = require("readline");
const Redis = require("ioredis");

const [port, protocol] = process.argv.slice(2, 4).map(Number);
const key = process.argv[4];

async function main() {
  const cluster = new Redis.Cluster([{ host: "127.0.0.1", port }], { redisOptions: { protocol } });
  for await (const _ of readline.createInterface({ input: process.stdin })) console.log(await cluster.get(key));
  cluster.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
