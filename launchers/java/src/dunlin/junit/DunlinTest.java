package dunlin.junit;

import dunlin.Level;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives each test of a class a world, as a parameter of the type {@link dunlin.World}.
 *
 * <p>In a test of Spring, the world belongs to the application context, whose properties {@code spring.data.redis.*}
 * lead into it; it is also a bean, and after each test it is rolled back.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
@ExtendWith(DunlinExtension.class)
public @interface DunlinTest {
    /** The level of the general rules of strict mode. With ERROR a test fails for what they find. */
    Level strict() default Level.OFF;

    /** A text or an RDB file that the world starts with: a resource of the class path, or else the path of a file. */
    String fixture() default "";

    /** In a test of Spring, further properties that are set to the URL of the world. */
    String[] properties() default {};
}
