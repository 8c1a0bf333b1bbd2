package dunlin.embedded;

import dunlin.Dunlin;
import java.util.ArrayList;
import java.util.List;

/**
 * Stands in for {@code redis.embedded.RedisServer} of embedded-redis: a server on a port that the test names.
 *
 * <p>What has no meaning here is not there: executables, listeners for the output, replicas,
 * sentinels and clusters.
 */
public final class RedisServer {
    static final int DEFAULT_PORT = 6379;

    private final int port;
    /** The path of a redis.conf, or null. */
    private final String file;
    private final List<String> settings;
    private Dunlin server;

    public RedisServer() {
        this(DEFAULT_PORT);
    }

    public RedisServer(int port) {
        this(port, null, List.of());
    }

    RedisServer(int port, String file, List<String> settings) {
        this.port = port;
        this.file = file;
        this.settings = settings;
    }

    public static RedisServerBuilder builder() {
        return new RedisServerBuilder();
    }

    public static RedisServerBuilder newRedisServer() {
        return new RedisServerBuilder();
    }

    public synchronized void start() {
        if (isActive()) return;
        List<String> arguments = new ArrayList<>();
        if (file != null) arguments.add(file);
        arguments.addAll(List.of("--port", String.valueOf(port)));
        arguments.addAll(settings);
        server = Dunlin.start(arguments.toArray(String[]::new));
    }

    public synchronized void stop() {
        if (server != null) server.close();
        server = null;
    }

    public synchronized boolean isActive() {
        return server != null;
    }

    public List<Integer> ports() {
        return List.of(port);
    }

    /** The server as one of this package, with a clock to move, faults and a journal; null while it is stopped. */
    public synchronized Dunlin dunlin() {
        return server;
    }
}
