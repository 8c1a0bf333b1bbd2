// The patterns of a Java backend with Lettuce: `java -cp ... LettucePatterns.java PORT PROTOCOL`.

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanCursor;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class LettucePatterns {
    enum TestKit implements ProtocolKeyword {
        DUNLIN;

        @Override
        public byte[] getBytes() {
            return name().getBytes();
        }
    }

    static RedisClient client;
    static StatefulRedisConnection<String, String> connection;
    static RedisCommands<String, String> commands;

    public static void main(String[] arguments) throws Exception {
        client = RedisClient.create(RedisURI.create("127.0.0.1", Integer.parseInt(arguments[0])));
        ProtocolVersion protocol = arguments[1].equals("3") ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2;
        client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
        connection = client.connect();
        commands = connection.sync();
        commands.flushall();
        manyThreadsShareAConnection();
        aPipelineKeepsAListOfWhatWasViewedLast();
        aTransactionThatWasOvertakenIsDiscarded();
        aScriptIsCalledByItsName();
        messagesReachWhoListensInOrder();
        workersTakeJobsAsTheyCome();
        aScanMeetsEverything();
        whatHasADeadlineEnds();
        connection.close();
        client.shutdown(Duration.ZERO, Duration.ofSeconds(2));
        System.out.println("Lettuce is content");
    }

    static void expect(Object found, Object expected) {
        if (!found.equals(expected)) throw new AssertionError(found + " instead of " + expected);
    }

    static void manyThreadsShareAConnection() {
        List<CompletableFuture<Void>> workers = new ArrayList<>();
        for (int worker = 0; worker < 8; worker++) {
            workers.add(CompletableFuture.runAsync(() -> {
                for (int round = 0; round < 50; round++) commands.incr("visits");
            }));
        }
        workers.forEach(CompletableFuture::join);
        expect(commands.get("visits"), "400");
    }

    static void aPipelineKeepsAListOfWhatWasViewedLast() {
        RedisAsyncCommands<String, String> pipe = connection.async();
        connection.setAutoFlushCommands(false);
        List<RedisFuture<?>> replies = new ArrayList<>();
        for (int moment = 0; moment < 35; moment++) {
            replies.add(pipe.zadd("rv:42", moment, "page-" + moment));
            replies.add(pipe.zremrangebyrank("rv:42", 0, -31));
            replies.add(pipe.expire("rv:42", 3600));
        }
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        if (!LettuceFutures.awaitAll(Duration.ofSeconds(10), replies.toArray(new RedisFuture[0]))) {
            throw new AssertionError("replies are missing");
        }
        expect(commands.zrevrangeWithScores("rv:42", 0, 0), List.of(ScoredValue.just(34, "page-34")));
        expect(commands.zcard("rv:42"), 30L);
        commands.hset("person:1", Map.of("name", "ann"));
        expect(commands.hgetall("person:1"), Map.of("name", "ann"));
    }

    static void aTransactionThatWasOvertakenIsDiscarded() {
        commands.set("stock", "3");
        try (StatefulRedisConnection<String, String> other = client.connect()) {
            RedisCommands<String, String> watching = other.sync();
            watching.watch("stock");
            commands.decr("stock");
            watching.multi();
            watching.set("stock", "99");
            if (!watching.exec().wasDiscarded()) throw new AssertionError("it was overtaken");
            watching.multi();
            watching.decr("stock");
            watching.get("stock");
            TransactionResult result = watching.exec();
            expect(List.of(result.<Long>get(0), result.<String>get(1)), List.of(1L, "1"));
        }
    }

    static void aScriptIsCalledByItsName() {
        String name = commands.scriptLoad(
            "local added = redis.call('SADD', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], ARGV[2]) return added");
        String[] keys = {"dedupe"};
        expect(commands.<Long>evalsha(name, ScriptOutputType.INTEGER, keys, "event-1", "7200"), 1L);
        expect(commands.<Long>evalsha(name, ScriptOutputType.INTEGER, keys, "event-1", "7200"), 0L);
        List<Object> nested = commands.eval("return {1, 'two', {3}}", ScriptOutputType.MULTI);
        expect(nested, List.of(1L, "two", List.of(3L)));
        try {
            commands.eval("return redis.call('INCR', 'person:1')", ScriptOutputType.INTEGER);
            throw new AssertionError("INCR of a hash must fail");
        } catch (RedisCommandExecutionException error) {
            if (!error.getMessage().startsWith("WRONGTYPE ")) throw error;
        }
    }

    static void messagesReachWhoListensInOrder() throws Exception {
        LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
        try (StatefulRedisPubSubConnection<String, String> listener = client.connectPubSub()) {
            listener.addListener(new RedisPubSubAdapter<>() {
                @Override
                public void message(String channel, String message) {
                    heard.add(message);
                }

                @Override
                public void message(String pattern, String channel, String message) {
                    heard.add(message);
                }
            });
            listener.sync().subscribe("news");
            listener.sync().psubscribe("other*");
            for (int number = 0; number < 50; number++) {
                commands.publish(number % 2 == 0 ? "other" : "news", String.valueOf(number));
            }
            for (int number = 0; number < 50; number++) {
                expect(heard.poll(5, TimeUnit.SECONDS), String.valueOf(number));
            }
        }
    }

    static void workersTakeJobsAsTheyCome() {
        CompletableFuture<Integer> worker = CompletableFuture.supplyAsync(() -> {
            try (StatefulRedisConnection<String, String> own = client.connect()) {
                int done = 0;
                while (!own.sync().blpop(5, "urgent", "jobs").getValue().equals("stop")) done++;
                return done;
            }
        });
        for (int number = 0; number < 50; number++) commands.rpush("jobs", String.valueOf(number));
        commands.rpush("jobs", "stop");
        expect(worker.join(), 50);
        try (StatefulRedisConnection<String, String> own = client.connect()) {
            if (own.sync().blpop(0.1, "nothing") != null) throw new AssertionError("there is nothing");
            commands.zadd("due", 1, "sooner");
            expect(own.sync().bzpopmin(1, "due"), KeyValue.just("due", ScoredValue.just(1, "sooner")));
        }
    }

    static void aScanMeetsEverything() {
        for (int number = 0; number < 500; number++) commands.set("user:" + number, "x");
        Set<String> met = new HashSet<>();
        ScanArgs some = ScanArgs.Builder.matches("user:*").limit(50);
        KeyScanCursor<String> page = commands.scan(some);
        met.addAll(page.getKeys());
        while (!page.isFinished()) {
            page = commands.scan(ScanCursor.of(page.getCursor()), some);
            met.addAll(page.getKeys());
        }
        expect(met.size(), 500);
    }

    static void whatHasADeadlineEnds() throws Exception {
        expect(commands.set("session", "ann", SetArgs.Builder.ex(3600)), "OK");
        CommandArgs<String, String> anHour = new CommandArgs<>(StringCodec.UTF8).add("ADVANCE").add(3600000);
        commands.dispatch(TestKit.DUNLIN, new IntegerOutput<>(StringCodec.UTF8), anHour);
        expect(commands.pttl("session"), -2L);
    }
}
