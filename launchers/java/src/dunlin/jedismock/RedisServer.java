package dunlin.jedismock;

import dunlin.Dunlin;
import dunlin.DunlinException;
import java.io.IOException;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;

/**
 * Stands in for {@code com.github.fppt.jedismock.RedisServer} of jedis-mock: a server on a port of its own.
 *
 * <p>Its clock is moved, and its commands are made to fail, by {@link #dunlin}.
 */
public final class RedisServer {
    private final int port;
    private final InetAddress address;
    private Dunlin server;

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
        try {
            server = Dunlin.start(arguments.toArray(String[]::new));
        } catch (DunlinException error) {
            throw new IOException(error.getMessage(), error);
        }
        return this;
    }

    public synchronized void stop() throws IOException {
        dunlin().close();
        server = null;
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
}
