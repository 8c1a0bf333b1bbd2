import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import dunlin.Dunlin;
import dunlin.junit.DunlinTest;
import org.junit.jupiter.api.Test;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * A process that runs a test without worlds, then one of a class with them, which does not ask for its own. It says
 * which server it had after each, or 0, or 1 for one that is being started, and which one tests share.
 */
public final class Plans {
    private static boolean isAwaited;

    private Plans() {}

    static class PlainCase {
        @Test
        void needsNoServer() {}
    }

    @DunlinTest
    static class WorldCase {
        @Test
        void findsAServer() {
            long end = System.nanoTime() + 10_000_000_000L;
            while (isAwaited && running() == 0 && System.nanoTime() < end) Thread.onSpinWait();
        }
    }

    public static void main(String[] arguments) {
        isAwaited = arguments.length == 0;
        run(PlainCase.class);
        long plain = server();
        run(WorldCase.class);
        System.out.println(plain + " " + server() + " " + (isAwaited ? Dunlin.shared().pid() : 0));
    }

    private static void run(Class<?> test) {
        var request = LauncherDiscoveryRequestBuilder.request().selectors(selectClass(test)).build();
        LauncherFactory.create().execute(request);
    }

    private static long server() {
        // In this order: a server whose start has ended before the first look is found by the second one.
        boolean isStarting = Thread.getAllStackTraces().keySet().stream().anyMatch(thread -> thread.getName().equals("dunlin-start"));
        return running() == 0 && isStarting ? 1 : running();
    }

    private static long running() {
        return ProcessHandle.current().children().mapToLong(ProcessHandle::pid).findAny().orElse(0);
    }
}
