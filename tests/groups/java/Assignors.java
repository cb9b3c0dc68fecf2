import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Asks Kafka's own assignors who gets what. It computes no assignment itself: it only carries what one step leaves to
 * the next, as clients and the group coordinator do.
 *
 * Each line of stdin is a scenario as JSON; each line of stdout its id, `expected` (assignor -> one entry a step) and
 * `insertion_order_sensitive_from_step` (found by six orders of the members). An assignor that throws is named under
 * `failed`. A scenario may hold questions too: `assignors` to run only those, `orders` to try so many orders, and
 * `timed` (repetitions) for `cpuSeconds` beside `expected`: what the calling thread spent in the assignor, one list for
 * each repetition, one figure a step.
 */
public final class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MAX_ROUNDS = 50;

    private static final Map<String, Supplier<Group>> GROUPS = new LinkedHashMap<>();

    static {
        GROUPS.put("range", () -> new ClassicGroup(RangeAssignor::new));
        GROUPS.put("roundrobin", () -> new ClassicGroup(RoundRobinAssignor::new));
        GROUPS.put("sticky", () -> new ClassicGroup(StickyAssignor::new));
        GROUPS.put("cooperative-sticky", () -> new ClassicGroup(CooperativeStickyAssignor::new));
        GROUPS.put("server-uniform", () -> new ServerGroup(new UniformAssignor()));
        GROUPS.put("server-range",
            () -> new ServerGroup(new org.apache.kafka.coordinator.group.assignor.RangeAssignor()));
    }

    record Topic(String name, Uuid id, int partitions, List<List<String>> racks) { }

    record Member(String id, List<String> topics, String instance, String rack, List<TopicPartition> owned,
                  Integer generation) {
        /** Who it is from step to step: a static member goes by its instance id. */
        String identity() {
            return instance == null ? "member " + id : "instance " + instance;
        }
    }

    record Step(List<Member> members, Map<String, Topic> topics) { }

    /** One rebalance after the other; an instance carries what its members own. */
    interface Group {
        /** Member id -> its partitions, for each rebalance of this step until nothing changes. */
        List<Map<String, List<TopicPartition>>> rebalance(Step step);

        boolean hasRounds();

        /** CPU nanoseconds spent in the assignor itself since the last call. */
        long takeNanos();
    }

    // ------------------------------------------------------------------------------------------------ classic groups

    record Held(List<TopicPartition> owned, int generation) { }

    static final class ClassicGroup implements Group {
        private final Supplier<ConsumerPartitionAssignor> assignors;
        private final boolean isCooperative;
        private Map<String, Held> held = new HashMap<>();
        private int generation = 0;
        private long nanos = 0;

        ClassicGroup(Supplier<ConsumerPartitionAssignor> assignors) {
            this.assignors = assignors;
            this.isCooperative = assignors.get() instanceof CooperativeStickyAssignor;
        }

        @Override
        public boolean hasRounds() {
            return isCooperative;
        }

        @Override
        public long takeNanos() {
            long taken = nanos;
            nanos = 0;
            return taken;
        }

        @Override
        public List<Map<String, List<TopicPartition>>> rebalance(Step step) {
            Map<String, Held> start = new HashMap<>();
            for (Member member : step.members()) {
                generation = Math.max(generation, member.generation() == null ? 0 : member.generation());
                start.put(member.identity(), brought(member));
            }
            held = start;
            List<Map<String, List<TopicPartition>>> rounds = new ArrayList<>();
            rounds.add(once(step));
            while (isCooperative && rounds.size() <= MAX_ROUNDS) {
                Map<String, Held> last = held;
                Map<String, List<TopicPartition>> next = once(step);
                if (isSame(rounds.get(rounds.size() - 1), next)) {
                    // Nobody has anything to give back, so no consumer would have joined again.
                    held = last;
                    generation--;
                    break;
                }
                rounds.add(next);
            }
            return rounds;
        }

        private Held brought(Member member) {
            Held left = held.get(member.identity());
            if (left == null && member.owned() == null && member.generation() == null) return null;
            return new Held(
                member.owned() != null ? member.owned() : left == null ? List.of() : left.owned(),
                member.generation() != null ? member.generation() : left == null ? -1 : left.generation());
        }

        private Map<String, List<TopicPartition>> once(Step step) {
            Map<String, ConsumerPartitionAssignor.Subscription> subscriptions = new HashMap<>();
            for (Member member : step.members()) subscriptions.put(member.id(), subscription(member));
            ConsumerPartitionAssignor assignor = assignors.get();
            Cluster cluster = cluster(step.topics().values());
            long start = cpuNanos();
            Map<String, ConsumerPartitionAssignor.Assignment> given =
                assignor.assign(cluster, new ConsumerPartitionAssignor.GroupSubscription(subscriptions))
                    .groupAssignment();
            nanos += cpuNanos() - start;
            generation++;
            Map<String, List<TopicPartition>> result = new HashMap<>();
            Map<String, Held> after = new HashMap<>();
            for (Member member : step.members()) {
                List<TopicPartition> owned = ConsumerProtocol.deserializeAssignment(
                    ConsumerProtocol.serializeAssignment(given.get(member.id()))).partitions();
                result.put(member.id(), owned);
                after.put(member.identity(), new Held(owned, generation));
            }
            held = after;
            return result;
        }

        /** What a member sends when it joins, once over the wire. */
        private ConsumerPartitionAssignor.Subscription subscription(Member member) {
            Held last = held.get(member.identity());
            ConsumerPartitionAssignor own = assignors.get();
            if (last != null) {
                own.onAssignment(new ConsumerPartitionAssignor.Assignment(last.owned()),
                    new ConsumerGroupMetadata("group", last.generation(), member.id(),
                        Optional.ofNullable(member.instance())));
            }
            ByteBuffer userData = own.subscriptionUserData(new HashSet<>(member.topics()));
            List<TopicPartition> owned = new ArrayList<>();
            if (isCooperative && last != null) {
                for (TopicPartition partition : last.owned()) {
                    if (member.topics().contains(partition.topic())) owned.add(partition);
                }
            }
            ConsumerPartitionAssignor.Subscription sent = new ConsumerPartitionAssignor.Subscription(
                // A consumer names its generation whatever its assignor (ConsumerCoordinator.metadata).
                member.topics(), userData, owned, last == null ? -1 : last.generation(),
                Optional.ofNullable(member.rack()));
            ConsumerPartitionAssignor.Subscription received = ConsumerProtocol.deserializeSubscription(
                ConsumerProtocol.serializeSubscription(sent));
            received.setGroupInstanceId(Optional.ofNullable(member.instance()));
            return received;
        }

        private static Cluster cluster(Iterable<Topic> topics) {
            Map<String, Node> nodes = new TreeMap<>();
            List<PartitionInfo> partitions = new ArrayList<>();
            for (Topic topic : topics) {
                for (int partition = 0; partition < topic.partitions(); partition++) {
                    List<Node> replicas = new ArrayList<>();
                    if (topic.racks() != null) {
                        for (String rack : topic.racks().get(partition)) {
                            replicas.add(nodes.computeIfAbsent(rack, r -> new Node(nodes.size(), "h", 9092, r)));
                        }
                    }
                    Node[] array = replicas.toArray(new Node[0]);
                    partitions.add(new PartitionInfo(topic.name(), partition, array.length == 0 ? null : array[0],
                        array, array));
                }
            }
            return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
        }
    }

    // ------------------------------------------------------------------------------------------------- KIP-848 groups

    static final class ServerGroup implements Group {
        private final PartitionAssignor assignor;
        private Map<String, Assignment> target = new HashMap<>();
        private long nanos = 0;

        ServerGroup(PartitionAssignor assignor) {
            this.assignor = assignor;
        }

        @Override
        public boolean hasRounds() {
            return false;
        }

        @Override
        public long takeNanos() {
            long taken = nanos;
            nanos = 0;
            return taken;
        }

        @Override
        public List<Map<String, List<TopicPartition>>> rebalance(Step step) {
            Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
            Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
            for (Member member : step.members()) {
                // What a member says it owns plays no part: the coordinator goes by its own target assignment.
                Assignment owned = target.getOrDefault(member.identity(), Assignment.EMPTY);
                owned.partitions().forEach((id, partitions) -> partitions.forEach(partition ->
                    inverted.computeIfAbsent(id, unused -> new HashMap<>()).put(partition, member.id())));
                members.put(member.id(), new MemberSubscriptionAndAssignmentImpl(
                    Optional.ofNullable(member.rack()), Optional.ofNullable(member.instance()),
                    subscribedIds(member, step.topics()), owned));
            }
            GroupSpecImpl group = new GroupSpecImpl(
                Collections.unmodifiableMap(members), type(step.members()), inverted);
            SubscribedTopicDescriber describer = new Describer(step.topics().values());
            long start = cpuNanos();
            GroupAssignment given = assignor.assign(group, describer);
            nanos += cpuNanos() - start;
            return List.of(keep(step, given));
        }

        private Map<String, List<TopicPartition>> keep(Step step, GroupAssignment given) {
            Map<Uuid, String> names = new HashMap<>();
            step.topics().values().forEach(topic -> names.put(topic.id(), topic.name()));
            Map<String, Assignment> after = new HashMap<>();
            Map<String, List<TopicPartition>> result = new HashMap<>();
            for (Member member : step.members()) {
                MemberAssignment one = given.members().get(member.id());
                Assignment kept = one == null ? Assignment.EMPTY : recorded(one.partitions());
                after.put(member.identity(), kept);
                List<TopicPartition> owned = new ArrayList<>();
                kept.partitions().forEach((id, partitions) -> partitions.forEach(
                    partition -> owned.add(new TopicPartition(names.get(id), partition))));
                result.put(member.id(), owned);
            }
            target = after;
            return result;
        }

        /** A target assignment as it comes back from its record in __consumer_offsets. */
        private static Assignment recorded(Map<Uuid, Set<Integer>> partitions) {
            return Assignment.fromRecord((ConsumerGroupTargetAssignmentMemberValue) GroupCoordinatorRecordHelpers
                .newConsumerGroupTargetAssignmentRecord("group", "member", partitions).value().message());
        }

        /** As TopicIds walks them: the names in the order of their hash set, those without a topic left out. */
        private static Set<Uuid> subscribedIds(Member member, Map<String, Topic> topics) {
            Set<Uuid> ids = new LinkedHashSet<>();
            for (String name : new HashSet<>(member.topics())) {
                if (topics.containsKey(name)) ids.add(topics.get(name).id());
            }
            return ids;
        }

        /** As ModernGroup.subscriptionType: by names, whether the topic exists or not. */
        private static SubscriptionType type(List<Member> members) {
            Map<String, Integer> counts = new HashMap<>();
            members.forEach(member ->
                new HashSet<>(member.topics()).forEach(name -> counts.merge(name, 1, Integer::sum)));
            return counts.values().stream().allMatch(count -> count == members.size())
                ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        }
    }

    static final class Describer implements SubscribedTopicDescriber {
        private final Map<Uuid, Topic> topics = new HashMap<>();

        Describer(Iterable<Topic> topics) {
            topics.forEach(topic -> this.topics.put(topic.id(), topic));
        }

        @Override
        public int numPartitions(Uuid id) {
            Topic topic = topics.get(id);
            return topic == null ? -1 : topic.partitions();
        }

        @Override
        public Set<String> racksForPartition(Uuid id, int partition) {
            Topic topic = topics.get(id);
            return topic == null || topic.racks() == null ? Set.of() : new HashSet<>(topic.racks().get(partition));
        }
    }

    // ------------------------------------------------------------------------------------------------------- scenarios

    static List<Step> steps(JsonNode scenario) {
        List<Step> steps = new ArrayList<>();
        Map<String, Topic> topics = topics(scenario.get("topics"));
        for (JsonNode step : scenario.get("steps")) {
            if (step.has("topics")) topics = topics(step.get("topics"));
            List<Member> members = new ArrayList<>();
            for (JsonNode member : step.get("members")) members.add(member(member));
            steps.add(new Step(members, topics));
        }
        return steps;
    }

    private static Map<String, Topic> topics(JsonNode list) {
        Map<String, Topic> topics = new LinkedHashMap<>();
        for (JsonNode topic : list) {
            String name = topic.get("name").asText();
            List<List<String>> racks = null;
            if (topic.hasNonNull("racks")) {
                racks = new ArrayList<>();
                for (JsonNode partition : topic.get("racks")) racks.add(texts(partition));
            }
            topics.put(name, new Topic(name, Uuid.fromString(topic.get("id").asText()),
                topic.get("partitions").asInt(), racks));
        }
        return topics;
    }

    private static Member member(JsonNode member) {
        List<TopicPartition> owned = null;
        if (member.hasNonNull("owned")) {
            owned = new ArrayList<>();
            for (String topic : new TreeSet<>(fieldNames(member.get("owned")))) {
                for (JsonNode partition : member.get("owned").get(topic)) {
                    owned.add(new TopicPartition(topic, partition.asInt()));
                }
            }
        }
        return new Member(member.get("id").asText(), texts(member.get("topics")),
            member.hasNonNull("instance") ? member.get("instance").asText() : null,
            member.hasNonNull("rack") ? member.get("rack").asText() : null, owned,
            member.hasNonNull("generation") ? member.get("generation").asInt() : null);
    }

    private static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    private static List<String> fieldNames(JsonNode object) {
        List<String> names = new ArrayList<>();
        object.fieldNames().forEachRemaining(names::add);
        return names;
    }

    // --------------------------------------------------------------------------------------------------------- results

    private static boolean isSame(Map<String, List<TopicPartition>> one, Map<String, List<TopicPartition>> other) {
        return sorted(one).equals(sorted(other));
    }

    private static Map<String, Map<String, TreeSet<Integer>>> sorted(Map<String, List<TopicPartition>> assignment) {
        Map<String, Map<String, TreeSet<Integer>>> sorted = new TreeMap<>();
        assignment.forEach((member, partitions) -> {
            Map<String, TreeSet<Integer>> own = new TreeMap<>();
            partitions.forEach(partition ->
                own.computeIfAbsent(partition.topic(), unused -> new TreeSet<>()).add(partition.partition()));
            sorted.put(member, own);
        });
        return sorted;
    }

    private static ObjectNode stats(Step step, Map<String, List<TopicPartition>> assignment,
                                    Map<TopicPartition, String> before) {
        List<Integer> sizes = new ArrayList<>();
        Set<String> present = new HashSet<>();
        long moved = 0;
        for (Member member : step.members()) {
            sizes.add(assignment.get(member.id()).size());
            present.add(member.identity());
        }
        if (before != null) {
            for (Map.Entry<TopicPartition, String> now : owners(step, assignment).entrySet()) {
                String previous = before.get(now.getKey());
                if (previous != null && present.contains(previous) && !previous.equals(now.getValue())) moved++;
            }
        }
        sizes.sort(Comparator.naturalOrder());
        long score = 0;
        for (int i = 0; i < sizes.size(); i++) score += (long) sizes.get(i) * (2L * i + 1 - sizes.size());
        ObjectNode stats = JSON.createObjectNode();
        stats.put("max", sizes.isEmpty() ? 0 : sizes.get(sizes.size() - 1));
        stats.put("min", sizes.isEmpty() ? 0 : sizes.get(0));
        if (before != null) stats.put("moved_from_survivors", moved);
        stats.put("pair_score", score);
        return stats;
    }

    private static Map<TopicPartition, String> owners(Step step, Map<String, List<TopicPartition>> assignment) {
        Map<TopicPartition, String> owners = new HashMap<>();
        for (Member member : step.members()) {
            assignment.get(member.id()).forEach(partition -> owners.put(partition, member.identity()));
        }
        return owners;
    }

    private static ArrayNode results(Group group, List<Step> steps) {
        ArrayNode results = JSON.createArrayNode();
        Map<TopicPartition, String> before = null;
        for (Step step : steps) {
            List<Map<String, List<TopicPartition>>> rounds = group.rebalance(step);
            Map<String, List<TopicPartition>> last = rounds.get(rounds.size() - 1);
            ObjectNode result = results.addObject();
            if (group.hasRounds()) {
                ArrayNode all = result.putArray("rounds");
                rounds.forEach(round -> all.add(JSON.<JsonNode>valueToTree(sorted(round))));
            } else {
                result.set("assignment", JSON.<JsonNode>valueToTree(sorted(last)));
            }
            result.set("stats", stats(step, last, before));
            before = owners(step, last);
        }
        return results;
    }

    private static List<Step> reordered(List<Step> steps, int order) {
        List<Step> others = new ArrayList<>();
        for (Step step : steps) {
            List<Member> members = new ArrayList<>(step.members());
            if (order == 1) Collections.reverse(members);
            if (order == 2) members.sort(Comparator.comparing(Member::id));
            if (order > 2) Collections.shuffle(members, new Random(order));
            others.add(new Step(members, step.topics()));
        }
        return others;
    }

    private static ObjectNode run(JsonNode scenario) {
        List<Step> steps = steps(scenario);
        ObjectNode answer = JSON.createObjectNode();
        answer.set("id", scenario.path("id"));
        ObjectNode expected = answer.putObject("expected");
        ObjectNode sensitive = answer.putObject("insertion_order_sensitive_from_step");
        Set<String> wanted = new TreeSet<>(
            scenario.has("assignors") ? texts(scenario.get("assignors")) : GROUPS.keySet());
        ObjectNode failed = JSON.createObjectNode();
        for (String name : wanted) {
            ArrayNode results;
            try {
                results = results(GROUPS.get(name).get(), steps);
            } catch (RuntimeException error) {
                failed.put(name, error.toString());
                continue;
            }
            expected.set(name, results);
            int first = results.size();
            for (int order = 1; order < scenario.path("orders").asInt(6); order++) {
                ArrayNode other = results(GROUPS.get(name).get(), reordered(steps, order));
                for (int step = 0; step < first; step++) {
                    if (!without(results.get(step)).equals(without(other.get(step)))) first = step;
                }
            }
            if (first < results.size()) sensitive.put(name, first);
        }
        if (!failed.isEmpty()) answer.set("failed", failed);
        if (scenario.has("timed")) time(scenario.get("timed").asInt(), wanted, steps, answer.putObject("cpuSeconds"));
        return answer;
    }

    private static JsonNode without(JsonNode result) {
        return result.has("rounds") ? result.get("rounds") : result.get("assignment");
    }

    private static void time(int repetitions, Set<String> assignors, List<Step> steps, ObjectNode answer) {
        for (String name : assignors) {
            ArrayNode all = answer.putArray(name);
            for (int repetition = 0; repetition < repetitions; repetition++) {
                Group group = GROUPS.get(name).get();
                ArrayNode one = all.addArray();
                for (Step step : steps) {
                    group.rebalance(step);
                    one.add(group.takeNanos() / 1e9);
                }
            }
        }
    }

    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
        }
        answers.flush();
    }
}
