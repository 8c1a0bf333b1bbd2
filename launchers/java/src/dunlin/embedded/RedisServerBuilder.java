package dunlin.embedded;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Stands in for {@code RedisServerBuilder} of embedded-redis: a port and the lines of a redis.conf. */
public final class RedisServerBuilder {
    private int port = RedisServer.DEFAULT_PORT;
    private String file;
    private final List<String> settings = new ArrayList<>();

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

    /** Changes nothing: a server ends with {@code stop}, or with the process, however that ends. */
    public RedisServerBuilder onShutdownForceStop(boolean isForced) {
        return this;
    }

    /** Forgets all that was set. */
    public void reset() {
        port = RedisServer.DEFAULT_PORT;
        file = null;
        settings.clear();
    }

    public RedisServer build() {
        return new RedisServer(port, file, List.copyOf(settings));
    }
}
