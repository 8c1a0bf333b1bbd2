package dunlin.junit;

import dunlin.Dunlin;
import dunlin.DunlinException;
import dunlin.World;
import dunlin.spring.ContextWorld;
import java.lang.annotation.Annotation;
import java.lang.reflect.Constructor;
import java.lang.reflect.Parameter;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/**
 * Gives each test that has a parameter of the type {@link World} a world of its own; a parameter of the type
 * {@link Dunlin} is the server that all tests share.
 *
 * <p>A class whose {@code @BeforeAll} method takes the world has one for all of its tests, and so have the tests of an
 * application context of Spring. Such a world is rolled back after each test. A test that fails shows the last commands
 * of its world, and one that passes fails for what strict mode has found at the level ERROR.
 */
public final class DunlinExtension
        implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback, ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(DunlinExtension.class);
    private static final String WORLD = "world";
    private static final String OF_CLASS = "world of a class";
    private static final String BEGUN = "begun";
    private static final String BEFORE_TEST = "dunlin.junit: before the test";
    /** The shared worlds that a test uses at present. */
    private static final Set<World> BUSY = ConcurrentHashMap.newKeySet();

    /** Null where the annotation of the class says how its worlds start. */
    private final Settings own;

    /** For the annotation {@link DunlinTest}. */
    public DunlinExtension() {
        this(null);
    }

    DunlinExtension(Settings own) {
        this.own = own;
    }

    /**
     * Options in code, for a field in the place of the annotation:
     * {@code @RegisterExtension static DunlinExtension dunlin = DunlinExtension.builder().strict().build();}
     *
     * <p>In a test of Spring, such a field gives each test a world of its own; only the annotation leads the
     * application context into one.
     */
    public static Options builder() {
        return new Options();
    }

    private boolean isOfSpring(ExtensionContext context) {
        return own == null && ContextWorld.has(context);
    }

    /** A constructor belongs to its test, as far as JUnit knows that: from 5.12 on. */
    @Override
    public ExtensionContextScope getTestInstantiationExtensionContextScope(ExtensionContext root) {
        return ExtensionContextScope.TEST_METHOD;
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Parameter wanted = parameter.getParameter();
        if (wanted.getType() != World.class && wanted.getType() != Dunlin.class) return false;
        for (Annotation each : wanted.getAnnotations()) {
            // Those are Spring's to give: the world is a bean there.
            if (each.annotationType().getName().startsWith("org.springframework.")) return false;
        }
        return !(parameter.getDeclaringExecutable() instanceof Constructor && isOfSpring(context));
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Dunlin.class ? Dunlin.shared() : held(context).world;
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        if (!isOfSpring(context)) return;
        World world = ContextWorld.of(context);
        world.snapshot(beforeClass(context));
        store(context).put(OF_CLASS, world);
    }

    @Override
    public void afterAll(ExtensionContext context) {
        // The context may have been closed meanwhile; asking for it would make another.
        World world = store(context).remove(OF_CLASS, World.class);
        if (world == null || world.isClosed() || !world.snapshots().contains(beforeClass(context))) return;
        world.rollback(beforeClass(context));
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        Held held = isOfSpring(context) ? held(context) : store(context).get(WORLD, Held.class);
        if (held == null || !held.isShared) return;
        begin(held.world);
        store(context).put(BEGUN, held);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Held held = store(context).get(WORLD, Held.class);
        boolean hasBegun = store(context).remove(BEGUN) != null;
        if (held == null || held.isShared && !hasBegun) return;
        if (held.world.isClosed()) {
            BUSY.remove(held.world);
            return;
        }
        Optional<Throwable> failure = context.getExecutionException();
        AssertionError findings = null;
        try {
            if (failure.isEmpty()) held.world.strict().check();
        } catch (AssertionError error) {
            findings = error;
        }
        if (findings != null || failure.isPresent() && !(failure.get() instanceof TestAbortedException)) {
            System.err.println("\n" + name(context) + " failed; " + report(held.world));
        }
        if (held.isShared) end(held.world);
        if (findings != null) throw findings;
    }

    /** The world of a test, of its class, or of its application context. It is made here if there is none yet. */
    private Held held(ExtensionContext context) {
        boolean isSprings = isOfSpring(context);
        Held found = store(context).get(WORLD, Held.class);
        if (isSprings && (found == null || found.world.isClosed())) {
            found = new Held(ContextWorld.of(context), true, false);
            store(context).put(WORLD, found);
        } else if (found == null) {
            found = new Held(settings(context).world(), context.getTestMethod().isEmpty(), true);
            store(context).put(WORLD, found);
        }
        return found;
    }

    private Settings settings(ExtensionContext context) {
        if (own != null) return own;
        for (var each = Optional.of(context); each.isPresent(); each = each.get().getParent()) {
            var test = AnnotationSupport.findAnnotation(each.get().getElement(), DunlinTest.class);
            if (test.isPresent()) return Settings.of(test.get());
        }
        return Settings.DEFAULT;
    }

    private static Store store(ExtensionContext context) {
        return context.getStore(NAMESPACE);
    }

    private static String beforeClass(ExtensionContext context) {
        return "dunlin.junit: before " + context.getRequiredTestClass().getName();
    }

    private static String name(ExtensionContext context) {
        return context.getRequiredTestClass().getSimpleName() + ", " + context.getDisplayName();
    }

    private static void begin(World world) {
        if (!BUSY.add(world)) {
            throw new IllegalStateException("two tests that share a world run at the same time, and would see each other's "
                + "data; take the World as a parameter of each test, or add @Execution(SAME_THREAD) to the class");
        }
        world.snapshot(BEFORE_TEST);
        world.journal().clear();
        world.strict().clear();
    }

    private static void end(World world) {
        try {
            if (world.snapshots().contains(BEFORE_TEST)) world.rollback(BEFORE_TEST);
        } finally {
            BUSY.remove(world);
        }
    }

    private static String report(World world) {
        try {
            return world.report();
        } catch (DunlinException error) {
            return error.getMessage();
        }
    }

    /** A world in a store of JUnit, which closes it; before JUnit 5.13 that knows only its own interface. */
    @SuppressWarnings("deprecation")
    private static final class Held implements Store.CloseableResource, AutoCloseable {
        final World world;
        final boolean isShared;
        private final boolean isOwned;

        Held(World world, boolean isShared, boolean isOwned) {
            this.world = world;
            this.isShared = isShared;
            this.isOwned = isOwned;
        }

        @Override
        public void close() {
            if (isOwned) world.close();
        }
    }
}
