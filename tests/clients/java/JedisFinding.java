// Reads a key of a cluster with Jedis for each line of its input:
// `java -cp ... JedisFinding.java PORT PROTOCOL KEY`.

import java.util.Scanner;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.RedisProtocol;

public class JedisFinding {
    public static void main(String[] arguments) {
        HostAndPort place = new HostAndPort("127.0.0.1", Integer.parseInt(arguments[0]));
        RedisProtocol protocol = arguments[1].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2;
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().protocol(protocol).build();
        try (JedisCluster cluster = new JedisCluster(Set.of(place), config)) {
            for (Scanner input = new Scanner(System.in); input.hasNextLine(); input.nextLine()) {
                System.out.println(cluster.get(arguments[2]));
            }
        }
    }
}
