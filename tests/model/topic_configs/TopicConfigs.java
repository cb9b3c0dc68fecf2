import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Tells what the broker on the class path knows of topic configs; it decides nothing itself.
 *
 * First one line of JSON for each key of the broker's ConfigDef: its type, default, the broker setting its default is
 * taken from, and the text of its validator. Then, for each line of stdin, a JSON object {"configs": {...},
 * "existing": {...}}, one line: why a controller with tiered storage refuses to alter a topic to these overrides, or null.
 */
public final class TopicConfigs {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        for (Map.Entry<String, ConfigDef.ConfigKey> entry : new TreeMap<>(LogConfig.configKeys()).entrySet()) {
            OUT.println(JSON.writeValueAsString(described(entry.getKey(), entry.getValue())));
        }
        OUT.println();
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            JsonNode question = JSON.readTree(line);
            OUT.println(JSON.writeValueAsString(refusal(texts(question.get("configs")), texts(question.get("existing")))));
        }
        OUT.flush();
    }

    private static ObjectNode described(String name, ConfigDef.ConfigKey key) {
        ObjectNode told = JSON.createObjectNode().put("key", name).put("type", key.type.name());
        told.put("default", key.defaultValue == null ? null : ConfigDef.convertToString(key.defaultValue, key.type));
        told.put("brokerKey", LogConfig.configDefCopy().getConfigValue(key, "Server Default Property"));
        told.put("validator", key.validator == null ? null : key.validator.toString().trim());
        return told;
    }

    private static String refusal(Map<String, String> configs, Map<String, String> existing) throws Exception {
        try {
            validate(configs, existing);
            return null;
        } catch (InvocationTargetException refused) {
            return refused.getCause().getMessage();
        }
    }

    /** As ControllerConfigurationValidator calls it; the method's parameters differ between versions. */
    private static void validate(Map<String, String> configs, Map<String, String> existing) throws Exception {
        Method method = Arrays.stream(LogConfig.class.getMethods())
            .filter(each -> each.getName().equals("validate") && each.getParameterCount() > 1).findFirst().orElseThrow();
        Properties properties = new Properties();
        properties.putAll(configs);
        boolean takesProperties = method.getParameterTypes()[1] == Properties.class;
        // Any setting of the broker's own: without one, LogConfig skips the rules that hold between keys.
        Map<String, String> ofBroker = Map.of("preallocate", "false");
        List<Object> given = new ArrayList<>(Arrays.asList(existing, takesProperties ? properties : configs, ofBroker, true));
        if (method.getParameterCount() > given.size()) {
            given.add(false); // 3.9: not from ZooKeeper
        }
        method.invoke(null, given.toArray());
    }

    private static Map<String, String> texts(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        if (node != null) {
            node.fields().forEachRemaining(field -> found.put(field.getKey(), field.getValue().asText()));
        }
        return found;
    }
}
