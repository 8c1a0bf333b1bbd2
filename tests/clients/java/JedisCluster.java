// A Java backend on a cluster, with Jedis, while slots move: `java -cp ... JedisCluster.java PORT PROTOCOL`.

import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Response;
import redis.clients.jedis.RedisProtocol;

public class JedisCluster {
    static final int COUNTERS = 20;
    static final int ROUNDS = 40;

    public static void main(String[] arguments) throws Exception {
        HostAndPort place = new HostAndPort("127.0.0.1", Integer.parseInt(arguments[0]));
        RedisProtocol protocol = arguments[1].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().protocol(protocol).build();
        try (redis.clients.jedis.JedisCluster cluster = new redis.clients.jedis.JedisCluster(Set.of(place), config)) {
            expect("all nodes are known", cluster.getClusterNodes().size() % 3, 0);
            countersLoseNothing(cluster);
            whatBelongsTogetherHasOneTag(cluster);
            everyNodeHearsWhatIsPublished(cluster);
        }
        System.out.println("Jedis is content");
    }

    static void expect(String what, Object found, Object expected) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": " + found + " instead of " + expected);
        }
    }

    static void countersLoseNothing(redis.clients.jedis.JedisCluster cluster) {
        for (int round = 0; round < ROUNDS; round++) {
            for (int number = 0; number < COUNTERS; number++) {
                cluster.incr("counter:" + number);
            }
        }
        for (int number = 0; number < COUNTERS; number++) {
            expect("counter", cluster.get("counter:" + number), String.valueOf(ROUNDS));
        }
    }

    static void whatBelongsTogetherHasOneTag(redis.clients.jedis.JedisCluster cluster) {
        String apples = "{cart:7}:apples";
        String pears = "{cart:7}:pears";
        expect("reply", cluster.mset(apples, "1", pears, "2"), "OK");
        Object counts = cluster.eval(
            "return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}", List.of(apples, pears), List.of());
        expect("counts", counts, List.of(0L, 3L));
        expect("values", cluster.mget(apples, pears), List.of("0", "3"));
    }

    static void everyNodeHearsWhatIsPublished(redis.clients.jedis.JedisCluster cluster) throws Exception {
        CompletableFuture<String> heard = new CompletableFuture<>();
        CompletableFuture<Void> listens = new CompletableFuture<>();
        JedisPubSub listener = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                listens.complete(null);
            }

            @Override
            public void onMessage(String channel, String message) {
                heard.complete(message);
                unsubscribe();
            }
        };
        Thread thread = new Thread(() -> cluster.subscribe(listener, "news"));
        thread.start();
        listens.get(5, TimeUnit.SECONDS);
        cluster.publish("news", "hello");
        expect("message", heard.get(5, TimeUnit.SECONDS), "hello");
        thread.join();
    }
}
