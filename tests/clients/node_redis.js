// The patterns of a Node.js backend with node-redis: `node node_redis.js PORT PROTOCOL`.
const assert = require("assert");
const { createClient, createClientPool, defineScript, WatchError } = require("redis");

const [port, protocol] = process.argv.slice(2).map(Number);
const options = {
  socket: { port, host: "127.0.0.1" },
  RESP: protocol,
  scripts: {
    firstSeen: defineScript({
      NUMBER_OF_KEYS: 1,
      SCRIPT:
        "local added = redis.call('SADD', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], ARGV[2]) return added",
      parseCommand(parser, key, member, seconds) {
        parser.pushKey(key);
        parser.push(member, String(seconds));
      },
      transformReply: (reply) => reply === 1,
    }),
  },
};

const numbers = (count) => Array.from({ length: count }, (_, number) => number);

async function moreTasksThanConnectionsShareAPool() {
  const pool = createClientPool(options, { minimum: 1, maximum: 4 });
  pool.on("error", (error) => console.error(error));
  await pool.connect();
  await Promise.all(numbers(50).map(() => pool.execute((client) => client.incr("visits"))));
  assert.equal(await pool.get("visits"), "50");
  await pool.close();
}

async function aPipelineKeepsAListOfWhatWasViewedLast(client) {
  for (const moment of numbers(35)) {
    // Commands of one tick go out together.
    await Promise.all([
      client.zAdd("rv:42", { score: moment, value: `page-${moment}` }),
      client.zRemRangeByRank("rv:42", 0, -31),
      client.expire("rv:42", 3600),
    ]);
  }
  assert.deepEqual(await client.zRange("rv:42", 0, 1, { REV: true }), ["page-34", "page-33"]);
  assert.deepEqual(await client.zRangeWithScores("rv:42", -1, -1), [{ value: "page-34", score: 34 }]);
  assert.equal(await client.zScore("rv:42", "nobody"), null);
  await client.hSet("person:1", { name: "ann", age: "7" });
  assert.deepEqual({ ...(await client.hGetAll("person:1")) }, { name: "ann", age: "7" });
}

async function aTransactionThatWasOvertakenIsRefused(client) {
  await client.set("stock", 3);
  await client.watch("stock");
  const other = await client.duplicate().connect();
  await other.decr("stock");
  await assert.rejects(client.multi().set("stock", 99).exec(), WatchError);
  assert.deepEqual(await client.multi().decr("stock").get("stock").exec(), [1, "1"]);
  await assert.rejects(client.multi().set("word", "x").incr("word").exec(), /1 commands failed/);
  other.destroy();
}

async function aScriptIsSentOnceAndCalledByItsName(client) {
  await client.scriptFlush();
  const answers = [];
  for (const _ of numbers(3)) answers.push(await client.firstSeen("dedupe", "event-1", 7200));
  assert.deepEqual(answers, [true, false, false]);
  assert.deepEqual(await client.eval("return {KEYS[1], ARGV[1], 3.99, {ok = 'fine'}}", { keys: ["k"], arguments: ["a"] }), [
    "k",
    "a",
    3,
    "fine",
  ]);
  await assert.rejects(client.eval("return redis.call('INCR', 'word')"), /not an integer or out of range/);
}

async function messagesReachWhoListensInOrder(client) {
  const listener = await client.duplicate().connect();
  const heard = [];
  await listener.subscribe("news", (message, channel) => heard.push([channel, message]));
  await listener.pSubscribe("other*", (message, channel) => heard.push([channel, message]));
  for (const number of numbers(50)) await client.publish(number % 2 ? "news" : "other", String(number));
  while (heard.length < 50) await new Promise(setImmediate);
  assert.deepEqual(heard, numbers(50).map((number) => [number % 2 ? "news" : "other", String(number)]));
  await listener.unsubscribe("news");
  await listener.pUnsubscribe();
  await listener.close();
}

async function workersTakeJobsAsTheyCome(client) {
  const worker = await client.duplicate().connect();
  const work = async () => {
    const done = [];
    for (;;) {
      const { element } = await worker.blPop("jobs", 5);
      if (element === "stop") return done;
      done.push(Number(element));
    }
  };
  const working = work();
  for (const number of numbers(50)) await client.rPush("jobs", String(number));
  await client.rPush("jobs", "stop");
  assert.deepEqual(await working, numbers(50));
  assert.equal(await worker.blPop("nothing", 0.1), null);
  await client.zAdd("due", [{ score: 2, value: "later" }, { score: 1, value: "sooner" }]);
  assert.deepEqual(await worker.bzPopMin("due", 1), { key: "due", value: "sooner", score: 1 });
  await worker.close();
}

async function aScanMeetsEverything(client) {
  await client.mSet(numbers(500).map((number) => [`user:${number}`, String(number)]));
  const met = new Set();
  for await (const keys of client.scanIterator({ MATCH: "user:*", COUNT: 50 })) keys.forEach((key) => met.add(key));
  assert.equal(met.size, 500);
  await client.sAdd("numbers", numbers(500).map(String));
  const members = new Set();
  for await (const some of client.sScanIterator("numbers")) some.forEach((member) => members.add(member));
  assert.equal(members.size, 500);
}

async function whatHasADeadlineEnds(client) {
  assert.equal(await client.set("session", "ann", { expiration: { type: "EX", value: 3600 } }), "OK");
  await client.sendCommand(["DUNLIN", "ADVANCE", "3600000"]);
  assert.equal(await client.pTTL("session"), -2);
}

async function main() {
  const client = createClient(options);
  client.on("error", (error) => console.error(error));
  await client.connect();
  await client.flushAll();
  await moreTasksThanConnectionsShareAPool();
  await aPipelineKeepsAListOfWhatWasViewedLast(client);
  await aTransactionThatWasOvertakenIsRefused(client);
  await aScriptIsSentOnceAndCalledByItsName(client);
  await messagesReachWhoListensInOrder(client);
  await workersTakeJobsAsTheyCome(client);
  await aScanMeetsEverything(client);
  await whatHasADeadlineEnds(client);
  await client.close();
  console.log("node-redis is content");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
