// The first steps of a Node.js backend with a server: defaults, a pipeline, expiry, sorted sets, errors.
const Redis = require("ioredis");
const assert = require("assert");

async function main() {
  const client = new Redis({ port: Number(process.argv[2]), protocol: Number(process.argv[3]) });
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.set("greeting", "hello", "PX", 100000), "OK");
  assert.equal(await client.get("greeting"), "hello");
  const replies = await client
    .pipeline()
    .zadd("board", 10, "ann", 20.5, "ben")
    .zincrby("board", 5, "ann")
    .zrange("board", 0, -1, "WITHSCORES")
    .exec();
  assert.deepEqual(replies.map(([error, value]) => [error, value]), [
    [null, 2],
    [null, "15"],
    [null, ["ann", "15", "ben", "20.5"]],
  ]);
  await assert.rejects(client.incr("greeting"), /value is not an integer or out of range/);
  const [cursor, keys] = await client.scan("0");
  assert.equal(cursor, "0");
  assert.deepEqual(keys.sort(), ["board", "greeting"]);
  await client.quit();
  console.log("ioredis is content");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
