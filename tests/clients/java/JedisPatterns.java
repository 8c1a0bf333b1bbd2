// The patterns of a Java backend with Jedis: `java -cp ... JedisPatterns.java PORT PROTOCOL`.

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.Tuple;

public class JedisPatterns {
    static final int WORKERS = 8;
    static final int ROUNDS = 50;

    static HostAndPort address;
    static DefaultJedisClientConfig config;
    static JedisPooled pool;

    public static void main(String[] arguments) throws Exception {
        address = new HostAndPort("127.0.0.1", Integer.parseInt(arguments[0]));
        RedisProtocol protocol = arguments[1].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
        config = DefaultJedisClientConfig.builder().protocol(protocol).build();
        ConnectionPoolConfig four = new ConnectionPoolConfig();
        four.setMaxTotal(4);
        pool = new JedisPooled(four, address, config);
        pool.flushAll();
        moreWorkersThanConnectionsShareAPool();
        aPipelineKeepsAListOfWhatWasViewedLast();
        aTransactionThatWasOvertakenAnswersNothing();
        aScriptIsCalledByItsName();
        messagesReachWhoListensInOrder();
        workersTakeJobsAsTheyCome();
        aScanMeetsEverything();
        whatHasADeadlineEnds();
        pool.close();
        System.out.println("Jedis is content");
    }

    static void expect(Object found, Object expected) {
        if (!found.equals(expected)) throw new AssertionError(found + " instead of " + expected);
    }

    static void inThreads(Runnable work) {
        List<CompletableFuture<Void>> workers = new ArrayList<>();
        for (int worker = 0; worker < WORKERS; worker++) workers.add(CompletableFuture.runAsync(work));
        workers.forEach(CompletableFuture::join);
    }

    static void moreWorkersThanConnectionsShareAPool() {
        inThreads(() -> {
            for (int round = 0; round < ROUNDS; round++) pool.incr("visits");
        });
        expect(pool.get("visits"), String.valueOf(WORKERS * ROUNDS));
    }

    static void aPipelineKeepsAListOfWhatWasViewedLast() {
        for (int moment = 0; moment < 35; moment++) {
            try (Pipeline pipe = (Pipeline) pool.pipelined()) {
                Response<Long> added = pipe.zadd("rv:42", moment, "page-" + moment);
                pipe.zremrangeByRank("rv:42", 0, -31);
                pipe.expire("rv:42", 3600);
                pipe.sync();
                expect(added.get(), 1L);
            }
        }
        expect(pool.zrevrange("rv:42", 0, 1), List.of("page-34", "page-33"));
        expect(pool.zrangeWithScores("rv:42", -1, -1), List.of(new Tuple("page-34", 34.0)));
        pool.hset("person:1", "name", "ann");
        expect(pool.hgetAll("person:1").get("name"), "ann");
    }

    static void aTransactionThatWasOvertakenAnswersNothing() {
        pool.set("stock", "3");
        try (Jedis client = new Jedis(address, config)) {
            client.watch("stock");
            pool.decr("stock");
            Transaction overtaken = client.multi();
            overtaken.set("stock", "99");
            if (overtaken.exec() != null) throw new AssertionError("it was overtaken");
            Transaction alone = client.multi();
            Response<Long> left = alone.decr("stock");
            expect(alone.exec(), List.of(1L));
            expect(left.get(), 1L);
        }
    }

    static void aScriptIsCalledByItsName() {
        String name = pool.scriptLoad(
            "local added = redis.call('SADD', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], ARGV[2]) return added");
        expect(pool.evalsha(name, List.of("dedupe"), List.of("event-1", "7200")), 1L);
        expect(pool.evalsha(name, List.of("dedupe"), List.of("event-1", "7200")), 0L);
        try {
            pool.eval("return redis.call('INCR', 'person:1')");
            throw new AssertionError("INCR of a hash must fail");
        } catch (JedisDataException error) {
            if (!error.getMessage().startsWith("WRONGTYPE ")) throw error;
        }
    }

    static void messagesReachWhoListensInOrder() throws Exception {
        List<String> heard = new ArrayList<>();
        CountDownLatch ready = new CountDownLatch(2);
        JedisPubSub listener = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                psubscribe("other*");
                ready.countDown();
            }

            @Override
            public void onPSubscribe(String pattern, int count) {
                ready.countDown();
            }

            @Override
            public void onMessage(String channel, String message) {
                heard.add(message);
                if (message.equals("last")) {
                    unsubscribe();
                    punsubscribe();
                }
            }

            @Override
            public void onPMessage(String pattern, String channel, String message) {
                heard.add(message);
            }
        };
        CompletableFuture<Void> listening = CompletableFuture.runAsync(() -> pool.subscribe(listener, "news"));
        ready.await();
        List<String> expected = new ArrayList<>();
        for (int number = 0; number < 50; number++) {
            pool.publish(number % 2 == 0 ? "other" : "news", String.valueOf(number));
            expected.add(String.valueOf(number));
        }
        pool.publish("news", "last");
        expected.add("last");
        listening.join();
        expect(heard, expected);
    }

    static void workersTakeJobsAsTheyCome() {
        CompletableFuture<Integer> worker = CompletableFuture.supplyAsync(() -> {
            int done = 0;
            while (!pool.blpop(5, "urgent", "jobs").get(1).equals("stop")) done++;
            return done;
        });
        for (int number = 0; number < 50; number++) pool.rpush("jobs", String.valueOf(number));
        pool.rpush("jobs", "stop");
        expect(worker.join(), 50);
        if (pool.blpop(0.1, "nothing") != null) throw new AssertionError("there is nothing");
        pool.zadd("due", 1, "sooner");
        expect(pool.bzpopmin(1, "due").getValue(), new Tuple("sooner", 1.0));
    }

    static void aScanMeetsEverything() {
        for (int number = 0; number < 500; number++) pool.set("user:" + number, "x");
        Set<String> met = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = pool.scan(cursor, new ScanParams().match("user:*").count(50));
            met.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        expect(met.size(), 500);
    }

    static void whatHasADeadlineEnds() throws Exception {
        expect(pool.set("session", "ann", SetParams.setParams().ex(3600)), "OK");
        pool.sendCommand(() -> "DUNLIN".getBytes(), "ADVANCE", "3600000");
        expect(pool.pttl("session"), -2L);
    }
}
