package dunlin;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A private server behind the port of another: its own keys, channels, scripts, settings, users and clock.
 *
 * <p>It is temporary: its data goes with {@link #close}, and its clients are disconnected. Its methods can be called
 * from any thread; a wait keeps no other from moving the clock.
 */
public class World implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    final Pool pool;
    private final Dunlin server;
    private final String name;
    private int port;
    private Long seed;
    private volatile boolean isClosed;

    /** A world of that server, or the server's own where there is none. */
    World(Dunlin server, String name, Pool pool) {
        this.server = server;
        this.name = name;
        this.pool = pool;
    }

    /** A pool whose connections come into a temporary world. */
    static Pool poolOf(Address address, String name) {
        return new Pool(address, List.of("DUNLIN", "WORLD", name, "TEMPORARY"));
    }

    /** Comes into this world with a connection that no world has, and gives it a seed and a journal. */
    final void enter(Pool lobby) {
        Long given = Setting.number("DUNLIN_SEED");
        long number = given == null ? ThreadLocalRandom.current().nextInt(1 << 30) : given;
        pool.adopt(lobby.lend(
            List.of(pool.entrance, List.of("DUNLIN", "SEED", number), List.of("DUNLIN", "JOURNAL", "START"))));
        seed = number;
    }

    /** The server that it is on. */
    public Dunlin server() {
        return server;
    }

    public String name() {
        return name;
    }

    /** The URL by which any client comes into this world. */
    public String url() {
        return pool.address.url("temporary-world." + name);
    }

    public final URI uri() {
        return URI.create(url());
    }

    public final String host() {
        return pool.address.host();
    }

    /** A port whose clients come straight into this world, for what takes a host and a port but no URL. */
    public synchronized int port() {
        if (port == 0) {
            try {
                port = (int) number("LISTEN", name);
            } catch (CommandException error) {
                if (!isCluster()) throw error;
                throw new DunlinException("a world of a cluster has no port of its own: give the client the url(), or the port of "
                    + "the server() with username() and password(), which it has to send to each node", error);
            }
        }
        return port;
    }

    /** Whether it is a cluster, as each world of a server is that was started with {@code cluster}. */
    public final boolean isCluster() {
        // Of the server, in whose own journal nobody looks for what the application did.
        return String.valueOf(server().call("INFO", "cluster")).contains("cluster_enabled:1");
    }

    /** What a client sends as its user name to come into this world, with {@link #password}. */
    public String username() {
        return "temporary-world." + name;
    }

    public final String password() {
        return pool.address.password().isEmpty() ? "any" : pool.address.password();
    }

    /** The time of this world. */
    public final Instant now() {
        return time("ADVANCE", 0);
    }

    /** Moves the clock forward; whatever is due on the way has happened when this returns. */
    public final Instant advance(Duration duration) {
        return time("ADVANCE", milliseconds(duration));
    }

    /** Moves the clock to the next moment when something is due, if anything is. */
    public final Optional<Instant> advanceToNext() {
        return Optional.ofNullable((Long) dunlin("ADVANCE-TO-NEXT")).map(Instant::ofEpochMilli);
    }

    /** Stops the clock. A blocked client, such as one in BLPOP, then waits until the clock is moved. */
    public final Instant freeze() {
        return time("FREEZE");
    }

    public final void resume() {
        dunlin("RESUME");
    }

    public final Instant setTime(Instant moment) {
        return time("SET-TIME", moment.toEpochMilli());
    }

    /** Lets the clock run this many times as fast as real time. */
    public final void speed(double factor) {
        dunlin("SPEED", factor == Math.rint(factor) ? String.valueOf((long) factor) : String.valueOf(factor));
    }

    /** Makes every random answer and the order of SCAN repeatable. */
    public final void seed(long number) {
        dunlin("SEED", number);
        seed = number;
    }

    public final void snapshot(String label) {
        dunlin("SNAPSHOT", label);
    }

    public final void rollback(String label) {
        dunlin("ROLLBACK", label);
    }

    public final List<String> snapshots() {
        return Reply.texts(dunlin("SNAPSHOTS"));
    }

    public final void dropSnapshot(String label) {
        dunlin("DROP-SNAPSHOT", label);
    }

    /** Replaces all data by that of a text. */
    public final void load(String text) {
        dunlin("LOAD", text);
    }

    /** Replaces all data by that of a text or of an RDB file. */
    public final void load(byte[] file) {
        dunlin("LOAD", file);
    }

    /** Replaces all data by that of a text or of an RDB file. */
    public final void load(Path file) {
        load(bytes(file));
    }

    /** The data as text: a line for each command that would create a part of it. */
    public final String dump() {
        return (String) dunlin("DUMP");
    }

    /** How the data differs from a text; empty if it does not. */
    public final String diff(String text) {
        return (String) dunlin("DIFF", text);
    }

    public final String diff(Path file) {
        return (String) dunlin("DIFF", bytes(file));
    }

    /** How the data differs from that of another world of this server. */
    public final String diff(World other) {
        return (String) dunlin("DIFF", "WORLD", other.name);
    }

    /** Fails, and shows how they differ, unless the data is that of a text. */
    public final void assertDiff(String text) {
        String found = diff(text);
        if (!found.isEmpty()) throw new AssertionError("the data differs from the text:\n" + found);
    }

    /** Makes new worlds start as a copy of the present state of this one. */
    public final void makeTemplate() {
        dunlin("TEMPLATE");
    }

    public final void dropTemplate() {
        dunlin("DROP-TEMPLATE");
    }

    /** A failure for certain commands: {@code fault("dies").command("LMOVE").times(1).dropAfter()}. */
    public final Fault fault(String label) {
        return new Fault(this, label);
    }

    /** Each rule with how many commands it matched, and how often it fired. */
    public final List<Map<String, Object>> faults() {
        return Reply.maps(dunlin("FAULT", "LIST"));
    }

    public final void removeFault(String label) {
        dunlin("FAULT", "REMOVE", label);
    }

    public final void clearFaults() {
        dunlin("FAULT", "CLEAR");
    }

    /** The commands of the application: of a world from its start, of a server from {@link Journal#start}. */
    public final Journal journal() {
        return new Journal(this);
    }

    public final Strict strict() {
        return new Strict(this);
    }

    /** Waits until a client is blocked on a key of database 0. */
    public final void waitUntilBlocked(String key) {
        waitUntilBlocked(key, 1, PATIENCE);
    }

    public final void waitUntilBlocked(String key, int clients, Duration timeout) {
        await(timeout, "BLOCKED", key, clients);
    }

    public final void waitForSubscribers(String channel, int clients) {
        waitForSubscribers(channel, clients, PATIENCE);
    }

    public final void waitForSubscribers(String channel, int clients, Duration timeout) {
        await(timeout, "SUBSCRIBERS", channel, clients);
    }

    public final void waitUntilFired(String fault, int times) {
        waitUntilFired(fault, times, PATIENCE);
    }

    public final void waitUntilFired(String fault, int times, Duration timeout) {
        await(timeout, "FAULT", fault, times);
    }

    /** Waits until the application has exactly so many connections to this world. */
    public final void waitForClients(int clients) {
        waitForClients(clients, PATIENCE);
    }

    public final void waitForClients(int clients, Duration timeout) {
        // The caller does not count, but the other connections of the launcher do.
        pool.prepare();
        await(timeout, "CLIENTS", clients + pool.count() - 1);
    }

    /** Any command, from a connection of the launcher: a String, a Long, a List of these, or null. */
    public final Object call(Object... words) {
        return pool.call(Arrays.asList(words), Pool.PATIENCE_MS);
    }

    /** What to show when a test fails: the seed, the last commands, and what strict mode has found. */
    public final String report() {
        StringBuilder report = new StringBuilder("dunlin: the world " + name);
        if (seed != null) report.append(", the seed was " + seed + " (DUNLIN_SEED=" + seed + " repeats it)");
        List<Object> replies = pool.callAll(
            List.of(List.of("DUNLIN", "JOURNAL", "LIST"), List.of("DUNLIN", "STRICT", "FINDINGS")), Pool.PATIENCE_MS);
        if (replies.get(0) instanceof List<?> listed) {
            List<Journal.Entry> entries = Reply.maps(listed).stream().map(Journal.Entry::of).toList();
            List<Journal.Entry> last = entries.subList(Math.max(0, entries.size() - 20), entries.size());
            report.append("\nthe last " + last.size() + " of " + entries.size() + " commands:");
            last.forEach(entry -> report.append("\n  ").append(entry));
        }
        if (replies.get(1) instanceof List<?> findings) {
            Reply.maps(findings)
                .forEach(each -> report.append("\n  strict " + each.get("rule") + ": " + each.get("text")));
        }
        return report.toString();
    }

    public final boolean isClosed() {
        return isClosed;
    }

    /** Ends this world with its data; its clients are disconnected. */
    @Override
    public final void close() {
        synchronized (this) {
            if (isClosed) return;
            isClosed = true;
        }
        end();
    }

    void end() {
        server.end(this);
    }

    final Object dunlin(Object... words) {
        List<Object> all = new ArrayList<>(List.of("DUNLIN"));
        all.addAll(Arrays.asList(words));
        return pool.call(all, Pool.PATIENCE_MS);
    }

    final long number(Object... words) {
        return (Long) dunlin(words);
    }

    /** Turns the server's text about what it did not find into a failed assertion. */
    final void expect(Object... words) {
        try {
            dunlin(words);
        } catch (CommandException error) {
            String text = error.getMessage().replaceFirst("^ERR ", "");
            if (!text.startsWith("expected ") && !text.startsWith("strict mode found")) throw error;
            throw new AssertionError(text);
        }
    }

    /** The timeout goes by the clock of this machine: that of the world may be frozen, or moved. */
    final void await(Duration timeout, Object... words) {
        int limit = Math.toIntExact(Math.max(1, milliseconds(timeout)));
        List<Object> wait = new ArrayList<>(List.of("DUNLIN", "WAIT"));
        wait.addAll(Arrays.asList(words));
        try {
            pool.call(wait, limit);
        } catch (WaitException error) {
            throw new WaitException("waited " + limit + " ms in vain for " + wait.subList(2, wait.size()));
        }
    }

    static long milliseconds(Duration duration) {
        if (duration.toNanosPart() % 1_000_000 != 0) {
            throw new IllegalArgumentException("the server's clock has whole milliseconds, unlike " + duration);
        }
        return duration.toMillis();
    }

    private Instant time(Object... words) {
        return Instant.ofEpochMilli(number(words));
    }

    private static byte[] bytes(Path file) {
        try {
            return Files.readAllBytes(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public final String toString() {
        return url();
    }
}
