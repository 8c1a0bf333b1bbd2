package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.IntegerOutput;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.data.redis.connection.lettuce.LettuceConnection;
import org.springframework.data.redis.core.StringRedisTemplate;

@SpringBootTest
class ShopTest {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    @Autowired
    StringRedisTemplate redis;

    @Autowired
    Shop.Orders orders;

    @Autowired
    Shop.Prices prices;

    @BeforeEach
    void tenApples() {
        redis.opsForHash().put("stock", "apple", "10");
    }

    @Test
    void anOrderIsSoldAndAcknowledged() {
        orders.place("ann", "apple", 2);
        assertEquals("ann", redis.opsForList().leftPop("sold", PATIENCE));
        assertEquals("8", redis.opsForHash().get("stock", "apple"));
    }

    @Test
    void noPieceIsSoldTwice() {
        for (int user = 0; user < 15; user++) orders.place("user" + user, "apple", 1);
        Set<String> users = new HashSet<>();
        for (int sold = 0; sold < 10; sold++) users.add(redis.opsForList().leftPop("sold", PATIENCE));
        for (int late = 0; late < 5; late++) users.add(redis.opsForList().leftPop("sold-out", PATIENCE));
        assertEquals(15, users.size());
        assertNull(redis.opsForList().leftPop("sold"));
        assertEquals("0", redis.opsForHash().get("stock", "apple"));
    }

    @Test
    void aPriceIsAskedForAgainAfterTenMinutes() {
        int price = prices.of("apple");
        assertEquals(price, prices.of("apple"));
        assertEquals(600, redis.getExpire("prices::apple", TimeUnit.SECONDS), 1);
        advance(Duration.ofMinutes(10));
        assertNotEquals(price, prices.of("apple"));
    }

    /** Moves the clock of the server. */
    private void advance(Duration duration) {
        try (var connection = (LettuceConnection) redis.getRequiredConnectionFactory().getConnection()) {
            byte[] milliseconds = String.valueOf(duration.toMillis()).getBytes();
            connection.execute("DUNLIN", new IntegerOutput<>(ByteArrayCodec.INSTANCE), "ADVANCE".getBytes(), milliseconds);
        }
    }
}
