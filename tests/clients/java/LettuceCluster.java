// A Java backend on a cluster, with Lettuce, while slots move: `java -cp ... LettuceCluster.java PORT PROTOCOL`.

import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.async.RedisAdvancedClusterAsyncCommands;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.cluster.pubsub.StatefulRedisClusterPubSubConnection;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

public class LettuceCluster {
    static final int COUNTERS = 20;
    static final int ROUNDS = 40;

    public static void main(String[] arguments) throws Exception {
        RedisClusterClient client =
            RedisClusterClient.create(RedisURI.create("127.0.0.1", Integer.parseInt(arguments[0])));
        ProtocolVersion protocol = arguments[1].equals("3") ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2;
        client.setOptions(ClusterClientOptions.builder().protocolVersion(protocol).build());
        StatefulRedisClusterConnection<String, String> connection = client.connect();
        expect("all nodes are known", client.getPartitions().size() % 3, 0);
        countersLoseNothing(connection.async());
        whatBelongsTogetherHasOneTag(connection.sync());
        everyNodeHearsWhatIsPublished(client, connection.sync());
        client.shutdown();
        System.out.println("Lettuce is content");
    }

    static void expect(String what, Object found, Object expected) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": " + found + " instead of " + expected);
        }
    }

    static void countersLoseNothing(RedisAdvancedClusterAsyncCommands<String, String> commands) throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            List<RedisFuture<Long>> replies = new ArrayList<>();
            for (int number = 0; number < COUNTERS; number++) {
                replies.add(commands.incr("counter:" + number));
            }
            LettuceFutures.awaitAll(Duration.ofSeconds(10), replies.toArray(new RedisFuture[0]));
            for (RedisFuture<Long> reply : replies) {
                reply.get();
            }
        }
        for (int number = 0; number < COUNTERS; number++) {
            expect("counter", commands.get("counter:" + number).get(), String.valueOf(ROUNDS));
        }
    }

    static void whatBelongsTogetherHasOneTag(RedisAdvancedClusterCommands<String, String> commands) {
        String apples = "{cart:7}:apples";
        String pears = "{cart:7}:pears";
        expect("reply", commands.mset(Map.of(apples, "1", pears, "2")), "OK");
        List<Long> counts = commands.eval(
            "return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}", ScriptOutputType.MULTI, apples, pears);
        expect("counts", counts, List.of(0L, 3L));
        // Lettuce splits by slots what may be split.
        commands.mset(Map.of("a", "1", "b", "2"));
        expect("removed", commands.del("a", "b"), 2L);
        expect("size", commands.dbsize(), COUNTERS + 2L);
    }

    static void everyNodeHearsWhatIsPublished(
        RedisClusterClient client, RedisAdvancedClusterCommands<String, String> commands) throws Exception {
        StatefulRedisClusterPubSubConnection<String, String> listener = client.connectPubSub();
        CompletableFuture<String> heard = new CompletableFuture<>();
        listener.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String message) {
                heard.complete(message);
            }
        });
        listener.sync().subscribe("news");
        commands.publish("news", "hello");
        expect("message", heard.get(5, TimeUnit.SECONDS), "hello");
    }
}
