// The patterns of a Node.js backend with ioredis: `node ioredis_patterns.js PORT PROTOCOL`.
const assert = require("assert");
const Redis = require("ioredis");

const [port, protocol] = process.argv.slice(2).map(Number);
const numbers = (count) => Array.from({ length: count }, (_, number) => number);

async function aPipelineKeepsAListOfWhatWasViewedLast(client) {
  for (const moment of numbers(35)) {
    await client
      .pipeline()
      .zadd("rv:42", moment, `page-${moment}`)
      .zremrangebyrank("rv:42", 0, -31)
      .expire("rv:42", 3600)
      .exec();
  }
  assert.deepEqual(await client.zrevrange("rv:42", 0, 1), ["page-34", "page-33"]);
  assert.equal(await client.zcard("rv:42"), 30);
}

async function commandsOfOneTickAreOnePipeline() {
  const client = new Redis({ port, protocol, enableAutoPipelining: true });
  const replies = await Promise.all(numbers(50).map(() => client.incr("visits")));
  assert.deepEqual(replies, numbers(50).map((number) => number + 1));
  client.disconnect();
}

async function aTransactionThatWasOvertakenAnswersNothing(client) {
  await client.set("stock", 3);
  await client.watch("stock");
  const other = client.duplicate();
  await other.decr("stock");
  assert.equal(await client.multi().set("stock", 99).exec(), null);
  assert.deepEqual(await client.multi().decr("stock").get("stock").exec(), [[null, 1], [null, "1"]]);
  other.disconnect();
}

async function aScriptIsACommand(client) {
  client.defineCommand("claimDue", {
    numberOfKeys: 2,
    lua: `local jobs = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
      for _, job in ipairs(jobs) do
        redis.call('ZREM', KEYS[1], job)
        redis.call('ZADD', KEYS[2], ARGV[3], job)
      end
      return jobs`,
  });
  await client.script("FLUSH");
  await client.zadd("delayed", 1, "j1", 2, "j2", 3, "j3", 99, "j4");
  assert.deepEqual(await client.claimDue("delayed", "processing", 50, 2, 1060), ["j1", "j2"]);
  assert.deepEqual(await client.claimDue("delayed", "processing", 50, 2, 1060), ["j3"]);
  const replies = await client.pipeline().claimDue("delayed", "processing", 50, 2, 1060).zcard("processing").exec();
  assert.deepEqual(replies, [[null, []], [null, 3]]);
}

async function messagesReachWhoListensInOrder(client) {
  const listener = client.duplicate();
  const heard = [];
  listener.on("message", (channel, message) => heard.push(Number(message)));
  listener.on("pmessage", (pattern, channel, message) => heard.push(Number(message)));
  assert.equal(await listener.subscribe("news"), 1);
  assert.equal(await listener.psubscribe("other*"), 2);
  for (const number of numbers(50)) await client.publish(number % 2 ? "news" : "other", number);
  while (heard.length < 50) await new Promise(setImmediate);
  assert.deepEqual(heard, numbers(50));
  listener.disconnect();
}

async function workersTakeJobsAsTheyCome(client) {
  const worker = client.duplicate();
  const work = async () => {
    const done = [];
    for (;;) {
      const [, job] = await worker.blpop("urgent", "jobs", 5);
      if (job === "stop") return done;
      done.push(Number(job));
    }
  };
  const working = work();
  for (const number of numbers(50)) await client.rpush("jobs", number);
  await client.rpush("jobs", "stop");
  assert.deepEqual(await working, numbers(50));
  assert.equal(await worker.blpop("nothing", 0.1), null);
  worker.disconnect();
}

async function aScanMeetsEverything(client) {
  await client.mset(Object.fromEntries(numbers(500).map((number) => [`user:${number}`, number])));
  const met = new Set();
  for await (const keys of client.scanStream({ match: "user:*", count: 50 })) keys.forEach((key) => met.add(key));
  assert.equal(met.size, 500);
}

async function whatHasADeadlineEnds(client) {
  await client.set("session", "ann", "EX", 3600);
  await client.call("DUNLIN", "ADVANCE", 3600000);
  assert.equal(await client.pttl("session"), -2);
}

async function main() {
  const client = new Redis({ port, protocol });
  await client.flushall();
  await aPipelineKeepsAListOfWhatWasViewedLast(client);
  await commandsOfOneTickAreOnePipeline();
  await aTransactionThatWasOvertakenAnswersNothing(client);
  await aScriptIsACommand(client);
  await messagesReachWhoListensInOrder(client);
  await workersTakeJobsAsTheyCome(client);
  await aScanMeetsEverything(client);
  await whatHasADeadlineEnds(client);
  await client.quit();
  console.log("ioredis is content");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
