import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;

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
        var server = dunlin.embedded.RedisServer.newRedisServer()
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
}
