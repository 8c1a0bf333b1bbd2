// A Java backend that goes on while its cluster changes, with Jedis or with Lettuce: `java -cp ... Resharding.java PORT
// PROTOCOL Jedis|Lettuce`. What it reads and prints is in resharding.rs.

import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.pubsub.RedisClusterPubSubAdapter;
import io.lettuce.core.cluster.pubsub.StatefulRedisClusterPubSubConnection;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.support.ConnectionPoolSupport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import redis.clients.jedis.ClusterPipeline;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.JedisShardedPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.util.JedisClusterCRC16;

public class Resharding {
    static final int PAUSE_MS = 2; // between two messages, and after a refusal
    static final String WATCHED = "{0}:watched";
    static final String BOTH = "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])";

    /** What a client does for a worker with a number, which it throws an exception for if it may not have been done. */
    interface Client {
        void append(String key, String value) throws Exception;

        void pipeline(List<String> keys, String value) throws Exception;

        void transaction(List<String> keys, String value) throws Exception;

        /** Appends the length of the list plus one, whatever others do meanwhile. */
        void watch() throws Exception;

        void script(List<String> keys, String value) throws Exception;

        void publish(String channel, String value) throws Exception;

        void publishSharded(String channel, String value) throws Exception;

        void listen(List<String> channels, List<String> sharded) throws Exception;
    }

    interface Work {
        void run(Worker worker, String value) throws Exception;
    }

    /** Does one thing again and again, with the numbers from 1 on. */
    static class Worker implements Runnable {
        final String kind;
        final List<String> keys;
        final String channel;
        final Work work;
        final List<Integer> unknown = new ArrayList<>();
        final List<Integer> heard = new ArrayList<>();
        int sent;
        int arrived;

        Worker(String kind, List<String> keys, String channel, Work work) {
            this.kind = kind;
            this.keys = keys;
            this.channel = channel;
            this.work = work;
        }

        @Override
        public void run() {
            while (!isDone) {
                synchronized (changed) {
                    sent++;
                }
                Exception failure = null;
                try {
                    if (channel != null) {
                        pause();
                    }
                    work.run(this, String.valueOf(sent));
                } catch (Exception exception) {
                    failure = exception;
                    pause();
                }
                synchronized (changed) {
                    if (failure != null) {
                        unknown.add(sent);
                    } else {
                        arrived = channel == null ? sent : arrived;
                    }
                    changed.notifyAll();
                }
            }
        }
    }

    /** Lets others go on: workers that are refused and ask again at once would leave them no time. */
    static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException exception) {
            throw new IllegalStateException(exception);
        }
    }

    static final Object changed = new Object();
    static volatile boolean isDone;
    static final List<Worker> workers = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        boolean isThree = arguments[1].equals("3");
        Client client = arguments[2].equals("Jedis") ? new OfJedis(port, isThree) : new OfLettuce(port, isThree);
        IntStream.range(0, 2).forEach(number -> workers.addAll(workersOf(client, number)));
        client.listen(channels("news"), channels("events"));
        List<Thread> threads = workers.stream().map(Thread::new).toList();
        threads.forEach(Thread::start);
        if (client instanceof OfLettuce) {
            System.out.println("leaves out all while killed: commands wait until their node is there again");
        }
        System.out.println("ready");
        for (Scanner input = new Scanner(System.in); input.hasNextLine();) {
            goesOn(Set.of(input.nextLine().split(" ")));
            System.out.println("went on");
        }
        isDone = true;
        for (Thread thread : threads) {
            thread.join();
        }
        synchronized (changed) {
            print();
        }
        System.exit(0);
    }

    static List<Worker> workersOf(Client client, int number) {
        String tag = "{" + number + "}:";
        List<String> piped = IntStream.range(0, 8).mapToObj(key -> "piped:" + number + ":" + key).toList();
        List<String> scripted = List.of(tag + "script:left", tag + "script:right");
        return List.of(
            new Worker("append", List.of(tag + "appended"), null, (it, value) -> client.append(it.keys.get(0), value)),
            new Worker("pipeline", piped, null, (it, value) -> client.pipeline(it.keys, value)),
            new Worker("transaction", List.of(tag + "left", tag + "right"), null,
                (it, value) -> client.transaction(it.keys, value)),
            new Worker("watch", List.of(), null, (it, value) -> client.watch()),
            new Worker("script", scripted, null, (it, value) -> client.script(it.keys, value)),
            new Worker("news", List.of(), "news:" + number, (it, value) -> client.publish(it.channel, value)),
            new Worker("events", List.of(), tag + "events", (it, value) -> client.publishSharded(it.channel, value)));
    }

    static List<String> channels(String kind) {
        return workers.stream().filter(worker -> worker.kind.equals(kind)).map(worker -> worker.channel).toList();
    }

    static void hear(String channel, String message) {
        synchronized (changed) {
            Worker worker = workers.stream().filter(one -> channel.equals(one.channel)).findFirst().orElseThrow();
            worker.arrived = Integer.parseInt(message);
            worker.heard.add(worker.arrived);
            changed.notifyAll();
        }
    }

    /** Waits until each worker of these kinds has done what it began from now on. */
    static void goesOn(Set<String> kinds) throws InterruptedException {
        Map<Worker, Integer> sent = new HashMap<>();
        synchronized (changed) {
            workers.stream().filter(worker -> kinds.contains(worker.kind)).forEach(it -> sent.put(it, it.sent));
        }
        waitUntil(worker -> !sent.containsKey(worker) || worker.arrived > sent.get(worker));
    }

    static void waitUntil(Predicate<Worker> isSo) throws InterruptedException {
        synchronized (changed) {
            while (!workers.stream().allMatch(isSo)) {
                changed.wait();
            }
        }
    }

    static void print() {
        for (Worker worker : workers) {
            String unknown = printed(worker.unknown);
            worker.keys.forEach(key -> System.out.println("list " + key + " " + worker.sent + " " + unknown));
            if (worker.channel != null) {
                String heard = printed(worker.heard);
                System.out.println("channel " + worker.channel + " " + worker.sent + " " + unknown + " " + heard);
            }
        }
        List<Worker> watchers = workers.stream().filter(worker -> worker.kind.equals("watch")).toList();
        int sent = watchers.stream().mapToInt(worker -> worker.sent).sum();
        int unknown = watchers.stream().mapToInt(worker -> worker.unknown.size()).sum();
        System.out.println("counter " + WATCHED + " " + sent + " " + (sent - unknown));
    }

    static String printed(List<Integer> values) {
        return values.isEmpty() ? "-" : values.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    static class OfJedis implements Client {
        final JedisCluster cluster;
        final String name;

        OfJedis(int port, boolean isThree) {
            RedisProtocol protocol = isThree ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
            DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().protocol(protocol).build();
            GenericObjectPoolConfig<Connection> pool = new GenericObjectPoolConfig<>();
            pool.setMaxTotal(8);
            pool.setFairness(true);
            Set<HostAndPort> nodes = Set.of(new HostAndPort("127.0.0.1", port));
            cluster = new JedisCluster(nodes, config, 5, Duration.ofMillis(500), pool);
            name = cluster.scriptLoad(BOTH, WATCHED);
        }

        @Override
        public void append(String key, String value) {
            cluster.rpush(key, value);
        }

        @Override
        public void pipeline(List<String> keys, String value) {
            try (ClusterPipeline pipeline = cluster.pipelined()) {
                List<Response<Long>> replies = keys.stream().map(key -> pipeline.rpush(key, value)).toList();
                pipeline.sync();
                replies.forEach(Response::get);
            } catch (JedisException exception) {
                // A pipeline follows no slot and learns nothing, but other commands do.
                keys.forEach(cluster::exists);
                throw exception;
            }
        }

        @Override
        public void transaction(List<String> keys, String value) {
            try (Connection connection = owner(keys.get(0)); Transaction transaction = new Transaction(connection)) {
                keys.forEach(key -> transaction.rpush(key, value));
                checked(transaction.exec());
            }
        }

        @Override
        public void watch() {
            List<Object> replies = null;
            while (replies == null) {
                try (Connection connection = owner(WATCHED);
                     Transaction transaction = new Transaction(connection, false)) {
                    transaction.watch(WATCHED);
                    long length = cluster.llen(WATCHED);
                    transaction.multi();
                    transaction.rpush(WATCHED, String.valueOf(length + 1));
                    replies = transaction.exec();
                }
            }
            checked(replies);
        }

        Connection owner(String key) {
            return cluster.getConnectionFromSlot(JedisClusterCRC16.getSlot(key));
        }

        static void checked(List<Object> replies) {
            replies.forEach(reply -> {
                if (reply instanceof JedisException exception) {
                    throw exception;
                }
            });
        }

        @Override
        public void script(List<String> keys, String value) {
            try {
                cluster.evalsha(name, keys, List.of(value));
            } catch (JedisNoScriptException exception) {
                cluster.eval(BOTH, keys, List.of(value));
            }
        }

        @Override
        public void publish(String channel, String value) {
            cluster.publish(channel, value);
        }

        @Override
        public void publishSharded(String channel, String value) {
            cluster.spublish(channel, value);
        }

        @Override
        public void listen(List<String> channels, List<String> sharded) throws InterruptedException {
            CountDownLatch subscribed = new CountDownLatch(channels.size() + sharded.size());
            again(() -> cluster.subscribe(new JedisPubSub() {
                @Override
                public void onSubscribe(String channel, int count) {
                    subscribed.countDown();
                }

                @Override
                public void onMessage(String channel, String message) {
                    hear(channel, message);
                }
            }, channels.toArray(new String[0])));
            // It returns when the slot has left, and leaves it to its callers to follow.
            sharded.forEach(name -> again(() -> cluster.ssubscribe(new JedisShardedPubSub() {
                @Override
                public void onSSubscribe(String channel, int count) {
                    subscribed.countDown();
                }

                @Override
                public void onSMessage(String channel, String message) {
                    hear(channel, message);
                }
            }, name)));
            subscribed.await();
        }

        /** Subscribes again and again, in a thread of its own. */
        static void again(Runnable subscribe) {
            Thread thread = new Thread(() -> {
                while (!isDone) {
                    try {
                        subscribe.run();
                    } catch (JedisException exception) {
                        // Its connection is gone.
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    static class OfLettuce implements Client {
        final RedisClusterClient client;
        final GenericObjectPool<StatefulRedisClusterConnection<String, String>> pool;
        /** MULTI and WATCH need connections that nobody shares. */
        final ThreadLocal<StatefulRedisClusterConnection<String, String>> own;
        final String name;

        OfLettuce(int port, boolean isThree) {
            client = RedisClusterClient.create(RedisURI.create("127.0.0.1", port));
            client.setOptions(ClusterClientOptions.builder()
                .protocolVersion(isThree ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2)
                // Unless it is told otherwise, it waits for a minute for a node that is gone.
                .timeoutOptions(TimeoutOptions.enabled(Duration.ofSeconds(5)))
                .topologyRefreshOptions(ClusterTopologyRefreshOptions.builder()
                    .enableAllAdaptiveRefreshTriggers()
                    .adaptiveRefreshTriggersTimeout(Duration.ofMillis(50))
                    .build())
                .build());
            own = ThreadLocal.withInitial(client::connect);
            name = client.connect().sync().digest(BOTH);
            GenericObjectPoolConfig<StatefulRedisClusterConnection<String, String>> config =
                new GenericObjectPoolConfig<>();
            config.setMaxTotal(3);
            // Otherwise a worker that gives a connection back takes it again at once, and others wait for long.
            config.setFairness(true);
            pool = ConnectionPoolSupport.createGenericObjectPool(client::connect, config);
        }

        interface Use {
            void of(StatefulRedisClusterConnection<String, String> connection) throws Exception;
        }

        void pooled(Use use) throws Exception {
            try (StatefulRedisClusterConnection<String, String> connection = pool.borrowObject()) {
                use.of(connection);
            }
        }

        @Override
        public void append(String key, String value) throws Exception {
            pooled(connection -> connection.sync().rpush(key, value));
        }

        @Override
        public void pipeline(List<String> keys, String value) throws Exception {
            pooled(connection -> {
                List<RedisFuture<Long>> replies =
                    keys.stream().map(key -> connection.async().rpush(key, value)).toList();
                LettuceFutures.awaitAll(Duration.ofSeconds(10), replies.toArray(new RedisFuture[0]));
                for (RedisFuture<Long> reply : replies) {
                    reply.get();
                }
            });
        }

        RedisCommands<String, String> owner(String key) {
            String id = own.get().getPartitions().getPartitionBySlot(SlotHash.getSlot(key)).getNodeId();
            return own.get().getConnection(id).sync();
        }

        @Override
        public void transaction(List<String> keys, String value) {
            RedisCommands<String, String> commands = owner(keys.get(0));
            commands.multi();
            keys.forEach(key -> commands.rpush(key, value));
            commands.exec();
        }

        @Override
        public void watch() {
            RedisCommands<String, String> commands = owner(WATCHED);
            boolean isDiscarded = true;
            while (isDiscarded) {
                commands.watch(WATCHED);
                long length = commands.llen(WATCHED);
                commands.multi();
                commands.rpush(WATCHED, String.valueOf(length + 1));
                isDiscarded = commands.exec().wasDiscarded();
            }
        }

        @Override
        public void script(List<String> keys, String value) throws Exception {
            String[] names = keys.toArray(new String[0]);
            pooled(connection -> {
                try {
                    connection.sync().evalsha(name, ScriptOutputType.INTEGER, names, value);
                } catch (RedisNoScriptException exception) {
                    connection.sync().eval(BOTH, ScriptOutputType.INTEGER, names, value);
                }
            });
        }

        @Override
        public void publish(String channel, String value) throws Exception {
            pooled(connection -> connection.sync().publish(channel, value));
        }

        @Override
        public void publishSharded(String channel, String value) throws Exception {
            pooled(connection -> connection.sync().spublish(channel, value));
        }

        @Override
        public void listen(List<String> channels, List<String> sharded) {
            listener().sync().subscribe(channels.toArray(new String[0]));
            // Each on its own: in RESP2 Lettuce takes a sharded message for the reply to an SSUBSCRIBE that it waits for.
            sharded.forEach(name -> listener().sync().ssubscribe(name));
        }

        StatefulRedisClusterPubSubConnection<String, String> listener() {
            StatefulRedisClusterPubSubConnection<String, String> listener = client.connectPubSub();
            listener.addListener(new RedisClusterPubSubAdapter<>() {
                @Override
                public void message(RedisClusterNode node, String channel, String message) {
                    hear(channel, message);
                }

                @Override
                public void smessage(RedisClusterNode node, String channel, String message) {
                    hear(channel, message);
                }

                @Override
                public void sunsubscribed(RedisClusterNode node, String channel, long count) {
                    follow(listener, channel);
                }
            });
            return listener;
        }

        /** Subscribes again to a channel whose slot has left: Lettuce leaves that to its callers. */
        void follow(StatefulRedisClusterPubSubConnection<String, String> listener, String channel) {
            listener.async().ssubscribe(channel).whenComplete((nothing, failure) -> {
                if (failure != null) {
                    follow(listener, channel);
                }
            });
        }
    }
}
