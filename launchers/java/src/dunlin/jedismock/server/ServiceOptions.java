package dunlin.jedismock.server;

import java.util.OptionalInt;

/**
 * Stands in for {@code com.github.fppt.jedismock.server.ServiceOptions} of jedis-mock.
 *
 * <p>There are no interceptors: faults and the journal of {@link dunlin.World} are for what these do.
 */
public final class ServiceOptions {
    /** How many commands run, or a negative number where all do. */
    private final int limit;
    private final boolean isCluster;

    private ServiceOptions(int limit, boolean isCluster) {
        this.limit = limit;
        this.isCluster = isCluster;
    }

    public static ServiceOptions defaultOptions() {
        return new ServiceOptions(-1, false);
    }

    /** So many commands of clients run; each further one only closes its connection. */
    public static ServiceOptions executeOnly(int commands) {
        return new ServiceOptions(commands, false);
    }

    /** The server is a cluster of one node, which has all slots. */
    public ServiceOptions withClusterModeEnabled() {
        return new ServiceOptions(limit, true);
    }

    public boolean isClusterModeEnabled() {
        return isCluster;
    }

    /** After how many commands connections are closed, if they are. */
    public OptionalInt limit() {
        return limit < 0 ? OptionalInt.empty() : OptionalInt.of(limit);
    }
}
