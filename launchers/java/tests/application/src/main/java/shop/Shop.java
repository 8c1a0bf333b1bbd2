package shop;

import java.util.List;
import java.util.Map;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.context.annotation.Bean;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;
import org.springframework.stereotype.Service;

/** A shop whose orders are a stream that workers read, and whose prices are cached. Its settings name no Redis. */
@SpringBootApplication
@EnableCaching
public class Shop {
    static final String ORDERS = "orders";
    static final String WORKERS = "workers";

    @Bean(destroyMethod = "stop")
    StreamMessageListenerContainer<String, MapRecord<String, String, String>> workers(
            RedisConnectionFactory factory, StringRedisTemplate redis, Orders orders) {
        redis.opsForStream().createGroup(ORDERS, ReadOffset.from("0"), WORKERS);
        var container = StreamMessageListenerContainer.create(factory);
        container.receive(
                Consumer.from(WORKERS, "worker"), StreamOffset.create(ORDERS, ReadOffset.lastConsumed()), orders::sell);
        container.start();
        return container;
    }

    @Service
    static class Orders {
        /** Takes pieces out of the stock, all of them or none. */
        private static final RedisScript<Boolean> TAKE = RedisScript.of(
                """
                local left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
                if left < tonumber(ARGV[2]) then return false end
                redis.call('HINCRBY', KEYS[1], ARGV[1], -ARGV[2])
                return true
                """,
                Boolean.class);

        private final StringRedisTemplate redis;

        Orders(StringRedisTemplate redis) {
            this.redis = redis;
        }

        void place(String user, String product, int count) {
            redis.opsForStream().add(ORDERS, Map.of("user", user, "product", product, "count", "" + count));
        }

        void sell(MapRecord<String, String, String> order) {
            Map<String, String> fields = order.getValue();
            boolean taken = Boolean.TRUE.equals(
                    redis.execute(TAKE, List.of("stock"), fields.get("product"), fields.get("count")));
            redis.opsForList().rightPush(taken ? "sold" : "sold-out", fields.get("user"));
            redis.opsForStream().acknowledge(ORDERS, WORKERS, order.getId());
        }
    }

    @Service
    static class Prices {
        private int calls;

        /** Asks far away; the answer is kept for as long as the settings say. */
        @Cacheable("prices")
        public int of(String product) {
            return product.length() * 100 + ++calls;
        }
    }
}
