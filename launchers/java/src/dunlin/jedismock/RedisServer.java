package dunlin.jedismock;

import dunlin.Dunlin;
import dunlin.DunlinException;
import dunlin.jedismock.server.ServiceOptions;
import java.io.IOException;
import java.net.InetAddress;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Stands in for {@code com.github.fppt.jedismock.RedisServer} of jedis-mock: a server on a port of its own, whose data is
 * there again when it starts after a stop.
 *
 * <p>Its clock is moved, and its commands are made to fail, by {@link #dunlin}.
 */
public final class RedisServer {
    private static final String LIMIT = "execute-only";

    private final int port;
    private final InetAddress address;
    private ServiceOptions options = ServiceOptions.defaultOptions();
    private Clock clock = new ServerClock(ZoneId.systemDefault());
    private Dunlin server;
    /** What a stopped server had, for the next start. */
    private String data = "";
    private Instant time = Instant.EPOCH;

    public RedisServer() {
        this(0);
    }

    public RedisServer(int port) {
        this(port, null);
    }

    public RedisServer(int port, InetAddress address) {
        this.port = port;
        this.address = address;
    }

    public static RedisServer newRedisServer() {
        return new RedisServer();
    }

    public static RedisServer newRedisServer(int port) {
        return new RedisServer(port);
    }

    public static RedisServer newRedisServer(int port, InetAddress address) {
        return new RedisServer(port, address);
    }

    public synchronized RedisServer start() throws IOException {
        if (server != null) throw new IllegalStateException("it has started already");
        List<String> arguments = new ArrayList<>();
        // Not without arguments: that could be a handle to the server that DUNLIN_URL names.
        arguments.addAll(port == 0 ? List.of("--free-port", "yes") : List.of("--port", String.valueOf(port)));
        if (address != null) arguments.addAll(List.of("--bind", address.getHostAddress()));
        if (options.isClusterModeEnabled()) arguments.addAll(List.of("--cluster", "1"));
        try {
            server = Dunlin.start(arguments.toArray(String[]::new));
            goOn();
        } catch (DunlinException error) {
            if (server != null) server.close();
            server = null;
            throw new IOException(error.getMessage(), error);
        }
        return this;
    }

    /** Gives a server that has just started what the one before it had. */
    private void goOn() {
        if (time.isAfter(server.now())) server.setTime(time);
        if (!data.isEmpty()) server.load(data);
        followClock();
        limitCommands();
    }

    public synchronized void stop() throws IOException {
        try {
            data = dunlin().dump();
            time = server.now();
        } catch (DunlinException error) {
            data = ""; // it has ended by itself
        }
        server.close();
        server = null;
    }

    /** Cluster mode begins with the next start. */
    public synchronized RedisServer setOptions(ServiceOptions given) {
        options = Objects.requireNonNull(given);
        if (server != null) limitCommands();
        return this;
    }

    public synchronized ServiceOptions options() {
        return options;
    }

    private void limitCommands() {
        if (server.faults().stream().anyMatch(each -> each.containsValue(LIMIT))) server.removeFault(LIMIT);
        options.limit()
            .ifPresent(commands -> server.fault(LIMIT).nth(commands + 1).times(Integer.MAX_VALUE).dropBefore());
    }

    /**
     * Sets the server's clock to the time of another one. It goes on from there if that is a clock of the system, and
     * otherwise stands still; when a test has moved its clock, it calls this again, or moves the server's by
     * {@link #dunlin}.
     */
    public synchronized RedisServer setClock(Clock given) {
        clock = Objects.requireNonNull(given);
        if (server != null) followClock();
        return this;
    }

    /** The clock that was set, or one that shows the time of the server. */
    public synchronized Clock getClock() {
        return clock;
    }

    private void followClock() {
        if (clock instanceof ServerClock) return;
        Instant moment = clock.instant();
        boolean isOfJava = clock.getClass().getName().startsWith("java.time.");
        boolean stands = !isOfJava || clock.equals(Clock.fixed(moment, clock.getZone()));
        if (stands) {
            server.freeze();
        } else {
            server.resume();
        }
        server.setTime(moment);
    }

    public synchronized boolean isRunning() {
        return server != null;
    }

    public String getHost() {
        return dunlin().host();
    }

    public int getBindPort() {
        return dunlin().port();
    }

    /** The server as one of this package, with a clock to move, faults and a journal. */
    public synchronized Dunlin dunlin() {
        if (server == null) throw new NullPointerException("it has not started");
        return server;
    }

    /** Shows the time of the server, and that of the system while there is none. */
    private final class ServerClock extends Clock {
        private final ZoneId zone;

        ServerClock(ZoneId zone) {
            this.zone = zone;
        }

        @Override
        public ZoneId getZone() {
            return zone;
        }

        @Override
        public Clock withZone(ZoneId other) {
            return new ServerClock(other);
        }

        @Override
        public Instant instant() {
            synchronized (RedisServer.this) {
                return server == null ? Instant.now() : server.now();
            }
        }
    }
}
