import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dunlin.jedismock.server.ServiceOptions;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.ClientSetInfoConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** The classes that stand in for those of embedded-redis and jedis-mock. */
class AdaptersTest {
    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Test
    void anEmbeddedServerStartsStopsAndStartsAgain() throws IOException {
        int port = freePort();
        var server = new dunlin.embedded.RedisServer(port);
        assertFalse(server.isActive());
        for (int round = 0; round < 2; round++) {
            server.start();
            server.start();
            assertTrue(server.isActive());
            try (Jedis jedis = new Jedis("localhost", port)) {
                assertEquals(0, jedis.dbSize());
                jedis.setex("session", 60, "ann");
                server.dunlin().advance(Duration.ofMinutes(1));
                assertFalse(jedis.exists("session"));
                jedis.set("key", "value");
            }
            server.stop();
            server.stop();
        }
        assertEquals(List.of(port), server.ports());
        assertFalse(server.isActive());
    }

    @Test
    void anEmbeddedServerHasItsSettings() throws IOException {
        int port = freePort();
        var server = new dunlin.embedded.RedisServerBuilder()
            .port(port)
            .bind("127.0.0.1")
            .setting("maxmemory 128mb")
            .setting(" save \"\" ")
            .build();
        server.start();
        try (Jedis jedis = new Jedis("127.0.0.1", port)) {
            assertEquals("134217728", jedis.configGet("maxmemory").get("maxmemory"));
            assertEquals("", jedis.configGet("save").get("save"));
        } finally {
            server.stop();
        }
    }

    @Test
    void aBuilderOfEmbeddedServersForgetsWhatWasSet() throws IOException {
        int port = freePort();
        var builder = new dunlin.embedded.RedisServerBuilder().port(1).configFile("none.conf").setting("maxmemory 1mb");
        builder.reset();
        assertEquals(List.of(6379), builder.build().ports());
        var server = builder.port(port).onShutdownForceStop(true).build();
        server.start();
        try (Jedis jedis = new Jedis("127.0.0.1", port)) {
            assertEquals("0", jedis.configGet("maxmemory").get("maxmemory"));
        } finally {
            server.stop();
        }
    }

    @Test
    void theFileOfAnEmbeddedServerGoesAfterItsPortAndSettings(@TempDir Path folder) throws IOException {
        String lines = "port 1\nmaxmemory 1mb\nmaxmemory-policy allkeys-lru\n";
        Path file = Files.writeString(folder.resolve("redis.conf"), lines);
        int port = freePort();
        var server = dunlin.embedded.RedisServer.newRedisServer()
            .settingIf(false, "maxmemory 3mb")
            .settingIf(true, "maxmemory 2mb")
            .configFile(file)
            .port(port)
            .build();
        server.start();
        try (Jedis jedis = new Jedis("127.0.0.1", port)) {
            assertEquals("2097152", jedis.configGet("maxmemory").get("maxmemory"));
            assertEquals("allkeys-lru", jedis.configGet("maxmemory-policy").get("maxmemory-policy"));
        } finally {
            server.stop();
        }
    }

    @Test
    void aMockIsAServer() throws IOException {
        var server = dunlin.jedismock.RedisServer.newRedisServer().start();
        assertThrows(IllegalStateException.class, server::start);
        try (Jedis jedis = new Jedis(server.getHost(), server.getBindPort())) {
            jedis.set("key", "value");
            assertEquals("value", server.dunlin().call("GET", "key"));
            assertTrue(server.isRunning());
            var other = dunlin.jedismock.RedisServer.newRedisServer(server.getBindPort(), InetAddress.getLoopbackAddress());
            assertThrows(IOException.class, other::start);
        }
        server.stop();
        assertFalse(server.isRunning());
    }

    @Test
    void aMockHasItsDataAgainAfterAStop() throws IOException {
        var server = dunlin.jedismock.RedisServer.newRedisServer().start();
        server.dunlin().call("SET", "key", "value");
        server.dunlin().call("SET", "session", "ann", "EX", 60);
        server.dunlin().advance(Duration.ofSeconds(59));
        server.stop();
        server.start();
        try (Jedis jedis = new Jedis(server.getHost(), server.getBindPort())) {
            assertEquals("value", jedis.get("key"));
            assertEquals("ann", jedis.get("session"));
            server.dunlin().advance(Duration.ofSeconds(1));
            assertFalse(jedis.exists("session"));
        } finally {
            server.stop();
        }
    }

    @Test
    void aMockThatHasEndedByItselfIsEmptyWhenItStartsAgain() throws IOException {
        var server = dunlin.jedismock.RedisServer.newRedisServer().start();
        server.dunlin().call("SET", "key", "value");
        ProcessHandle.of(server.dunlin().pid()).orElseThrow().destroyForcibly();
        ProcessHandle.of(server.dunlin().pid()).ifPresent(each -> each.onExit().join());
        server.stop();
        assertEquals("", server.start().dunlin().dump());
        server.stop();
    }

    @Test
    void aMockHasTheTimeOfTheClockThatWasSet() throws IOException {
        Instant noon = Instant.parse("2030-07-01T12:00:00Z");
        Clock fixed = Clock.fixed(noon, ZoneOffset.UTC);
        var server = dunlin.jedismock.RedisServer.newRedisServer().setClock(fixed).start();
        assertSame(fixed, server.getClock());
        assertEquals(noon, server.dunlin().now());
        try (Jedis jedis = new Jedis(server.getHost(), server.getBindPort())) {
            jedis.setex("session", 60, "ann");
            server.setClock(Clock.offset(fixed, Duration.ofSeconds(59)));
            assertTrue(jedis.exists("session"));
            server.setClock(Clock.fixed(noon.plusSeconds(60), ZoneOffset.UTC));
            assertFalse(jedis.exists("session"));
            assertEquals(String.valueOf(noon.plusSeconds(60).getEpochSecond()), jedis.time().get(0));
            server.setClock(Clock.offset(Clock.systemUTC(), Duration.ofDays(1)));
            Instant before = server.dunlin().now();
            while (!server.dunlin().now().isAfter(before)) Thread.onSpinWait(); // it goes on
        } finally {
            server.stop();
        }
    }

    @Test
    void theClockOfAMockIsThatOfItsServer() throws IOException {
        var server = dunlin.jedismock.RedisServer.newRedisServer().start();
        server.dunlin().freeze();
        server.dunlin().advance(Duration.ofDays(7));
        assertEquals(server.dunlin().now(), server.getClock().instant());
        server.stop();
    }

    @Test
    void aMockExecutesOnlySoManyCommands() throws IOException {
        var server = dunlin.jedismock.RedisServer.newRedisServer().setOptions(ServiceOptions.executeOnly(3)).start();
        assertEquals(OptionalInt.of(3), server.options().limit());
        var client = DefaultJedisClientConfig.builder().clientSetInfoConfig(ClientSetInfoConfig.DISABLED).build();
        var address = new HostAndPort(server.getHost(), server.getBindPort());
        try (Jedis jedis = new Jedis(address, client)) {
            for (int each = 0; each < 3; each++) assertEquals("OK", jedis.set("key", "value"));
            assertThrows(JedisConnectionException.class, () -> jedis.set("key", "value"));
        }
        for (int each = 0; each < 2; each++) {
            try (Jedis jedis = new Jedis(address, client)) {
                assertThrows(JedisConnectionException.class, () -> jedis.get("key"));
            }
        }
        server.setOptions(ServiceOptions.defaultOptions());
        try (Jedis jedis = new Jedis(address, client)) {
            assertEquals("value", jedis.get("key"));
        }
        server.stop();
    }

    @Test
    void aMockCanBeAClusterOfOneNode() throws IOException {
        var options = ServiceOptions.defaultOptions().withClusterModeEnabled();
        assertTrue(options.isClusterModeEnabled());
        var server = dunlin.jedismock.RedisServer.newRedisServer().setOptions(options).start();
        for (int round = 0; round < 2; round++) {
            try (JedisCluster cluster = new JedisCluster(new HostAndPort(server.getHost(), server.getBindPort()))) {
                for (String key : List.of("a", "b", "c")) assertEquals(round, cluster.exists(key) ? 1 : 0);
                for (String key : List.of("a", "b", "c")) cluster.set(key, "value");
            }
            server.stop();
            server.start();
        }
        server.stop();
    }
}
