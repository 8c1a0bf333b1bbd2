package dunlin.embedded;

import dunlin.Dunlin;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Stands in for {@code redis.embedded.RedisServer} of embedded-redis: a server on a port that the test names.
 *
 * <p>What has no meaning here is not there: executables, listeners for the output, replicas,
 * sentinels and clusters.
 */
public final class RedisServer {
    private static final int DEFAULT_PORT = 6379;

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

    private RedisServer(int port, String file, List<String> settings) {
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

    /** A port and the lines of a redis.conf. */
    public static final class RedisServerBuilder {
        private int port = DEFAULT_PORT;
        private String file;
        private final List<String> settings = new ArrayList<>();

        RedisServerBuilder() {}

        public RedisServerBuilder port(int port) {
            this.port = port;
            return this;
        }

        public RedisServerBuilder bind(String address) {
            settings.addAll(List.of("--bind", address));
            return this;
        }

        public RedisServerBuilder settingIf(boolean isWanted, String line) {
            return isWanted ? setting(line) : this;
        }

        /** The file is read first, so that the port and the settings go before its lines. */
        public RedisServerBuilder configFile(String path) {
            file = path;
            return this;
        }

        public RedisServerBuilder configFile(Path path) {
            return configFile(path.toString());
        }

        /** A line of a redis.conf: {@code maxmemory 128M}. */
        public RedisServerBuilder setting(String line) {
            // As one word: the server splits it as a line of its file, with quotes.
            settings.add("--" + line.trim());
            return this;
        }

        public RedisServer build() {
            return new RedisServer(port, file, List.copyOf(settings));
        }
    }
}
