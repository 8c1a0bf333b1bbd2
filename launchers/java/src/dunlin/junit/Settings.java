package dunlin.junit;

import dunlin.Dunlin;
import dunlin.Level;
import dunlin.World;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;

/** How a world starts. Contexts of Spring whose settings are equal can share a world, as they share a context. */
public record Settings(Level strict, String fixture, List<String> properties, OptionalLong seed, boolean isFrozen) {
    public static final Settings DEFAULT = new Settings(Level.OFF, "", List.of(), OptionalLong.empty(), false);

    public static Settings of(DunlinTest test) {
        return new Settings(test.strict(), test.fixture(), List.of(test.properties()), OptionalLong.empty(), false);
    }

    /** A world of the server that all tests share. */
    public World world() {
        World world = Dunlin.shared().world();
        try {
            if (isFrozen) world.freeze();
            if (seed.isPresent()) world.seed(seed.getAsLong());
            if (!fixture.isEmpty()) load(world);
            if (strict != Level.OFF) world.strict().set(strict);
            return world;
        } catch (RuntimeException error) {
            world.close();
            throw error;
        }
    }

    private void load(World world) {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        try (InputStream resource = loader == null ? null : loader.getResourceAsStream(fixture)) {
            if (resource == null) {
                world.load(Path.of(fixture));
            } else {
                world.load(resource.readAllBytes());
            }
        } catch (IOException | UncheckedIOException error) {
            throw new IllegalArgumentException("there is no fixture '" + fixture + "', neither on the class path nor at "
                + Path.of(fixture).toAbsolutePath(), error);
        }
    }
}
