package dunlin.junit;

import dunlin.Dunlin;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/**
 * Starts the program when JUnit is about to run tests of which a class has {@link DunlinTest}: in the background, while
 * JUnit loads what it needs to run them. Where no class has it nothing starts.
 *
 * <p>Apart from {@link AheadListener}, whose interface is unknown before JUnit 5.8.
 */
public final class PlanListener implements TestExecutionListener {
    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
        if (!Dunlin.mayStartAhead()) return;
        boolean isNeeded = plan.getRoots().stream()
            .filter(root -> root.getUniqueId().contains("[engine:junit-jupiter]"))
            .anyMatch(root -> plan.getDescendants(root).stream().anyMatch(PlanListener::takesWorlds));
        if (isNeeded) Dunlin.startAhead();
    }

    private static boolean takesWorlds(TestIdentifier test) {
        return test.getSource().orElse(null) instanceof ClassSource source
            && AnnotationSupport.isAnnotated(source.getJavaClass(), DunlinTest.class);
    }
}
