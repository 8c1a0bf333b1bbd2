package dunlin.spring;

import dunlin.World;
import dunlin.junit.DunlinTest;
import dunlin.junit.Settings;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextConfigurationAttributes;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.ContextCustomizerFactory;
import org.springframework.test.context.MergedContextConfiguration;
import org.springframework.test.context.TestContextAnnotationUtils;

/** Gives the application context of a class with {@link DunlinTest} a world: as a bean, and in its properties. */
public final class WorldCustomizerFactory implements ContextCustomizerFactory {
    @Override
    public ContextCustomizer createContextCustomizer(Class<?> test, List<ContextConfigurationAttributes> attributes) {
        DunlinTest annotation = TestContextAnnotationUtils.findMergedAnnotation(test, DunlinTest.class);
        return annotation == null ? null : new WorldCustomizer(Settings.of(annotation));
    }

    /** Spring keeps contexts for classes whose customizers are equal, which records of equal settings are. */
    record WorldCustomizer(Settings settings) implements ContextCustomizer {
        @Override
        public void customizeContext(ConfigurableApplicationContext context, MergedContextConfiguration configuration) {
            World world = settings.world();
            // Spring Boot 3 and 4 name the properties alike; the URL goes before the others, but not all applications
            // use it.
            Map<String, Object> properties = new LinkedHashMap<>();
            properties.put("spring.data.redis.url", world.url());
            properties.put("spring.data.redis.host", world.host());
            properties.put("spring.data.redis.port", world.server().port());
            properties.put("spring.data.redis.username", world.username());
            properties.put("spring.data.redis.password", world.password());
            for (String name : settings.properties()) properties.put(name, world.url());
            context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("dunlin", properties));
            DefaultListableBeanFactory beans = (DefaultListableBeanFactory) context.getBeanFactory();
            beans.registerSingleton("dunlin", world);
            // Singletons are destroyed in the reverse order, so the world goes after the application's clients.
            beans.registerDisposableBean("dunlin", world::close);
        }
    }
}
