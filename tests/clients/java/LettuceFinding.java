// Reads a key of a cluster with Lettuce for each line of its input:
// `java -cp ... LettuceFinding.java PORT PROTOCOL KEY`.

import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.Scanner;

public class LettuceFinding {
    public static void main(String[] arguments) {
        RedisClusterClient client =
            RedisClusterClient.create(RedisURI.create("127.0.0.1", Integer.parseInt(arguments[0])));
        // It asks only the node that it is given for the slots, and again after a redirect.
        ClusterTopologyRefreshOptions refresh = ClusterTopologyRefreshOptions.builder()
            .dynamicRefreshSources(false)
            .enableAllAdaptiveRefreshTriggers()
            .adaptiveRefreshTriggersTimeout(Duration.ofMillis(10))
            .build();
        ProtocolVersion protocol = arguments[1].equals("3") ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2;
        client.setOptions(
            ClusterClientOptions.builder().protocolVersion(protocol).topologyRefreshOptions(refresh).build());
        RedisAdvancedClusterCommands<String, String> commands = client.connect().sync();
        for (Scanner input = new Scanner(System.in); input.hasNextLine(); input.nextLine()) {
            System.out.println(commands.get(arguments[2]));
        }
        client.shutdown();
    }
}
