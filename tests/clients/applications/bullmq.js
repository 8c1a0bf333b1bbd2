// Jobs in the background with BullMQ: `node bullmq.js PORT`.
const assert = require("assert");
const { FlowProducer, Queue, QueueEvents, Worker } = require("bullmq");

const connection = { host: "127.0.0.1", port: Number(process.argv[2]), maxRetriesPerRequest: null };
const numbers = (count) => Array.from({ length: count }, (_, number) => number);

async function main() {
  const queue = new Queue("mail", { connection });
  const events = new QueueEvents("mail", { connection });
  await events.waitUntilReady();
  const handled = [];
  const work = async (job) => {
    handled.push(job.name);
    if (job.name === "fails" && job.attemptsMade < 2) throw new Error("not yet");
    await job.updateProgress(50);
    return job.data.number * 2;
  };
  const worker = new Worker("mail", work, { connection, concurrency: 5 });

  const jobs = await queue.addBulk(numbers(50).map((number) => ({ name: "plain", data: { number } })));
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 20000)));
  assert.deepEqual(results, numbers(50).map((number) => number * 2));

  const delayed = await queue.add("delayed", { number: 1 }, { delay: 200 });
  assert.equal(await delayed.getState(), "delayed");
  assert.equal(await delayed.waitUntilFinished(events, 20000), 2);
  const fails = await queue.add("fails", { number: 2 }, { attempts: 3, backoff: { type: "fixed", delay: 50 } });
  assert.equal(await fails.waitUntilFinished(events, 20000), 4);
  assert.equal(handled.filter((name) => name === "fails").length, 3);
  const urgent = await queue.add("urgent", { number: 3 }, { priority: 1, removeOnComplete: true });
  assert.equal(await urgent.waitUntilFinished(events, 20000), 6);
  assert.equal(await queue.getJob(urgent.id), undefined);

  const flow = new FlowProducer({ connection });
  const tree = await flow.add({
    name: "parent",
    queueName: "mail",
    data: { number: 5 },
    children: numbers(3).map((number) => ({ name: "child", queueName: "mail", data: { number } })),
  });
  assert.equal(await tree.job.waitUntilFinished(events, 20000), 10);
  assert.deepEqual(Object.values(await tree.job.getChildrenValues()).sort(), [0, 2, 4]);

  let scheduled = 0;
  const both = new Promise((done) =>
    worker.on("completed", (job) => job.name === "scheduled" && ++scheduled === 2 && done()),
  );
  await queue.upsertJobScheduler("every", { every: 100, limit: 2 }, { name: "scheduled", data: { number: 7 } });
  await both;
  await queue.pause();
  const paused = await queue.add("paused", { number: 1 });
  assert.equal(await queue.getWaitingCount(), 1);
  await queue.resume();
  await paused.waitUntilFinished(events, 20000);
  const counts = await queue.getJobCounts("completed", "failed", "active", "waiting");
  assert.equal(counts.failed + counts.active + counts.waiting, 0);
  assert.ok(counts.completed >= 57);
  await Promise.all([worker.close(), events.close(), flow.close()]);
  await queue.obliterate();
  await queue.close();
  console.log("BullMQ is content");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
