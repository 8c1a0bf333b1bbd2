import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static redis.clients.jedis.args.ListDirection.LEFT;

import dunlin.CommandException;
import dunlin.Dunlin;
import dunlin.DunlinException;
import dunlin.Fault;
import dunlin.Level;
import dunlin.WaitException;
import dunlin.World;
import dunlin.junit.DunlinTest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** What a world does. */
@DunlinTest
class WorldTest {
    @Test
    void worldsDoNotSeeEachOther(World one, Dunlin server) {
        try (World two = server.world(); Jedis first = new Jedis(one.uri()); Jedis second = new Jedis(two.uri())) {
            first.set("key", "value");
            two.call("FLUSHALL");
            assertEquals(null, second.get("key"));
            assertEquals("value", first.get("key"));
            try (Jedis byPort = new Jedis(one.host(), one.port())) {
                assertEquals("value", byPort.get("key"));
            }
        }
    }

    @Test
    void channelsScriptsAndClocksOfWorldsAreApart(World one, Dunlin server) {
        try (World other = server.world(); Jedis first = new Jedis(one.uri()); Jedis listener = new Jedis(other.uri())) {
            List<String> heard = new CopyOnWriteArrayList<>();
            var subscriber = CompletableFuture.runAsync(() -> listener.subscribe(new JedisPubSub() {
                @Override
                public void onMessage(String channel, String message) {
                    heard.add(message);
                    unsubscribe();
                }
            }, "news"));
            other.waitForSubscribers("news", 1);
            assertEquals(0, first.publish("news", "of the one"));
            assertEquals(1L, other.call("PUBLISH", "news", "of the other"));
            subscriber.join();
            assertEquals(List.of("of the other"), heard);

            String digest = first.scriptLoad("return 1");
            assertEquals(List.of(1L), one.call("SCRIPT", "EXISTS", digest));
            assertEquals(List.of(0L), other.call("SCRIPT", "EXISTS", digest));

            one.freeze();
            Instant moment = other.freeze();
            one.advance(Duration.ofDays(1));
            assertEquals(moment, other.now());
        }
    }

    @Test
    void whatIsDoneToAServerIsDoneToOneWorldAlone(World other, Dunlin server) {
        other.call("SET", "key", "value");
        try (World emptied = server.world(); World set = server.world(); World ended = server.world();
            Jedis last = new Jedis(ended.uri())) {
            emptied.call("FLUSHALL");
            set.call("CONFIG", "SET", "maxmemory", "10mb");
            last.sendCommand(Protocol.Command.PING);
            assertThrows(JedisConnectionException.class, () -> last.sendCommand(Protocol.Command.SHUTDOWN, "NOSAVE"));
        }
        assertEquals("value", other.call("GET", "key"));
        assertEquals(List.of("maxmemory", "0"), other.call("CONFIG", "GET", "maxmemory"));
        assertEquals("PONG", server.call("PING"));
    }

    @Test
    void aWorldOfAClusterIsReachedByItsUrlAlone() {
        try (Dunlin server = Dunlin.start("--cluster", "3"); World world = server.world()) {
            assertTrue(world.isCluster() && server.isCluster());
            var config = DefaultJedisClientConfig.builder().user(world.username()).password(world.password()).build();
            var node = new HostAndPort(world.host(), server.port());
            try (JedisCluster cluster = new JedisCluster(Set.of(node), config)) {
                for (String key : List.of("a", "b", "c")) assertEquals("OK", cluster.set(key, "value"));
            }
            assertEquals(0L, server.call("DBSIZE"));
            String refusal = assertThrows(DunlinException.class, world::port).getMessage();
            assertTrue(refusal.startsWith("a world of a cluster has no port of its own: give the client the url()"), refusal);
        }
    }

    @Test
    void twoHundredWorldsAtOnceHaveTheirOwnData(Dunlin server) {
        List<World> worlds = new ArrayList<>();
        for (int each = 0; each < 200; each++) worlds.add(server.world());
        worlds.forEach(world -> world.call("SET", "name", world.name()));
        worlds.forEach(world -> assertEquals(world.name(), world.call("GET", "name")));
        worlds.forEach(World::close);
        for (World world : worlds) {
            assertTrue(server.worlds().stream().noneMatch(each -> each.containsValue(world.name())), "it is gone");
        }
    }

    @Test
    void aWorldKeepsItsDataWhileThePoolIsEmptyAndLosesItAtItsEnd(World world, Dunlin server) {
        try (World other = server.world("named")) {
            try (Jedis jedis = new Jedis(other.uri())) {
                jedis.set("key", "value");
            }
            try (Jedis jedis = new Jedis(other.uri())) {
                assertEquals("value", jedis.get("key"));
                other.close();
                other.close();
                assertThrows(JedisConnectionException.class, () -> jedis.get("key"));
            }
        }
    }

    @Test
    void theClockMoves(World world) {
        Instant noon = Instant.parse("2026-07-01T12:00:00Z");
        world.freeze();
        assertEquals(noon, world.setTime(noon));
        world.call("SET", "lock", "worker", "PX", 10_000);
        assertEquals(noon.plusMillis(9_999), world.advance(Duration.ofMillis(9_999)));
        assertEquals(1L, world.call("EXISTS", "lock"));
        assertEquals(Optional.of(noon.plusSeconds(10)), world.advanceToNext());
        assertEquals(0L, world.call("EXISTS", "lock"));
        assertEquals(Optional.empty(), world.advanceToNext());
        world.speed(60);
        world.speed(0.5);
        world.resume();
        assertTrue(!world.now().isBefore(noon.plusSeconds(10)));
        var error = assertThrows(IllegalArgumentException.class, () -> world.advance(Duration.ofNanos(1)));
        assertTrue(error.getMessage().contains("whole milliseconds"));
    }

    @Test
    void theSameSeedDrawsTheSame(World world) {
        world.call("SADD", "tickets", "ann", "ben", "cleo", "dan", "eve", "finn");
        world.seed(7);
        Object drawn = world.call("SRANDMEMBER", "tickets", 3);
        world.seed(7);
        assertEquals(drawn, world.call("SRANDMEMBER", "tickets", 3));
        assertTrue(world.report().contains("DUNLIN_SEED=7 repeats it"), world.report());
    }

    @Test
    void stateIsKeptComparedAndRolledBack(World world, Dunlin server, @TempDir Path folder) throws Exception {
        world.load("SET stock 3\nSADD open a b");
        world.snapshot("fixture");
        world.call("DECR", "stock");
        assertEquals("- SET stock 3\n+ SET stock 2\n", world.diff("SET stock 3\nSADD open a b"));
        var failure = assertThrows(AssertionError.class, () -> world.assertDiff("SET stock 3\nSADD open a b"));
        assertTrue(failure.getMessage().contains("+ SET stock 2"), failure::getMessage);
        assertEquals(List.of("fixture"), world.snapshots());
        world.rollback("fixture");
        world.assertDiff("SADD open a b\nSET stock 3");
        world.dropSnapshot("fixture");
        Path file = Files.writeString(folder.resolve("fixture.txt"), world.dump());
        try (World other = server.world()) {
            other.load(file);
            assertEquals("", other.diff(file) + other.diff(world));
        }
    }

    @Test
    void aTemplateIsTheStartOfWorlds() {
        try (Dunlin server = Dunlin.start()) {
            server.call("SET", "stock", 3);
            server.makeTemplate();
            try (World world = server.world()) {
                assertEquals("3", world.call("GET", "stock"));
            }
            server.dropTemplate();
            try (World world = server.world()) {
                assertEquals("", world.diff(""));
            }
        }
    }

    @Test
    void faultsStrike(World world) {
        world.fault("dies").command("LMOVE").key("queue:*").times(1).dropAfter();
        world.call("RPUSH", "queue:1", "job");
        try (Jedis jedis = new Jedis(world.uri())) {
            assertThrows(JedisConnectionException.class, () -> jedis.lmove("queue:1", "claimed", LEFT, LEFT));
        }
        assertEquals(1L, world.call("LLEN", "claimed"));
        world.waitUntilFired("dies", 1);
        world.fault("later").command("GET").error("TRYAGAIN later");
        assertEquals("TRYAGAIN later",
            assertThrows(CommandException.class, () -> world.call("GET", "key")).getMessage());
        assertEquals(2, world.faults().size());
        world.removeFault("later");
        world.clearFaults();
        assertEquals(List.of(), world.faults());
        world.fault("rare").percent(0.5).nth(3).client("worker").moved(7, "127.0.0.1:1");
        world.fault("slow").command("GET").delay(Duration.ofMillis(1));
        world.fault("full").command("SET").oom();
        var refused = assertThrows(CommandException.class, () -> world.call("SET", "a", "b"));
        assertTrue(refused.getMessage().startsWith("OOM"), refused::getMessage);
        world.clearFaults();
        Map<String, Consumer<Fault>> ofClusters = Map.of("ASK 7 127.0.0.1:1", fault -> fault.ask(7, "127.0.0.1:1"),
            "CLUSTERDOWN", Fault::clusterdown, "TRYAGAIN", Fault::tryagain, "CROSSSLOT", Fault::crossslot);
        ofClusters.forEach((error, failure) -> {
            failure.accept(world.fault("cluster").command("MSET"));
            var of = assertThrows(CommandException.class, () -> world.call("MSET", "a", "b", "c", "d"));
            assertTrue(of.getMessage().startsWith(error), of::getMessage);
        });
    }

    @Test
    void theJournalIsReadAndChecked(World world) {
        world.call("HSET", "cart:ann", "apple", 1);
        world.call("GET", "session");
        assertThrows(CommandException.class, () -> world.call("INCR", "cart:ann"));
        world.journal().command("HSET").key("cart:*").expectExactly(1);
        world.journal().command("GET").expectAtMost(1);
        world.journal().expectAtLeast(3);
        world.journal().command("KEYS").expectNone();
        assertEquals(1, world.journal().errors().count());
        assertEquals(List.of("GET", "session"), world.journal().command("GET").entries().get(0).command());
        var failure = assertThrows(AssertionError.class, () -> world.journal().command("HSET").expectExactly(2));
        assertTrue(failure.getMessage().startsWith("expected ") && failure.getMessage().contains("cart:ann"),
            failure::getMessage);
        assertThrows(CommandException.class, () -> world.journal().command("KEYZ").expectNone());
        assertTrue(world.journal().export().contains("HSET cart:ann apple 1"), world.journal()::export);
        world.journal().clear();
        world.journal().expectNone();
        world.journal().stop();
        world.journal().start();
    }

    @Test
    void strictModeFinds(World world) {
        world.strict()
            .set(Level.ERROR)
            .set("endless-waits", Level.WARN)
            .set("keys-command", Level.ERROR, 5)
            .allow("ALL", "seen:x");
        world.call("SADD", "seen:x", "event");
        world.call("EXPIRE", "seen:x", 60);
        world.strict().check();
        world.call("SADD", "seen:y", "event");
        assertThrows(CommandException.class, () -> world.call("EXPIRE", "seen:y", 60));
        var failure = assertThrows(AssertionError.class, () -> world.strict().check());
        assertTrue(failure.getMessage().contains("late-expire"), failure::getMessage);
        assertTrue(world.strict().findings().stream().anyMatch(each -> each.rule().equals("late-expire")));
        assertTrue(world.report().contains("strict late-expire: "), world::report);
        world.strict().clear();
        world.call("DEL", "seen:y");
        world.strict().check();
    }

    @Test
    void waitsEndAsSoonAsTheyCan(World world) {
        try (Jedis worker = new Jedis(world.uri())) {
            world.freeze();
            var job = CompletableFuture.supplyAsync(() -> worker.blpop(5, "queue"));
            world.waitUntilBlocked("queue");
            world.waitForClients(1);
            // While one thread waits, another moves the clock.
            var subscribed = CompletableFuture.runAsync(() -> world.waitForSubscribers("news", 1));
            world.advance(Duration.ofSeconds(1));
            world.call("RPUSH", "queue", "job");
            assertEquals(List.of("queue", "job"), job.join());
            world.journal().command("BLPOP").waitFor(1, Duration.ofSeconds(5));
            subscribed.cancel(true);
            world.advance(Duration.ofSeconds(5));
            assertThrows(RuntimeException.class, subscribed::join);
        }
    }

    @Test
    void aWaitInVainSaysSo(World world) {
        world.call("SET", "key", "value");
        for (int round = 0; round < 2; round++) {
            var late = assertThrows(WaitException.class, () -> world.waitUntilBlocked("queue", 1, Duration.ofMillis(5)));
            assertEquals("waited 5 ms in vain for [BLOCKED, queue, 1]", late.getMessage());
            world.freeze();
        }
        assertEquals("value", world.call("GET", "key"));
    }

    @Test
    void noMoveOfTheClockEndsAWait(World world) {
        var waiting = CompletableFuture.runAsync(() -> world.waitUntilBlocked("queue", 1, Duration.ofMinutes(1)));
        while (!String.valueOf(world.call("CLIENT", "LIST")).contains(" cmd=dunlin|wait")) Thread.onSpinWait();
        world.speed(1000);
        world.advance(Duration.ofHours(1));
        try (Jedis worker = new Jedis(world.uri())) {
            CompletableFuture.runAsync(() -> worker.blpop(0, "queue"));
            waiting.join();
        }
    }
}
