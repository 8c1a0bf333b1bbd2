package dunlin.spring;

import dunlin.DunlinException;
import dunlin.World;
import dunlin.junit.DunlinTest;
import dunlin.junit.Settings;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextConfigurationAttributes;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.ContextCustomizerFactory;
import org.springframework.test.context.MergedContextConfiguration;
import org.springframework.test.context.TestContextAnnotationUtils;
import org.springframework.util.ClassUtils;

/** Gives the application context of a class with {@link DunlinTest} a world: as a bean, and in its properties. */
public final class WorldCustomizerFactory implements ContextCustomizerFactory {
    private static final boolean IS_NESTING_KNOWN = ClassUtils.isPresent(
        "org.springframework.test.context.TestContextAnnotationUtils", WorldCustomizerFactory.class.getClassLoader());

    @Override
    public ContextCustomizer createContextCustomizer(Class<?> test, List<ContextConfigurationAttributes> attributes) {
        DunlinTest annotation = IS_NESTING_KNOWN ? Nesting.find(test)
            : AnnotatedElementUtils.findMergedAnnotation(test, DunlinTest.class);
        return annotation == null ? null : new WorldCustomizer(Settings.of(annotation));
    }

    /** What Spring knows from 5.3 on. Every Spring asks this factory, and for each of its tests. */
    private static final class Nesting {
        static DunlinTest find(Class<?> test) {
            return TestContextAnnotationUtils.findMergedAnnotation(test, DunlinTest.class);
        }
    }

    /** Spring keeps contexts for classes whose customizers are equal, which records of equal settings are. */
    record WorldCustomizer(Settings settings) implements ContextCustomizer {
        @Override
        public void customizeContext(ConfigurableApplicationContext context, MergedContextConfiguration configuration) {
            World world = settings.world();
            // Spring Boot 3 and 4 name the properties alike. The URL goes before the others, but some applications use
            // the others, and some the host and the port alone: that port is the world's own.
            Map<String, Object> properties = new LinkedHashMap<>();
            properties.put("spring.data.redis.url", world.url());
            properties.put("spring.data.redis.host", world.host());
            try {
                properties.putAll(ports(world));
            } catch (DunlinException error) {
                world.close();
                throw error;
            }
            properties.put("spring.data.redis.username", world.username());
            properties.put("spring.data.redis.password", world.password());
            for (String name : settings.properties()) properties.put(name, world.url());
            context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("dunlin", properties));
            DefaultListableBeanFactory beans = (DefaultListableBeanFactory) context.getBeanFactory();
            beans.registerSingleton("dunlin", world);
            // Singletons are destroyed in the reverse order, so the world goes after the application's clients.
            beans.registerDisposableBean("dunlin", world::close);
        }

        private static Map<String, Object> ports(World world) {
            try {
                return Map.of("spring.data.redis.port", world.port());
            } catch (DunlinException error) {
                if (!world.isCluster()) throw error;
            }
            if (!String.valueOf(world.server().call("CLUSTER", "INFO")).contains("cluster_known_nodes:1\r")) {
                throw new DunlinException("the world of an application context is rolled back after each test, and a snapshot is that "
                    + "of one node: start a cluster of one node, with '--cluster 1', which clients for clusters take as well");
            }
            // Then Spring makes a client for clusters, which sends the user name of the world to each node.
            int port = world.server().port();
            return Map.of("spring.data.redis.port", port, "spring.data.redis.cluster.nodes", world.host() + ":" + port);
        }
    }
}
