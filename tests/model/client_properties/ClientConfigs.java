import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;

/**
 * Tells what Kafka's clients on the class path know of properties; it decides nothing itself.
 *
 * First a line for each name that AdminClient, Consumer or Producer know, then an empty one. Then, for each line
 * NAME=VALUE of stdin, whether the AdminClient takes it: "true", "false", or "unknown" for a name that it has not.
 */
public final class ClientConfigs {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        List<ConfigDef> clients = List.of(AdminClientConfig.configDef(), ConsumerConfig.configDef(), ProducerConfig.configDef());
        Stream<String> names = clients.stream().flatMap(client -> client.names().stream());
        names.collect(Collectors.toCollection(TreeSet::new)).forEach(out::println);
        out.println();
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            int end = line.indexOf('=');
            out.println(taken(line.substring(0, end), line.substring(end + 1)));
        }
    }

    private static String taken(String name, String value) {
        ConfigDef.ConfigKey key = AdminClientConfig.configDef().configKeys().get(name);
        if (key == null) {
            return "unknown";
        }
        try {
            Object parsed = ConfigDef.parseType(name, value, key.type);
            if (key.validator != null) {
                key.validator.ensureValid(name, parsed);
            }
            return "true";
        } catch (ConfigException refused) {
            return "false";
        }
    }
}
