import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dunlin.Dunlin;
import dunlin.DunlinException;
import dunlin.World;
import dunlin.junit.DunlinTest;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Jedis;

/** A world meets nothing of the one before it, and the connections of the launcher may be lost. */
@DunlinTest
class ApartTest {
    @Test
    void aWorldMeetsNothingOfTheOneBefore() {
        for (String secret : List.of("", "right")) {
            try (Dunlin server = Dunlin.start("--requirepass", secret)) {
                for (String left : List.of("MULTI", "SELECT 3", "SUBSCRIBE news", "AUTH bob any", "CLIENT SETNAME bob")) {
                    try (World one = server.world()) {
                        one.call("ACL", "SETUSER", "bob", "on", "nopass", "+@all", "~*");
                        one.call((Object[]) left.split(" "));
                    }
                    assertEquals(1, server.worlds().size(), left);
                    try (World next = server.world()) {
                        next.call("SET", "key", "value");
                        assertEquals("SELECT 0\nSET key value\n", next.dump(), left);
                        assertEquals("default", next.call("ACL", "WHOAMI"), left);
                        assertEquals(null, next.call("CLIENT", "GETNAME"), left);
                    }
                }
            }
        }
    }

    /** Leads connections to a server, until they are cut. */
    private static final class Relay implements AutoCloseable {
        private final ServerSocket door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        private final List<Socket> open = new ArrayList<>();
        private final int target;

        Relay(int target) throws IOException {
            this.target = target;
            start(this::serve);
        }

        String url() {
            return "redis://127.0.0.1:" + door.getLocalPort();
        }

        private void serve() throws IOException {
            while (true) {
                Socket client = door.accept();
                Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
                synchronized (open) {
                    open.addAll(List.of(client, server));
                }
                start(() -> client.getInputStream().transferTo(server.getOutputStream()));
                start(() -> server.getInputStream().transferTo(client.getOutputStream()));
            }
        }

        private interface Work {
            void run() throws IOException;
        }

        private static void start(Work work) {
            Thread thread = new Thread(() -> {
                try {
                    work.run();
                } catch (IOException ignored) {
                    // It was cut.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        void cut() throws IOException {
            synchronized (open) {
                for (Socket each : open) each.close();
                open.clear();
            }
        }

        @Override
        public void close() throws IOException {
            door.close();
            cut();
        }
    }

    @Test
    void aLostConnectionIsReplacedUnlessTheWorldHasEndedWithIt() throws IOException {
        try (Dunlin real = Dunlin.start(); Relay relay = new Relay(real.port())) {
            System.setProperty("dunlin.url", relay.url());
            try (Dunlin server = Dunlin.start(); World world = server.world(); Jedis client = new Jedis("127.0.0.1", world.port())) {
                world.call("SET", "key", "value");
                client.ping();
                server.world().close(); // its connection is idle now
                relay.cut();
                assertEquals("value", world.call("GET", "key"));
                server.world().close();

                client.close();
                relay.cut();
                while (real.worlds().stream().anyMatch(each -> each.containsValue(world.name()))) Thread.onSpinWait();
                for (int round = 0; round < 2; round++) {
                    String lost = assertThrows(DunlinException.class, () -> world.call("SET", "key", "value")).getMessage();
                    assertEquals("the server has closed the connection: it has ended, or the world was dropped", lost);
                }
            } finally {
                System.clearProperty("dunlin.url");
            }
        }
    }

    @Test
    void aCommandWhoseReplyAFaultHasDroppedDoesNotRunAgain(World world) {
        try (Jedis client = new Jedis(world.uri())) {
            client.ping();
            world.fault("dies").command("INCR").times(1).dropAfter();
            assertThrows(DunlinException.class, () -> world.call("INCR", "count"));
            assertEquals("1", world.call("GET", "count"));
        }
    }

    @Test
    void aWorldThatIsClosedIsNotMadeAnew(Dunlin server) {
        World world = server.world();
        world.close();
        for (Runnable use : List.<Runnable>of(world::now, world::dump, world::port, () -> world.call("PING"), world::report)) {
            assertEquals("the world is closed", assertThrows(DunlinException.class, use::run).getMessage());
        }
        assertTrue(server.worlds().stream().noneMatch(each -> each.containsValue(world.name())));
    }
}
