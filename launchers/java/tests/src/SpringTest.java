import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dunlin.Dunlin;
import dunlin.Level;
import dunlin.World;
import dunlin.junit.DunlinTest;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.annotation.DirtiesContext.ClassMode;
import org.springframework.test.context.ContextCustomizerFactory;
import redis.clients.jedis.Jedis;

/** What tests of Spring Boot get: their context has a world, and each of them begins with that of the context. */
class SpringTest {
    @Configuration
    @EnableAutoConfiguration
    static class Application {}

    private static World first;

    @SpringBootTest(classes = Application.class)
    @DunlinTest(fixture = "shop.txt", properties = "shop.redis-url")
    static class ShopCases {
        @Autowired
        StringRedisTemplate redis;

        @Autowired
        World dunlin;

        @Value("${shop.redis-url}")
        String url;

        @Value("${spring.data.redis.host}")
        String host;

        @Value("${spring.data.redis.port}")
        int port;

        @Test
        void anApplicationThatLooksAtTheHostAndThePortAloneIsInTheWorld() {
            try (Jedis jedis = new Jedis(host, port)) {
                assertEquals("7", jedis.get("stock"));
            }
        }

        @RepeatedTest(2)
        void eachTestBeginsWithTheFixture(World world) {
            assertSame(dunlin, world);
            assertEquals(world.url(), url);
            assertEquals(6L, redis.opsForValue().decrement("stock"));
            redis.opsForValue().set("session", "ann", Duration.ofMinutes(1));
            world.advance(Duration.ofMinutes(1));
            assertFalse(redis.hasKey("session"));
            world.journal().command("DECR").expectAtMost(1);
            first = world;
        }

        @Nested
        class Inside {
            @BeforeAll
            static void fill(@Autowired StringRedisTemplate redis) {
                redis.opsForValue().set("class", "1");
            }

            @RepeatedTest(2)
            void whatIsThereBeforeAllTestsIsThereBeforeEach(World world) {
                assertEquals("1", redis.opsForValue().getAndDelete("class"));
                world.assertDiff("SET stock 7");
            }
        }
    }

    @SpringBootTest(classes = Application.class)
    @DunlinTest(fixture = "shop.txt", properties = "shop.redis-url")
    static class SameContextCases {
        @Test
        void aContextOfEqualSettingsIsShared(@Autowired World world, @Autowired RedisConnectionFactory connections) {
            assertSame(first, world);
            world.assertDiff("SET stock 7");
            assertEquals("PONG", connections.getConnection().ping());
        }
    }

    @SpringBootTest(classes = Application.class)
    @DunlinTest(strict = Level.ERROR)
    static class OtherContextCases {
        @Autowired
        StringRedisTemplate redis;

        @Test
        void anotherContextHasAnotherWorld(World world) {
            assertNotSame(first, world);
            redis.opsForValue().set("key", "value");
            world.assertDiff("SET key value");
        }

        @Test
        void aFindingFailsTheTest() {
            redis.opsForSet().add("seen", "event");
            try {
                redis.expire("seen", Duration.ofMinutes(1));
            } catch (org.springframework.dao.DataAccessException ignored) {
                // As an application may do.
            }
        }
    }

    @SpringBootTest(classes = Application.class)
    @DunlinTest(fixture = "shop.txt")
    @DirtiesContext(classMode = ClassMode.AFTER_EACH_TEST_METHOD)
    static class DirtyCases {
        @RepeatedTest(2)
        void aContextThatIsReplacedHasAWorldOfItsOwn(World world, @Autowired StringRedisTemplate redis) {
            assertNotSame(first, world);
            first = world;
            assertEquals(6L, redis.opsForValue().decrement("stock"));
        }
    }

    @SpringBootTest(classes = Application.class)
    @DunlinTest
    @DirtiesContext
    static class ClusterCases {
        @Autowired
        StringRedisTemplate redis;

        @RepeatedTest(2)
        void eachTestBeginsWithTheWorldOfItsContext(World world) {
            assertTrue(world.isCluster());
            for (String key : List.of("a", "b", "c", "d")) assertTrue(redis.opsForValue().setIfAbsent(key, "value"));
            assertEquals(0L, world.server().call("DBSIZE"));
        }
    }

    static ExtensionTest.Run runOnCluster(String nodes) {
        Dunlin.shared().close();
        try (Dunlin cluster = Dunlin.start("--cluster", nodes)) {
            System.setProperty("dunlin.url", cluster.url());
            return ExtensionTest.Run.of(ClusterCases.class, false);
        } finally {
            System.clearProperty("dunlin.url");
            Dunlin.shared().close();
        }
    }

    @Test
    void aContextHasAWorldOnAClusterOfOneNodeToo() {
        runOnCluster("1").assertPassed(2);
    }

    @Test
    void aContextIsRefusedAWorldOfSeveralNodesInASentence() {
        var run = runOnCluster("3");
        assertEquals(0, run.summary().getTestsSucceededCount());
        Throwable cause = run.summary().getFailures().get(0).getException();
        while (cause.getCause() != null) cause = cause.getCause();
        assertTrue(cause.getMessage().endsWith("with '--cluster 1', which clients for clusters take as well"), cause::toString);
    }

    /** Has no {@code TestContextAnnotationUtils}, as Spring before 5.3, and classes of this package of its own. */
    static final class OlderSpring extends ClassLoader {
        OlderSpring() {
            super(SpringTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolves) throws ClassNotFoundException {
            if (name.endsWith(".TestContextAnnotationUtils")) throw new ClassNotFoundException(name);
            if (!name.startsWith("dunlin.spring.")) return super.loadClass(name, resolves);
            try (var code = getResourceAsStream(name.replace('.', '/') + ".class")) {
                byte[] bytes = code.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }

    @Test
    void anOlderSpringRunsTestsWithWorldsAndWithout() throws Exception {
        var factory = (ContextCustomizerFactory) new OlderSpring().loadClass("dunlin.spring.WorldCustomizerFactory")
            .getConstructor().newInstance();
        assertNull(factory.createContextCustomizer(SpringTest.class, List.of()));
        assertNotNull(factory.createContextCustomizer(ShopCases.class, List.of()));
    }

    @Test
    void contextsHaveWorldsAndTestsAreRolledBack() {
        ExtensionTest.Run.of(ShopCases.class, false).assertPassed(5);
        ExtensionTest.Run.of(SameContextCases.class, false).assertPassed(1);
        ExtensionTest.Run.of(DirtyCases.class, false).assertPassed(2);
        assertTrue(first.isClosed());
        var run = ExtensionTest.Run.of(OtherContextCases.class, false);
        assertEquals(1, run.summary().getTestsSucceededCount());
        assertTrue(run.failure().contains("late-expire"), run::failure);
    }
}
