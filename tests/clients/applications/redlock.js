// Locks over three servers with Redlock: `node redlock.js PORT PORT PORT`.
const assert = require("assert");
const Redis = require("ioredis");
const { default: Redlock, ExecutionError } = require("redlock");

/** Two of three servers decide; the third one follows. */
async function until(holds) {
  while (!(await holds())) await new Promise(setImmediate);
}

async function main() {
  const servers = process.argv.slice(2).map((port) => new Redis(Number(port)));
  const patient = new Redlock(servers, { retryCount: 5000, retryDelay: 5, retryJitter: 5 });
  const impatient = new Redlock(servers, { retryCount: 0 });

  let inside = 0;
  let visits = 0;
  const visit = () =>
    patient.using(["door"], 5000, async () => {
      assert.equal(++inside, 1);
      await new Promise(setImmediate);
      visits++;
      inside--;
    });
  await Promise.all(Array.from({ length: 20 }, visit));
  assert.equal(visits, 20);

  const lock = await impatient.acquire(["a", "b"], 1000);
  await assert.rejects(impatient.acquire(["b"], 1000), ExecutionError);
  const longer = await lock.extend(60000);
  for (const server of servers) await until(async () => (await server.pttl("a")) > 50000);
  await longer.release();
  for (const server of servers) await until(async () => (await server.exists("a", "b")) === 0);

  // Two of three are enough, one is not.
  await servers[0].set("c", "somebody else's");
  await (await impatient.acquire(["c"], 1000)).release();
  await servers[1].set("c", "somebody else's");
  await assert.rejects(impatient.acquire(["c"], 1000), ExecutionError);

  const short = await impatient.acquire(["d"], 30);
  for (const server of servers) await until(async () => (await server.exists("d")) === 0);
  await assert.rejects(short.extend(1000), ExecutionError);
  servers.forEach((server) => server.disconnect());
  console.log("Redlock is content");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
