import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import dunlin.CommandException;
import dunlin.Dunlin;
import dunlin.Level;
import dunlin.World;
import dunlin.junit.DunlinExtension;
import dunlin.junit.DunlinTest;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.extension.TestWatcher;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** What JUnit's extension does, seen from outside: this runs classes of tests and looks at what comes of them. */
class ExtensionTest {
    /** What a run came to, and what it wrote on the standard error. */
    record Run(TestExecutionSummary summary, String output) {
        static Run of(Class<?> tests, boolean isParallel) {
            return of(tests, isParallel, Map.of());
        }

        static Run of(Class<?> tests, boolean isParallel, Map<String, String> parameters) {
            var request = LauncherDiscoveryRequestBuilder.request()
                .selectors(selectClass(tests))
                .configurationParameter("junit.jupiter.execution.parallel.enabled", String.valueOf(isParallel))
                .configurationParameter("junit.jupiter.execution.parallel.config.strategy", "fixed")
                .configurationParameter("junit.jupiter.execution.parallel.config.fixed.parallelism", "8")
                .configurationParameters(parameters)
                .build();
            SummaryGeneratingListener listener = new SummaryGeneratingListener();
            PrintStream before = System.err;
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            System.setErr(new PrintStream(output, true, StandardCharsets.UTF_8));
            try {
                LauncherFactory.create().execute(request, listener);
            } finally {
                System.setErr(before);
            }
            return new Run(listener.getSummary(), output.toString(StandardCharsets.UTF_8));
        }

        void assertPassed(int tests) {
            summary.getFailures().forEach(each -> each.getException().printStackTrace());
            assertEquals(tests, summary.getTestsSucceededCount());
            assertEquals(0, summary.getTotalFailureCount());
            assertEquals("", output, "tests that pass show nothing");
        }

        String failure() {
            assertEquals(1, summary.getTotalFailureCount());
            return String.valueOf(summary.getFailures().get(0).getException().getMessage());
        }
    }

    @DunlinTest
    static class Failing {
        @Test
        void fails(World world) {
            for (int each = 0; each < 30; each++) world.call("SET", "key:" + each, "x".repeat(200));
            throw new AssertionError("the test's own failure");
        }
    }

    @Test
    void aTestThatFailsShowsItsSeedAndItsLastTwentyCommands() {
        Run run = Run.of(Failing.class, false);
        assertEquals("the test's own failure", run.failure());
        assertTrue(run.output.contains("Failing, fails(World) failed; dunlin: the world test-"), run.output);
        assertTrue(run.output.contains("repeats it)\nthe last 20 of 30 commands:\n"), run.output);
        assertTrue(run.output.contains("SET key:29 xx") && !run.output.contains("SET key:9 "), run.output);
        assertTrue(run.output.lines().allMatch(line -> line.length() < 200), run.output);
    }

    @DunlinTest(strict = Level.ERROR)
    static class Careless {
        @Test
        void passesThoughARuleFoundSomething(World world) {
            world.call("SADD", "seen", "event");
            try {
                world.call("EXPIRE", "seen", 60);
            } catch (CommandException ignored) {
                // As an application may do.
            }
        }
    }

    @Test
    void aTestThatPassesFailsForWhatStrictModeHasFound() {
        Run run = Run.of(Careless.class, false);
        assertTrue(run.failure().contains("late-expire"), run::failure);
        assertTrue(run.output.contains("strict late-expire: "), run.output);
    }

    @ExtendWith(DunlinExtension.class)
    static class Aborted {
        @Test
        void isNotFor(World world) {
            Assumptions.abort("it is not for this machine, nor for " + world);
        }
    }

    @Test
    void aTestThatIsAbortedShowsNothing() {
        Run run = Run.of(Aborted.class, false);
        assertEquals(1, run.summary.getTestsAbortedCount());
        assertEquals("", run.output);
    }

    static class Detected {
        @Test
        void hasAWorld(World world) {
            assertEquals(0L, world.call("DBSIZE"));
        }
    }

    @DunlinTest
    static class DetectedAndAnnotated extends Detected {}

    /** As a project does with a file among the resources of its tests. */
    @Test
    void whereJUnitDetectsTheExtensionNoClassNeedsAnAnnotation(@TempDir Path resources) throws Exception {
        Path services = Files.createDirectories(resources.resolve("META-INF/services"));
        Files.writeString(services.resolve("org.junit.jupiter.api.extension.Extension"), DunlinExtension.class.getName());
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        try (var loader = new URLClassLoader(new URL[] {resources.toUri().toURL()}, before)) {
            thread.setContextClassLoader(loader);
            for (Class<?> tests : List.of(Detected.class, DetectedAndAnnotated.class)) {
                Run.of(tests, false, Map.of("junit.jupiter.extensions.autodetection.enabled", "true")).assertPassed(1);
            }
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @DunlinTest
    @Execution(ExecutionMode.CONCURRENT)
    static class Parallel {
        private final World ofConstructor;

        Parallel(World world) {
            ofConstructor = world;
        }

        @BeforeEach
        void fill(World world) {
            world.call("SET", "visits", 0);
        }

        @RepeatedTest(100)
        void seesOnlyItsOwn(World world) {
            assertEquals(ofConstructor, world);
            for (int each = 1; each <= 10; each++) assertEquals((long) each, world.call("INCR", "visits"));
            world.call("FLUSHALL");
        }

        @Nested
        class Inside {
            @RepeatedTest(20)
            void seesOnlyItsOwn(World world) {
                assertEquals(1L, world.call("DBSIZE"));
                assertEquals("0", world.call("GET", "visits"));
            }
        }
    }

    @Test
    void testsInParallelSeeOnlyTheirOwnData() {
        int before = Dunlin.shared().worlds().size();
        Run.of(Parallel.class, true).assertPassed(120);
        assertEquals(before, Dunlin.shared().worlds().size(), "all worlds are gone");
    }

    @DunlinTest
    static class Shared {
        private static World shared;

        @BeforeAll
        static void fill(World world) {
            shared = world;
            world.freeze();
            world.setTime(Instant.EPOCH);
            world.call("SET", "stock", 7);
        }

        @RepeatedTest(3)
        void beginsWithTheFixture(World world) {
            assertEquals(shared, world);
            assertEquals(6L, world.call("DECR", "stock"));
            world.journal().expectExactly(1);
            world.advance(Duration.ofHours(1));
            assertEquals(Instant.EPOCH.plusSeconds(3600), world.now());
        }
    }

    @Test
    void testsOfAClassWithAWorldAreRolledBack() {
        Run.of(Shared.class, false).assertPassed(3);
        assertTrue(Shared.shared.isClosed());
    }

    @DunlinTest
    @Execution(ExecutionMode.CONCURRENT)
    @ExtendWith(Watcher.class)
    static class SharedInParallel {
        static final CountDownLatch ONE_HAS_FAILED = new CountDownLatch(1);

        @BeforeAll
        static void begin(World world) {
            assertNotNull(world);
        }

        @RepeatedTest(2)
        void runsBesideAnother(World world) throws InterruptedException {
            assertTrue(ONE_HAS_FAILED.await(10, TimeUnit.SECONDS));
        }
    }

    static class Watcher implements TestWatcher {
        @Override
        public void testFailed(ExtensionContext context, Throwable cause) {
            SharedInParallel.ONE_HAS_FAILED.countDown();
        }
    }

    @Test
    void testsThatShareAWorldAreNotRunAtTheSameTime() {
        String failure = Run.of(SharedInParallel.class, true).failure();
        assertTrue(failure.startsWith("two tests that share a world run at the same time"), failure);
    }

    static class WithOptions {
        @RegisterExtension
        static final DunlinExtension DUNLIN =
            DunlinExtension.builder().strict().seed(7).frozen().fixture("shop.txt").ahead().build();
        static final Set<Object> DRAWN = new HashSet<>();

        @RepeatedTest(2)
        void beginsAsTheyAre(World world) {
            world.assertDiff("SET stock 7");
            assertEquals(world.now(), world.now());
            assertEquals("7", world.call("GET", "stock"));
            world.call("SADD", "members", "a", "b", "c", "d", "e", "f", "g", "h");
            DRAWN.add(world.call("SRANDMEMBER", "members", 5));
            world.call("EXPIRE", "members", 60);
        }
    }

    @Test
    void optionsInCodeAreThoseOfEachWorld() {
        Run run = Run.of(WithOptions.class, false);
        assertEquals(2, run.summary.getTotalFailureCount());
        assertTrue(run.output.contains("strict late-expire: "), run.output);
        assertEquals(1, WithOptions.DRAWN.size(), "the seed repeats what is drawn");
    }

    @DunlinTest(fixture = "shop.txt")
    static class WithFixture {
        @Test
        void beginsWithIt(World world) {
            world.assertDiff("SET stock 7");
        }
    }

    @DunlinTest(fixture = "none.txt")
    static class WithoutFixture {
        @Test
        void doesNotBegin(World world) {}
    }

    @Test
    void aFixtureIsFoundOnTheClassPathOrNamed() {
        Run.of(WithFixture.class, false).assertPassed(1);
        String failure = Run.of(WithoutFixture.class, false).summary.getFailures().get(0).getException().toString();
        assertTrue(failure.contains("there is no fixture 'none.txt', neither on the class path nor at /"), failure);
    }
}
