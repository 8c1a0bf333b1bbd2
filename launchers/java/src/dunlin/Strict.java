package dunlin;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The rules of strict mode, by their names, and what they have found. */
public final class Strict {
    private final World world;

    Strict(World world) {
        this.world = world;
    }

    /** Sets the level of the general rules: all but those for a cluster alone. */
    public Strict set(Level level) {
        return set("ALL", level);
    }

    /** Sets the level of a rule; ALL or CLUSTER are several. */
    public Strict set(String rule, Level level) {
        world.dunlin("STRICT", "SET", rule, word(level));
        return this;
    }

    public Strict set(String rule, Level level, long limit) {
        world.dunlin("STRICT", "SET", rule, word(level), "LIMIT", limit);
        return this;
    }

    /** Makes a rule, or ALL or CLUSTER of them, ignore keys that match the pattern. */
    public Strict allow(String rule, String pattern) {
        world.dunlin("STRICT", "ALLOW", rule, pattern);
        return this;
    }

    public List<Finding> findings() {
        return Reply.maps(world.dunlin("STRICT", "FINDINGS")).stream().map(Finding::of).toList();
    }

    /** Fails, and lists the findings, if there are any of rules whose level is ERROR. */
    public void check() {
        world.expect("STRICT", "CHECK");
    }

    public void clear() {
        world.dunlin("STRICT", "CLEAR");
    }

    private static String word(Level level) {
        return level.name().toLowerCase(Locale.ROOT);
    }

    /** What a rule has found. */
    public record Finding(
            String rule, Level level, String text, String command, long client, String clientName, long times) {
        static Finding of(Map<String, Object> fields) {
            return new Finding(
                (String) fields.get("rule"),
                Level.valueOf(((String) fields.get("level")).toUpperCase(Locale.ROOT)),
                (String) fields.get("text"),
                (String) fields.get("command"),
                (Long) fields.get("client"),
                (String) fields.get("client-name"),
                (Long) fields.get("times"));
        }
    }
}
