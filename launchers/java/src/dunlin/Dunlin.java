package dunlin;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A server of its own, on a free port; as a world it is the one that clients without a user name are in.
 *
 * <p>It ends with {@link #close}, or with this process, however that ends.
 */
public final class Dunlin extends World {
    private static Dunlin shared;

    private final Child child;
    private final String ownName;

    private Dunlin(Child child, Address address) {
        super(null, "default", new Pool(address, List.of()));
        this.child = child;
        this.ownName = child == null ? foundName() : "default";
    }

    /**
     * Starts a server, with arguments as on its command line: {@code start("--maxmemory", "10mb")}.
     *
     * <p>Where DUNLIN_URL names a server that runs, one without arguments is a handle to that: nothing starts, and
     * nothing ends with it.
     */
    public static Dunlin start(String... arguments) {
        String given = arguments.length == 0 ? Setting.of("DUNLIN_URL") : null;
        if (given != null) return new Dunlin(null, Address.of(given));
        inBackground("dunlin-prepare", () -> {
            ProcessHandle.current();
            Connection.prepare();
        });
        Child child = new Child(List.of(arguments));
        try {
            return new Dunlin(child, Address.of(child.url));
        } catch (RuntimeException error) {
            child.end();
            throw error;
        }
    }

    /** The server that all tests of this process share; the first call starts it. */
    public static synchronized Dunlin shared() {
        if (shared == null || shared.isClosed()) shared = start();
        return shared;
    }

    /**
     * Starts the server that all tests share in the background, so that the first test does not wait for it. Should it
     * fail, {@link #shared} tries again, and says why.
     */
    public static void startAhead() {
        inBackground("dunlin-start", () -> {
            try {
                shared().call("PING"); // whose connection makes the first world
            } catch (RuntimeException ignored) {
                // Whoever needs the server finds out.
            }
        });
    }

    /** Whether DUNLIN_AHEAD asks for a server before it is known whether a test needs one. */
    public static boolean isStartedAhead() {
        return "true".equals(Setting.of("DUNLIN_AHEAD"));
    }

    /** Whether a server may start before a test asks for it: unless DUNLIN_AHEAD is {@code false}. */
    public static boolean mayStartAhead() {
        return !"false".equals(Setting.of("DUNLIN_AHEAD"));
    }

    private static void inBackground(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** A new world, whose journal has started. Its seed is a random one, unless DUNLIN_SEED says which. */
    public World world() {
        // With the process, as several may use one server. SecureRandom would take longer to start than the server.
        long process = ProcessHandle.current().pid();
        return world("test-" + process + "-" + Long.toHexString(ThreadLocalRandom.current().nextLong()));
    }

    /** A world of this name, with a new journal and seed. */
    public World world(String name) {
        String given = Setting.of("DUNLIN_SEED");
        long seed = given == null ? ThreadLocalRandom.current().nextInt(1 << 30) : Long.parseLong(given);
        List<String> entrance = List.of("DUNLIN", "WORLD", name, "TEMPORARY");
        Connection connection = pool.take();
        pool.lose();
        List<Object> replies = connection.callAll(
            List.of(entrance, List.of("DUNLIN", "SEED", seed), List.of("DUNLIN", "JOURNAL", "START")), Pool.PATIENCE_MS);
        try {
            replies.forEach(Connection::checked);
        } catch (CommandException error) {
            connection.close();
            throw error;
        }
        World world = new World(this, name, new Pool(pool.address, entrance));
        world.pool.adopt(connection);
        world.seeded(seed);
        return world;
    }

    public List<Map<String, Object>> worlds() {
        return Reply.maps(dunlin("WORLDS"));
    }

    @Override
    public Dunlin server() {
        return this;
    }

    @Override
    public String url() {
        return pool.address.url("");
    }

    @Override
    public int port() {
        return pool.address.port();
    }

    @Override
    public String username() {
        return pool.address.user();
    }

    /** Whether it was started by this process, and ends with it. */
    public boolean isOwn() {
        return child != null;
    }

    /** The id of the process, or 0 of a server that was not started here. */
    public long pid() {
        return child == null ? 0 : child.pid();
    }

    /**
     * The link to the page, with its token, of a server that was started with {@code "--page-port", "0"}; otherwise null.
     */
    public String pageUrl() {
        return child == null ? null : child.page;
    }

    /** The last lines of the log of a server that was started here. */
    public String log() {
        return child == null ? "" : child.log();
    }

    @Override
    void end() {
        pool.drain().forEach(Connection::close);
        if (child != null) child.end();
    }

    /** Ends a world. One of its connections leaves it, drops it, and serves the next world. */
    void end(World world) {
        List<Connection> idle = new ArrayList<>(world.pool.drain());
        List<String> drop = List.of("DUNLIN", "DROP-WORLD", world.name());
        try {
            if (idle.isEmpty()) {
                pool.callAll(List.of(drop), Pool.PATIENCE_MS);
                return;
            }
            Connection first = idle.remove(0);
            idle.forEach(Connection::close);
            // A world that this connection was alone in is gone when it is to be dropped.
            first.callAll(List.of(List.of("DUNLIN", "WORLD", ownName), drop), Pool.PATIENCE_MS);
            pool.adopt(first);
        } catch (DunlinException ignored) {
            // The server has ended, and the world with it.
        }
    }

    private String foundName() {
        try {
            return (String) dunlin("WORLD");
        } catch (CommandException error) {
            pool.drain().forEach(Connection::close);
            throw new DunlinException("the server that DUNLIN_URL names (" + pool.address.host() + ":" + pool.address.port()
                + ") has no test kit: " + error.getMessage() + "; start it with 'dunlin --test-kit yes'", error);
        }
    }
}
