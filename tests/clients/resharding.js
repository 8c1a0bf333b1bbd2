// What the programs in JavaScript share that go on while their cluster changes. What they read and print is in
// resharding.rs.
const readline = require("readline");

const WORKERS = [0, 1];
const PAUSE_MS = 2; // between two messages

const TAGGED = (name) => (worker) => `{${worker}}:${name}`;
const KEYS = {
  append: [TAGGED("appended")],
  pipeline: [...Array(8).keys()].map((key) => (worker) => `piped:${worker}:${key}`),
  transaction: [TAGGED("left"), TAGGED("right")],
  script: [TAGGED("script:left"), TAGGED("script:right")],
};
const CHANNELS = { news: (worker) => `news:${worker}`, events: TAGGED("events") };

/** Does one thing again and again, with the numbers from 1 on. */
class Worker {
  constructor(kind, number, work) {
    Object.assign(this, { kind, work, sent: 0, arrived: 0, unknown: [], heard: [] });
    this.keys = (KEYS[kind] ?? []).map((key) => key(number));
    this.channel = CHANNELS[kind]?.(number);
  }

  async run(state) {
    while (!state.isDone) {
      const value = ++this.sent;
      if (this.channel) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      try {
        await this.work(this, value);
        // A message arrives when it is heard.
        if (!this.channel) this.arrived = value;
      } catch {
        this.unknown.push(value);
        // A client may refuse at once, and would then be asked again before it reads anything.
        await new Promise(setImmediate);
      }
      state.changed();
    }
  }
}

const printed = (values) => values.join(",") || "-";

/**
 * Runs workers of each kind until the input ends. `kinds` are functions of a worker and a number; `listen` subscribes
 * to the workers' channels, and passes on what it hears.
 */
async function goOn(kinds, listen, leavesOut) {
  const waiting = new Set();
  const state = { isDone: false, changed: () => waiting.forEach((check) => check()) };
  const until = (isSo) => new Promise((resolve) => {
    const check = () => isSo() && waiting.delete(check) && resolve();
    waiting.add(check);
    check();
  });
  const workers = Object.entries(kinds)
    .flatMap(([kind, work]) => WORKERS.map((number) => new Worker(kind, number, work)));
  const publishers = workers.filter((worker) => worker.channel);
  await listen(publishers, (channel, message) => {
    const worker = publishers.find((publisher) => publisher.channel === channel);
    worker.heard.push(worker.arrived = Number(message));
    state.changed();
  });
  const runs = workers.map((worker) => worker.run(state));
  leavesOut.forEach((line) => console.log(`leaves out ${line}`));
  console.log("ready");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const waitedFor = workers.filter((worker) => line.split(" ").includes(worker.kind))
      .map((worker) => [worker, worker.sent]);
    await until(() => waitedFor.every(([worker, sent]) => worker.arrived > sent));
    console.log("went on");
  }
  state.isDone = true;
  await Promise.all(runs);
  print(workers);
}

function print(workers) {
  for (const { keys, sent, unknown } of workers) {
    for (const key of keys) console.log(`list ${key} ${sent} ${printed(unknown)}`);
  }
  const watchers = workers.filter((worker) => worker.kind === "watch");
  const [sent, unknown] = ["sent", "unknown"].map((name) => watchers.flatMap((worker) => worker[name]));
  const tried = sent.reduce((sum, count) => sum + count, 0);
  console.log(`counter {0}:watched ${tried} ${tried - unknown.length}`);
  for (const { channel, sent, unknown, heard } of workers.filter((worker) => worker.channel)) {
    console.log(`channel ${channel} ${sent} ${printed(unknown)} ${printed(heard)}`);
  }
}

module.exports = { goOn };
