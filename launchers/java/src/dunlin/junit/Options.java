package dunlin.junit;

import dunlin.Dunlin;
import dunlin.Level;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;

/** How the worlds of an extension start, for {@link DunlinExtension#builder}. */
public final class Options {
    private Level strict = Level.OFF;
    private String fixture = "";
    private OptionalLong seed = OptionalLong.empty();
    private boolean isFrozen;

    Options() {}

    /** A test fails for what the general rules of strict mode find. */
    public Options strict() {
        return strict(Level.ERROR);
    }

    /** The level of the general rules of strict mode. */
    public Options strict(Level level) {
        strict = Objects.requireNonNull(level);
        return this;
    }

    /** A text or an RDB file that each world starts with: a resource of the class path, or else the path of a file. */
    public Options fixture(String name) {
        fixture = Objects.requireNonNull(name);
        return this;
    }

    /** The seed of random answers and of the order of SCAN; without it, each world has another one. */
    public Options seed(long number) {
        seed = OptionalLong.of(number);
        return this;
    }

    /** The clock stands still until a test moves it. */
    public Options frozen() {
        isFrozen = true;
        return this;
    }

    /** The program starts at once, in the background, while the classes of the tests are loaded. */
    public Options ahead() {
        Dunlin.startAhead();
        return this;
    }

    public DunlinExtension build() {
        return new DunlinExtension(new Settings(strict, fixture, List.of(), seed, isFrozen));
    }
}
