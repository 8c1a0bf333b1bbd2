package dunlin.junit;

import dunlin.Dunlin;
import org.junit.platform.launcher.LauncherSession;
import org.junit.platform.launcher.LauncherSessionListener;

/**
 * Starts the program when JUnit begins to look for tests, if the system property {@code dunlin.ahead} or the variable
 * DUNLIN_AHEAD is {@code true}.
 */
public final class AheadListener implements LauncherSessionListener {
    @Override
    public void launcherSessionOpened(LauncherSession session) {
        if (Dunlin.isStartedAhead()) Dunlin.startAhead();
    }
}
