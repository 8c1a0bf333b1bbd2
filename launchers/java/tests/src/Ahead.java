import dunlin.Dunlin;
import org.junit.platform.launcher.LauncherSession;
import org.junit.platform.launcher.core.LauncherFactory;

/** A process that opens a session of JUnit, and says which server that has started, and which one tests share. */
public final class Ahead {
    private Ahead() {}

    public static void main(String[] arguments) {
        LauncherSession session = LauncherFactory.openSession();
        try (session) {
            while (ProcessHandle.current().children().findAny().isEmpty()) Thread.onSpinWait();
            long started = ProcessHandle.current().children().findAny().orElseThrow().pid();
            System.out.println(started + " " + Dunlin.shared().pid());
        }
    }
}
