package dunlin;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A server of its own, on a free port; as a world it is the one that clients without a user name are in.
 *
 * <p>It ends with {@link #close}, or with this process, however that ends. On the server that DUNLIN_URL names it is a
 * world of its own, so that nobody meets the others' data; only that ends then.
 */
public final class Dunlin extends World {
    private static final int LEAVE_MS = 1000;
    private static Dunlin shared;

    /** Null on a server that was not started here. */
    private final Child child;
    /** The connections that no world has at the moment. */
    private final Pool lobby;
    /** The world in which those are. */
    private final String home;

    private Dunlin(Child child, Pool lobby) {
        super(null, "default", lobby);
        this.child = child;
        this.lobby = lobby;
        this.home = "default";
    }

    private Dunlin(Pool lobby, String home, String name) {
        super(null, name, poolOf(lobby.address, name));
        this.child = null;
        this.lobby = lobby;
        this.home = home;
    }

    /**
     * Starts a server, with arguments as on its command line: {@code start("--maxmemory", "10mb")}.
     *
     * <p>Where DUNLIN_URL names a server that runs, nothing starts without arguments, and it is a new world there.
     */
    public static Dunlin start(String... arguments) {
        String given = arguments.length == 0 ? Setting.of("DUNLIN_URL") : null;
        if (given != null) return joined(Address.of(given));
        inBackground("dunlin-prepare", () -> {
            ProcessHandle.current();
            Connection.prepare();
        });
        Child child = new Child(List.of(arguments));
        try {
            return new Dunlin(child, new Pool(Address.of(child.url), List.of()));
        } catch (RuntimeException error) {
            child.end();
            throw error;
        }
    }

    private static Dunlin joined(Address address) {
        Pool lobby = new Pool(address, List.of());
        try {
            String home = (String) lobby.call(List.of("DUNLIN", "WORLD"), Pool.PATIENCE_MS);
            Dunlin server = new Dunlin(lobby, home, newName());
            server.enter(lobby);
            return server;
        } catch (RuntimeException error) {
            lobby.drain().forEach(Connection::close);
            if (!(error instanceof CommandException)) throw error;
            throw new DunlinException("the server that DUNLIN_URL names (" + address.host() + ":" + address.port()
                + ") has no test kit: " + error.getMessage() + "; start it with 'dunlin --test-kit yes'", error);
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
        return world(newName());
    }

    /** A world of this name, with a new journal and seed. */
    public World world(String name) {
        World world = new World(this, name, poolOf(lobby.address, name));
        world.enter(lobby);
        return world;
    }

    private static String newName() {
        // With the process, as several may use one server. SecureRandom would take longer to start than the server.
        long process = ProcessHandle.current().pid();
        return "test-" + process + "-" + Long.toHexString(ThreadLocalRandom.current().nextLong());
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
        return isOwn() ? pool.address.url("") : super.url();
    }

    /** The port that leads to it; the nodes of a cluster that was not started here also want the {@link #username}. */
    @Override
    public int port() {
        return isOwn() || isCluster() ? pool.address.port() : super.port();
    }

    @Override
    public String username() {
        return isOwn() ? pool.address.user() : super.username();
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
        if (!isOwn()) end(this);
        lobby.drain().forEach(Connection::close);
        if (isOwn()) child.end();
    }

    /** Ends a world. One of its connections leaves it, drops it, and serves the next world. */
    void end(World world) {
        List<String> drop = List.of("DUNLIN", "DROP-WORLD", world.name());
        boolean isDropped = false;
        for (Connection each : world.pool.drain()) {
            if (!isDropped && leaves(each, drop)) {
                isDropped = true;
                lobby.adopt(each);
            } else {
                each.close();
            }
        }
        try {
            if (!isDropped) lobby.callAll(List.of(drop), Pool.PATIENCE_MS);
        } catch (DunlinException ignored) {
            // The server has ended, and the world with it.
        }
    }

    /** Whether a connection has left the world that is dropped, and serves the next one as if nobody had used it. */
    private boolean leaves(Connection connection, List<String> drop) {
        List<List<String>> commands = new ArrayList<>(List.of(List.of("DUNLIN", "WORLD", home), List.of("RESET")));
        if (!lobby.address.login().isEmpty()) commands.add(lobby.address.login());
        commands.add(drop);
        try {
            // Replies may be missing, as after CLIENT REPLY OFF.
            List<Object> replies = connection.callAll(commands, LEAVE_MS);
            // A world whose last client has left is gone before it is dropped, so that may be refused.
            return "OK".equals(replies.get(0))
                && replies.subList(0, commands.size() - 1).stream().noneMatch(CommandException.class::isInstance);
        } catch (DunlinException error) {
            return false;
        }
    }
}
