package dunlin;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Which commands the application has sent. Filters narrow it, and all of them must match:
 * {@code journal().command("HSET").key("cart:*").expectExactly(1)}.
 */
public final class Journal {
    private final World world;
    private final List<Object> filter;

    Journal(World world) {
        this(world, List.of());
    }

    private Journal(World world, List<Object> filter) {
        this.world = world;
        this.filter = filter;
    }

    /** Starts a new journal, of the last 10,000 commands. */
    public void start() {
        world.dunlin("JOURNAL", "START");
    }

    /** Ends recording; what was recorded can still be read. */
    public void stop() {
        world.dunlin("JOURNAL", "STOP");
    }

    public void clear() {
        world.dunlin("JOURNAL", "CLEAR");
    }

    /** The whole journal as a transcript, which can be replayed. */
    public String export() {
        return (String) world.dunlin("JOURNAL", "EXPORT");
    }

    /** Only the commands of this name: {@code GET}, {@code CONFIG}, {@code config|get}. */
    public Journal command(String name) {
        return with("COMMAND", name);
    }

    /** Only the commands with a key that matches this glob. */
    public Journal key(String pattern) {
        return with("KEY", pattern);
    }

    /** Only the commands of clients with this name. */
    public Journal client(String name) {
        return with("CLIENT", name);
    }

    /** Only the commands whose reply is an error. */
    public Journal errors() {
        return with("ERRORS");
    }

    /** Only the commands whose reply is MOVED or ASK. */
    public Journal redirected() {
        return with("REDIRECTED");
    }

    public List<Entry> entries() {
        return Reply.maps(world.dunlin(words("LIST"))).stream().map(Entry::of).toList();
    }

    public long count() {
        return world.number(words("COUNT"));
    }

    /** Fails, and lists the commands, unless there are exactly so many. */
    public void expectExactly(int count) {
        world.expect(words("EXPECT", "EXACTLY", count));
    }

    public void expectAtLeast(int count) {
        world.expect(words("EXPECT", "AT-LEAST", count));
    }

    public void expectAtMost(int count) {
        world.expect(words("EXPECT", "AT-MOST", count));
    }

    public void expectNone() {
        world.expect(words("EXPECT", "NONE"));
    }

    /** Waits until there are so many commands. */
    public void waitFor(int count, Duration timeout) {
        world.await(timeout, words(count));
    }

    private Journal with(Object... words) {
        List<Object> all = new ArrayList<>(filter);
        all.addAll(Arrays.asList(words));
        return new Journal(world, all);
    }

    private Object[] words(Object... words) {
        List<Object> all = new ArrayList<>(List.of("JOURNAL"));
        all.addAll(Arrays.asList(words));
        all.addAll(filter);
        return all.toArray();
    }

    /** A command in the journal; the reply is as redis-cli shows it, or null while the command is blocked. */
    public record Entry(
            long number, Instant time, Duration duration, long client, String clientName, String world, long database,
            String source, List<String> command, String reply) {
        static Entry of(Map<String, Object> fields) {
            return new Entry(
                (Long) fields.get("number"),
                Instant.EPOCH.plus((Long) fields.get("unix-time-microseconds"), ChronoUnit.MICROS),
                Duration.of((Long) fields.get("duration-microseconds"), ChronoUnit.MICROS),
                (Long) fields.get("client"),
                (String) fields.get("client-name"),
                (String) fields.get("world"),
                (Long) fields.get("database"),
                (String) fields.get("source"),
                Reply.texts(fields.get("command")),
                (String) fields.get("reply"));
        }

        @Override
        public String toString() {
            String who = clientName.isEmpty() ? "client " + client : clientName;
            String said = reply == null ? "(blocked)" : reply.replace("\n", "; ");
            return number + " " + who + ": " + cut(String.join(" ", command)) + " -> " + cut(said);
        }

        private static String cut(String text) {
            return text.length() <= 120 ? text : text.substring(0, 117) + "...";
        }
    }
}
