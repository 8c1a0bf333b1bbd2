package dunlin.spring;

import dunlin.World;
import java.util.Optional;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.commons.support.AnnotationSupport;

/** Whether a test is one of Spring, and which world its application context has. Without Spring no test is. */
public final class ContextWorld {
    private static final String EXTENSION = "org.springframework.test.context.junit.jupiter.SpringExtension";

    private ContextWorld() {}

    public static boolean has(ExtensionContext context) {
        for (var each = Optional.of(context); each.isPresent(); each = each.get().getParent()) {
            if (each.get().getElement().filter(Class.class::isInstance).isEmpty()) continue;
            var extensions = AnnotationSupport.findRepeatableAnnotations(each.get().getElement(), ExtendWith.class);
            for (ExtendWith extension : extensions) {
                for (Class<?> one : extension.value()) if (one.getName().equals(EXTENSION)) return true;
            }
        }
        return false;
    }

    public static World of(ExtensionContext context) {
        return Bean.of(context);
    }

    /** Apart, so that Spring's classes are needed only where they are. */
    private static final class Bean {
        static World of(ExtensionContext context) {
            var application = org.springframework.test.context.junit.jupiter.SpringExtension.getApplicationContext(context);
            return application.getBean(World.class);
        }
    }
}
