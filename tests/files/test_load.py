"""Whole folders of desired state: what they mean together, and every problem at its place."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from reconciler.files.load import load_desired
from reconciler.model.cluster import TOPIC_THROTTLES
from reconciler.model.desired import CAPACITIES, BrokerState, Desired, Even, Off, Placement, Protection, Spread, Within
from reconciler.model.problem import InvalidInput, Location
from reconciler.model.topic_configs import TOPIC_CONFIGS

HEAD = "apiVersion: reconciler/v1\n"
CLUSTER = HEAD + "kind: Cluster\nmetadata: {name: c}\nspec: {simulation: s.json}\n"
CANARY = "c4n4ry"
TWO_RACKS = (("a", 2), ("b", 1))


def topic(spec: str, name: str = "t") -> str:
    return f"{HEAD}kind: Topic\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def patterns(spec: str, names: str = "[a*]") -> str:
    return f"{HEAD}kind: Topic\nmetadata: {{names: {names}}}\nspec: {spec}\n"


def topic_class(spec: str, name: str = "k") -> str:
    return f"{HEAD}kind: TopicClass\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def mirror(spec: str) -> str:
    return f"{HEAD}kind: Mirror\nmetadata: {{name: m}}\nspec: {{source: us, topics: [a], {spec}}}\n---\n"


def cluster_with(spec: str) -> str:
    return f"{HEAD}kind: Cluster\nmetadata: {{name: c}}\nspec:\n  simulation: s.json\n  {spec}\n"


def write(root: Path, **files: str | bytes) -> Path:
    folder = root / "c"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"cluster": CLUSTER, **files}.items():
        path = folder / f"{name}.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def load(root: Path, **files: str | bytes) -> Desired:
    return load_desired(write(root, **files), "c")


def told(root: Path, **files: str | bytes) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        load(root, **files)
    return [str(problem) for problem in error.value.problems]


def test_capacity_by_measure_rates_and_their_limits_are_read(tmp_path: Path) -> None:
    spec = (
        "  client: {bootstrap.servers: 'k:9092'}\n"
        "  brokers: [{id: 7, capacity: {replicas: 2, network: 3}, rates: {networkIn: 1GiB/s}}, {id: 8, capacity: 4}]\n"
        "  balance: {leaderIn: {within: 10%}}\n"
        "  limits: {networkIn: 80%, networkOut: 100MiB/s}\n"
    )
    cluster = load(tmp_path, cluster=f"{HEAD}kind: Cluster\nmetadata: {{name: c}}\nspec:\n{spec}").cluster
    seven, eight = cluster.broker(7), cluster.broker(8)
    assert [seven.weight(measure) for measure in CAPACITIES] == [2, 1, 1, 3]
    assert [eight.weight(measure) for measure in CAPACITIES] == [4, 4, 4, 4]
    assert (seven.is_disk_weighed, eight.is_disk_weighed) == (False, True)
    assert seven.rates == {"networkIn": 1 << 30}
    assert cluster.limits.rates == {"networkIn": Fraction(4, 5), "networkOut": 100 << 20}
    assert cluster.limits.at["networkOut"].line == 8
    assert cluster.balance.leader_in == Within(Fraction(1, 10))


def test_a_cluster_document_is_read_whole(tmp_path: Path) -> None:
    text = f"""{HEAD}kind: Cluster
metadata: {{name: c, labels: {{environment: prod}}}}
spec:
  clusterId: abc
  client: {{bootstrap.servers: "k:9092", enable.x: true, n: 5, f: 1.50, sasl.password: "${{env:X}}"}}
  brokers:
    - {{id: 5, state: draining, reason: host retirement}}
    - {{id: 1, capacity: 2}}
  topics: {{managed: all, ignore: ["x*"], delete: allow}}
  balance: {{replicas: even, leaders: {{within: 2.5%}}, topics: off, disk: {{within: 10%}}}}
  moves: {{throttle: 50MiB/s, perBroker: 3, perPartition: 2, perStage: 7, electionBatch: 9, timeout: 90m}}
  limits: {{changedPartitions: 20%, movedBytes: 2TiB, diskUse: 80%}}
  windows: [{{days: [mon, tue], from: "22:00", to: "05:00", timezone: Europe/Berlin}}]
"""
    cluster = load(tmp_path, cluster=text).cluster
    assert (cluster.name, cluster.cluster_id, dict(cluster.labels)) == ("c", "abc", {"environment": "prod"})
    assert cluster.client == {
        "bootstrap.servers": "k:9092",
        "enable.x": "true",
        "n": "5",
        "f": "1.50",
        "sasl.password": "${env:X}",
    }
    assert list(cluster.brokers) == [1, 5]
    assert (cluster.broker(5).state, cluster.broker(5).reason) == (BrokerState.DRAINING, "host retirement")
    assert (cluster.broker(1).capacity, cluster.broker(9).capacity) == (2, 1)
    assert cluster.broker(5).at == Location("c/cluster.yaml", 8, 7)
    policy = cluster.topics
    assert (policy.is_all_managed, policy.ignore, policy.is_delete_allowed) == (True, ("x*",), True)
    balance = cluster.balance
    assert (balance.replicas, balance.topics, balance.network_in) == (Even(), Off(), Off())
    assert (balance.leaders, balance.disk) == (Within(Fraction(1, 40)), Within(Fraction(1, 10)))
    moves = cluster.moves
    assert (moves.throttle_bytes_per_second, moves.timeout_seconds) == (50 << 20, 5400)
    assert (moves.per_broker, moves.per_partition, moves.per_stage, moves.election_batch) == (3, 2, 7, 9)
    limits = cluster.limits
    assert (limits.changed_partitions, limits.moved_bytes, limits.disk_use) == (Fraction(1, 5), 2 << 40, Fraction(4, 5))
    assert limits.at["movedBytes"] == Location("c/cluster.yaml", 13, 36)
    (window,) = cluster.windows
    assert (window.days, window.start, window.end) == (("mon", "tue"), "22:00", "05:00")
    assert window.timezone == "Europe/Berlin"


def test_what_is_not_written_is_the_contracts_default(tmp_path: Path) -> None:
    cluster = load(tmp_path).cluster
    assert (cluster.topics.is_all_managed, cluster.topics.ignore) == (False, ("__*",))
    assert cluster.topics.is_delete_allowed is False
    assert (cluster.balance.replicas, cluster.balance.disk) == (Off(), Off())
    assert (cluster.moves.throttle_bytes_per_second, cluster.moves.timeout_seconds) == (None, 7200)
    assert (cluster.limits.changed_partitions, cluster.limits.moved_bytes, cluster.limits.disk_use) == (None,) * 3


def test_a_topic_lies_over_its_class_field_by_field(tmp_path: Path) -> None:
    below = topic_class(
        "{replicationFactor: 3, config: {retention.ms: 7d, min.insync.replicas: 2, x: 1}, protect: [delete],"
        " customConfigs: [x],"
        " placement: {racks: {spread: strict, only: [a, b, c]}, brokers: {except: [9]}}}"
    )
    over = topic(
        "{class: k, config: {retention.ms: 1d, x: null, y: 2}, customConfigs: [y], placement: {racks: {leader: [a]}}}"
    )
    found = load(tmp_path, classes=below, topics=over).topics["t"]
    assert found.replication_factor == 3
    assert found.config == {"min.insync.replicas": "2", "retention.ms": "86400000", "x": None, "y": "2"}
    assert found.custom_configs == {"x", "y"}
    assert found.placement == Placement(
        racks_spread=Spread.STRICT,
        racks_only=frozenset("abc"),
        racks_leader=frozenset("a"),
        brokers_except=frozenset({9}),
    )
    assert found.protect == {Protection.DELETE}
    assert found.at["config.retention.ms"].file == "c/topics.yaml"
    assert found.at["config.min.insync.replicas"].file == "c/classes.yaml"
    assert found.where("replicationFactor") == Location("c/classes.yaml", 4, 8)
    assert found.where("") == Location("c/topics.yaml", 1, 1)


@pytest.mark.parametrize(
    ("below", "over", "spread"),
    [
        ("{}", "{}", None),
        ("{}", "{placement: {racks: {only: [a]}}}", Spread.PREFER),
        ("{placement: {racks: {only: [a]}}}", "{}", Spread.PREFER),
        ("{placement: {racks: {spread: strict}}}", "{placement: {racks: {}}}", Spread.STRICT),
        ("{placement: {racks: {spread: strict}}}", "{placement: {racks: {spread: ignore}}}", Spread.IGNORE),
        ("{placement: {racks: {}}}", "{placement: {racks: {spread: strict}}}", Spread.STRICT),
    ],
)
def test_the_spread_of_a_class_holds_until_a_topic_writes_its_own(
    tmp_path: Path, below: str, over: str, spread: Spread | None
) -> None:
    over = "{class: k, " + over[1:]
    found = load(tmp_path, classes=topic_class(below), topics=topic(over)).topics["t"]
    assert found.placement.racks_spread == spread


@pytest.mark.parametrize(
    ("below", "over", "placement"),
    [
        ("{racks: {spread: strict}}", "{racks: {replicas: {b: 1, a: 2}}}", Placement(racks_replicas=TWO_RACKS)),
        ("{racks: {replicas: {a: 2}}}", "{racks: {spread: ignore}}", Placement(racks_spread=Spread.IGNORE)),
        (
            "{racks: {replicas: {a: 2}}}",
            "{racks: {leader: [a]}}",
            Placement(racks_replicas=(("a", 2),), racks_leader=frozenset("a")),
        ),
    ],
)
def test_replicas_by_rack_and_a_spread_take_the_place_of_one_another(
    tmp_path: Path, below: str, over: str, placement: Placement
) -> None:
    texts = topic_class(f"{{placement: {below}}}"), topic(f"{{class: k, placement: {over}}}")
    assert load(tmp_path, classes=texts[0], topics=texts[1]).topics["t"].placement == placement


def test_replicas_by_rack_are_the_replication_factor(tmp_path: Path) -> None:
    racks = "placement: {racks: {replicas: {a: 2, b: 1}}}"
    found = load(tmp_path, topics=topic(f"{{{racks}}}") + "---\n" + patterns(f"{{{racks}}}"))
    assert found.topics["t"].replication_factor == 3
    assert found.topics["t"].where("replicationFactor") == Location("c/topics.yaml", 4, 28)
    assert found.patterns[0].replication_factor == 3


def test_what_a_topic_does_not_write_stays_unwritten(tmp_path: Path) -> None:
    found = load(tmp_path, topics=topic("{}")).topics["t"]
    assert (found.partitions, found.replication_factor, found.config) == (None, None, {})
    assert found.placement == Placement()
    assert found.is_absent is False


def test_patterns_stand_alone_and_keep_the_order_of_files(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        a=patterns("{config: {retention.ms: 1d}}", "[z*, a*]"),
        b=patterns("{class: k}", "[m*]") + "---\n" + topic_class("{replicationFactor: 2}"),
        c=topic("{}", "zz"),
    )
    assert [pattern.name for pattern in found.patterns] == ["z*", "a*", "m*"]
    assert found.patterns[2].replication_factor is None  # patterns have placement and config only
    assert found.topics["zz"].config == {}


def test_an_assignment_and_an_absent_topic_are_read(tmp_path: Path) -> None:
    text = topic("{placement: {assignment: [[1, 2], [2, 3]]}}", "a") + "---\n" + topic("{state: absent}", "b")
    found = load(tmp_path, topics=text).topics
    assert found["a"].placement.assignment == ((1, 2), (2, 3))
    assert found["b"].is_absent


def test_the_digest_hangs_on_the_files_alone(tmp_path: Path) -> None:
    one = load(tmp_path / "one", b=topic("{}", "b"), a=topic("{}", "a"))
    two = load(tmp_path / "elsewhere" / "two", a=topic("{}", "a"), b=topic("{}", "b"))
    assert one.digest == two.digest
    assert one == two
    assert one.digest.startswith("sha256:")
    digests = {one.digest, load(tmp_path / "three", a=topic("{}", "a"), b=topic("{ }", "b")).digest}
    digests.add(load(tmp_path / "four", a=topic("{}", "a"), c=topic("{}", "b")).digest)
    digests.add(load(tmp_path / "five", a=topic("{}", "a") + "---\n" + topic("{}", "b")).digest)
    assert len(digests) == 4


def test_topics_are_sorted_whatever_the_files(tmp_path: Path) -> None:
    assert list(load(tmp_path, a=topic("{}", "z"), z=topic("{}", "a")).topics) == ["a", "z"]


def test_folders_links_and_odd_names_are_read(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "c" / "deep" / "er").mkdir(parents=True)
    (root / "c" / "deep" / "er" / "one.yml").write_text(topic("{}", "one"))
    (root / "shared").mkdir()
    (root / "shared" / "two.yaml").write_text(topic("{}", "two"))
    (root / "c" / "linked").symlink_to(root / "shared")
    (root / "c" / "loop").symlink_to(root / "c")
    (root / "c" / "three four 日本.yaml").write_text(topic("{}", "three"))
    (root / "c" / ".hidden").mkdir()
    (root / "c" / ".hidden" / "no.yaml").write_text("not: [read")
    (root / "c" / ".#lock.yaml").symlink_to("nobody@nowhere")
    (root / "c" / "snapshot.json").write_text("{")
    assert list(load_desired(root, "c").topics) == ["one", "three", "two"]


def test_a_file_name_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "c" / "x\x1b[31m\n.yaml").write_text("a: &x 1")
    Path(os.fsdecode(os.fsencode(root / "c") + b"/y\xff.yaml")).write_text("a: &x 1")
    with pytest.raises(InvalidInput) as error:
        load_desired(root, "c")
    lines = str(error.value).split("\n")
    assert [line.partition(":")[0] for line in lines] == ["c/x\\x1b[31m\\n.yaml", "c/y\\xff.yaml"]


def test_what_cannot_be_read_is_a_problem_not_a_gap(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "c" / "gone.yaml").symlink_to(root / "nowhere")
    os.mkfifo(root / "c" / "pipe.yaml")
    with pytest.raises(InvalidInput) as error:
        load_desired(root, "c")
    assert [str(problem) for problem in error.value.problems] == [
        "c/gone.yaml:1:1: cannot be read: No such file or directory (KR101)",
        "c/pipe.yaml:1:1: cannot be read: it is a named pipe, not a file (KR101)",
    ]


@pytest.mark.parametrize("name", ["", ".", "..", "../c", "/etc", "a/b", "a\0b"])
def test_a_cluster_is_a_folder_in_the_root(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="is no cluster's name"):
        load_desired(write(tmp_path), name)


def test_a_cluster_without_files_says_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no YAML files: check -C and --cluster"):
        load_desired(tmp_path, "c")


def test_every_problem_of_every_file_is_told_by_place(tmp_path: Path) -> None:
    assert told(
        tmp_path,
        z=topic("{partitons: 3}"),
        a="a: [",
        m=topic("{partitions: 0}", "b") + "---\n" + topic("{partitions: x}", "c"),
        cluster=cluster_with("balance: {disk: even}"),
    ) == [
        "c/a.yaml:2:1: not YAML: did not find expected node content (KR101)",
        (
            'c/cluster.yaml:6:19: spec.balance.disk is "even"; it must be one of off, {within: 10%}. '
            "Bytes per broker; even is refused for measured loads. (KR104)"
        ),
        "c/m.yaml:4:20: spec.partitions is 0, which must be at least 1. How many partitions; may only grow. (KR104)",
        (
            'c/m.yaml:9:20: spec.partitions is "x", which must be a whole number. '
            "How many partitions; may only grow. (KR104)"
        ),
        "c/z.yaml:4:8: unknown key \"partitons\" in spec; did you mean 'partitions'? (KR103)",
    ]


def test_a_class_that_may_stand_in_a_broken_file_is_not_missed(tmp_path: Path) -> None:
    assert len(told(tmp_path, a=topic_class("{replicas: 3}"), b=topic("{class: k}"))) == 1


DOCUMENTS = [
    ("- a\n", "1:1", "a document must be a mapping"),
    ("text\n", "1:1", "a document must be a mapping"),
    ("{}\n", "1:1", "the document lacks apiVersion"),
    ("apiVersion: v1\nkind: ConfigMap\n", "1:13", 'apiVersion is "v1"; it must be reconciler/v1'),
    (
        "apiVersion: v1\nkind: ConfigMap\n",
        "2:7",
        'kind is "ConfigMap"; it must be one of Cluster, Mirror, Owner, Topic, TopicClass',
    ),
    ("apiVersion: v2\nkind: Topic\nmetadata: {name: a}\nspec: {}\n", "1:13", "apiVersion is"),
    (HEAD + "kind: topic\nmetadata: {name: a}\nspec: {}\n", "2:7", "did you mean 'Topic'?"),
    (HEAD + "kind: [Topic]\n", "2:7", "kind is a list"),
    (HEAD + "kind: Topic\n", "1:1", "the document lacks metadata"),
    (HEAD + "kind: Topic\nmetadata: {name: a}\n", "1:1", "the document lacks spec"),
    (HEAD + "kind: Topic\nmetadata: {name: a}\nspec:\n", "4:6", "spec is empty, which says nothing"),
    (HEAD + "kind: Topic\nmetadata: {}\nspec: {}\n", "3:11", "lacks name, or names"),
    (HEAD + "kind: Topic\nmetadata: {name: a, names: [b]}\nspec: {}\n", "3:11", "both name and names"),
    (HEAD + "kind: Topic\nmetadata: {name: a b}\nspec: {}\n", "3:18", "metadata.name"),
    (HEAD + 'kind: Topic\nmetadata: {name: "a\\n"}\nspec: {}\n', "3:18", "metadata.name"),
    (HEAD + "kind: Topic\nmetadata: {name: ..}\nspec: {}\n", "1:1", "cannot be a topic's name"),
    (HEAD + f"kind: Topic\nmetadata: {{name: {'n' * 250}}}\nspec: {{}}\n", "3:18", "metadata.name"),
    (HEAD + "kind: Topic\nmetadata: {name: 5}\nspec: {}\n", "3:18", "must be a text"),
    (HEAD + "kind: Topic\nmetadata: {name: a, labels: {x: 1}}\nspec: {}\n", "3:33", "metadata.labels.x is 1"),
    (patterns("{}", "[]"), "3:19", "must not be empty"),
    (patterns("{}", "[a*, a*]"), "3:19", 'names "a*" twice'),
    (patterns("{}", '["a b*"]'), "3:20", "metadata.names.0"),
    (patterns("{partitions: 3}"), "4:8", "partitions cannot be written for patterns"),
    (patterns("{state: absent}"), "4:8", "state cannot be written for patterns"),
    (patterns("{placement: {assignment: [[1]]}}"), "4:20", "placement.assignment cannot be written for patterns"),
    (topic("{placement: {racks: {spread: strict, replicas: {a: 1}}}}"), "4:44", "keep one of the two"),
    (topic("{replicationFactor: 3, placement: {racks: {replicas: {a: 2}}}}"), "4:50", "adds up to 2, but replication"),
    (topic("{placement: {racks: {only: [a, c], replicas: {a: 2}}}}"), "4:42", "do not name the same racks: c"),
    (topic("{placement: {racks: {leader: [c], replicas: {a: 2}}}}"), "4:28", "names c, where racks.replicas wants"),
    (
        topic("{placement: {racks: {replicas: {a: 0}}}}"),
        "4:42",
        "placement.racks.replicas.a is 0, which must be at least 1",
    ),
    (topic("{placement: {racks: {only: [113]}}}"), "4:35", 'racks.only.0 is 113, which must be a text: write "113"'),
    (
        topic("{placement: {racks: {leader: [1.50]}}}"),
        "4:37",
        'racks.leader.0 is 1.50, which must be a text: write "1.50"',
    ),
    (topic("{}", "2024"), "3:18", 'metadata.name is 2024, which must be a text: write "2024". The topic'),
    (topic("{}", "t, labels: {owner: true}"), "3:37", 'labels.owner is true, which must be a text: write "true"'),
    (patterns("{}", "[7]"), "3:20", 'metadata.names.0 is 7, which must be a text: write "7"'),
    (
        topic("{partitions: '3'}"),
        "4:20",
        'partitions is "3", which must be a whole number: write 3, without quotes. How',
    ),
    (topic("{placement: {racks: {replicas: {}}}}"), "4:38", "which must not be empty"),
    (topic("{state: gone}"), "4:15", "it must be one of present, absent"),
    (topic("{partitions: 3.0}"), "4:20", "must be a whole number"),
    (topic("{partitions: 3.5}"), "4:20", "must be a whole number"),
    (topic("{partitions: true}"), "4:20", "must be a whole number"),
    (topic("{partitions: '3'}"), "4:20", "must be a whole number"),
    (topic("{replicationFactor: 99999}"), "4:27", "must be at most 32767"),
    (topic("{config: {a: [1]}}"), "4:20", "spec.config.a is a list"),
    (topic("{config: {retention.ms: 1GiB}}"), "4:31", "the unit does not fit"),
    (topic("{config: {retention.bytes: 7d}}"), "4:34", "the unit does not fit"),
    (topic("{config: {cleanup.policy: 7d}}"), "4:33", "the unit does not fit"),
    (topic("{config: {retention.ms: 7days}}"), "4:31", "'7days': the unit does not fit"),
    (topic("{config: {retention.ms: 1.5}}"), "4:31", "the unit does not fit"),
    (topic("{config: {segment.bytes: true}}"), "4:32", "the unit does not fit"),
    (topic('{config: {segment.ms: "7\\ndays"}}'), "4:29", "'7\\ndays': the unit does not fit"),
    (topic("{config: {'bad key': 1}}"), "4:17", "is no config of Kafka's"),
    (topic("{config: {follower.replication.throttled.rate: 1}}"), "4:17", "use moves.throttle"),
    (
        topic("{config: {min.insync.replicas: 3}, placement: {assignment: [[1, 2, 3], [2, 3]]}}"),
        "4:17",
        "is above the 2 replicas of an assignment (c/x.yaml:4)",
    ),
    (topic("{config: {min.insync.replicas: 0}}"), "4:17", "at least 1"),
    (topic("{config: {cleanup.policy: never}}"), "4:17", "Invalid value never for configuration cleanup.policy"),
    (topic("{config: {retention.ms: -2}}"), "4:17", "Kafka refuses this: Invalid value -2"),
    (topic("{config: {preallocate: maybe}}"), "4:17", "Expected value to be either true or false"),
    (topic("{config: {min.insync.replicas: ²}}"), "4:17", "whole number"),
    (topic(f"{{config: {{min.insync.replicas: '{'9' * 5000}'}}}}"), "4:17", "whole number"),
    (topic("{replicationFactor: 2, config: {min.insync.replicas: 3}}"), "4:39", "is above replicationFactor 2"),
    (topic("{config: {leader.replication.throttled.replicas: x}}"), "4:17", "use moves.throttle"),
    (topic("{placement: {racks: {only: []}}}"), "4:34", "must not be empty"),
    (topic("{placement: {racks: {spread: stict}}}"), "4:36", "did you mean 'strict'?"),
    (topic("{placement: {racks: {only: [a], leader: [b]}}}"), "4:39", "racks.leader names b"),
    (topic("{placement: {brokers: {only: [1, 1]}}}"), "4:36", "names 1 twice"),
    (topic("{replicationFactor: 3, placement: {brokers: {only: [1, 2]}}}"), "4:52", "leaves 2 brokers for 3"),
    (topic("{placement: {brokers: {only: [1], except: [1]}}}"), "4:30", "leaves 0 brokers for 1"),
    (topic("{placement: {assignment: [[1, 1]]}}"), "4:33", "names 1 twice"),
    (topic("{placement: {assignment: [[]]}}"), "4:33", "must not be empty"),
    (topic("{placement: {assignment: [[-1]]}}"), "4:34", "must be at least 0"),
    (topic("{partitions: 2, placement: {assignment: [[1]]}}"), "4:35", "lists 1 partitions, but partitions is 2"),
    (topic("{placement: {assignment: [[1], [1, 2]]}}"), "4:20", "lists 1, 2 replicas"),
    (topic("{replicationFactor: 2, placement: {assignment: [[1]]}}"), "4:42", "where 2 are wanted"),
    (topic("{placement: {assignment: [[1]], brokers: {except: [1]}}}"), "4:20", "does not allow: 1"),
    (topic("{placement: {assignment: [[1]], brokers: {only: [2]}}}"), "4:20", "does not allow: 1"),
    (topic("{protect: [delte]}"), "4:18", "did you mean 'delete'?"),
    (topic("{state: absent, protect: [delete]}"), "4:8", "protect names delete"),
    (topic("{class: standart}") + "---\n" + topic_class("{}", "standard"), "4:15", "did you mean 'standard'?"),
    (topic("{class: x}"), "4:15", "there is no TopicClass 'x'; declared are: none"),
    (topic("{class: 5}"), "4:15", "must be a text"),
    (topic("{}", "a.b") + "---\n" + topic("{}", "a_b"), "6:1", "collides with a.b"),
    (topic("{}") + "---\n" + topic("{}"), "6:1", "topic t is declared twice, first at c/x.yaml:1"),
    (patterns("{}") + "---\n" + patterns("{}"), "6:1", "the pattern a* is declared twice, first at c/x.yaml:1"),
    (topic_class("{}") + "---\n" + topic_class("{}"), "6:1", "TopicClass k is declared twice"),
    (topic_class("{partitions: 3}"), "4:8", 'unknown key "partitions" in spec; known are replicationFactor'),
    (mirror("class: gold"), "4:40", "there is no TopicClass 'gold'"),
    (mirror("rename: x") + topic_class("{}"), "4:33", "rename is 'x': write {topic} once"),
    (mirror("config: [min.insync.replicas]") + topic_class("{}"), "4:42", "min.insync.replicas does not follow"),
    (mirror("config: [leader.replication.throttled.rate]") + topic_class("{}"), "4:42", "use moves.throttle"),
    (mirror("confg: []"), "4:33", "did you mean 'config'?"),
    (2 * mirror("config: []"), "6:1", "declared twice"),
    (CLUSTER, "1:1", "a second Cluster in this folder, the first is in c/cluster.yaml"),
]


@pytest.mark.parametrize(("content", "place", "says"), DOCUMENTS)
def test_what_a_document_cannot_mean_is_told_at_its_place(tmp_path: Path, content: str, place: str, says: str) -> None:
    problems = told(tmp_path, x=content)
    assert any(problem.startswith(f"c/x.yaml:{place}: ") and says in problem for problem in problems), problems
    assert all(len(problem) < 400 for problem in problems)


CLUSTERS = [
    ("clusterld: x", "6:3", "did you mean 'clusterId'?"),
    ("brokers:", "6:11", "spec.brokers is empty, which says nothing: write its value, or leave the key out"),
    ("brokers: [{state: active}]", "6:13", "spec.brokers.0 lacks id"),
    ("brokers: [{id: -1}]", "6:18", "must be at least 0"),
    ("brokers: [{id: 1, state: drained}]", "6:28", "did you mean 'draining'?"),
    ("brokers: [{id: 1, capacity: 0}]", "6:31", "must be at least 1"),
    ("brokers: [{id: 1, capacity: 1.5}]", "6:31", "must be a whole number"),
    ("brokers: [{id: 1, capacity: two}]", "6:31", "must be a whole number or a mapping"),
    ("brokers: [{id: 1, capacity: {replica: 2}}]", "6:32", "did you mean 'replicas'?"),
    ("brokers: [{id: 1, capacity: {disk: 0}}]", "6:38", "must be at least 1"),
    ("brokers: [{id: 1, rates: {networkIn: 1GiB}}]", "6:40", "Bytes per second that it can take in"),
    ("limits: {networkIn: 80}", "6:23", "Write a unit: 100MiB/s, 80%"),
    ("limits: {networkIn: 120%}", "6:12", "networkIn is a share of the whole: 100% at most"),
    ("limits: {leaderIn: 0B/s}", "6:12", "a limit of 0 lets no broker carry anything: raise limits.leaderIn"),
    (
        "limits: {leaderIn: 80%}",
        "6:12",
        "limits.leaderIn is a share of a broker's rates.networkIn, which no broker has",
    ),
    ("balance: {leaderIn: even}", "6:23", "it must be one of off, {within: 10%}"),
    ("brokers: [{id: 1}, {id: 1}]", "6:22", "broker 1 is declared twice, first at c/cluster.yaml:6"),
    ("topics: {managed: some}", "6:21", "it must be one of listed, all"),
    ("topics: {ignore: __*}", "6:20", "must be a list"),
    ("topics: {ignore: ['a b']}", "6:21", "spec.topics.ignore.0"),
    ("balance: {replicas: evn}", "6:23", "it must be one of off, even, {within: 10%}; did you mean 'even'?"),
    ("balance: {replicas: {witin: 10%}}", "6:24", "did you mean 'within'?"),
    ("balance: {replicas: {within: 10}}", "6:32", "Write a unit: 20%"),
    ("balance: {replicas: {}}", "6:23", "spec.balance.replicas lacks within"),
    ("balance: {replicas: 10%}", "6:23", "it must be one of off, even, {within: 10%}"),
    ("balance: {disk: even}", "6:19", "even is refused for measured loads"),
    ("balance: {logDirs: even}", "6:22", "even is refused: whole replicas never fill log dirs exactly alike"),
    ("brokers: [{id: 1, logDirs: [{path: /d1}, {path: /d1}]}]", "6:44", "log dir /d1 of broker 1 is declared twice"),
    ("brokers: [{id: 1, logDirs: [{state: draining}]}]", "6:31", "lacks path"),
    ("brokers: [{id: 1, logDirs: [{path: /d1, state: drained}]}]", "6:50", "did you mean 'draining'?"),
    ("balance: {networkIn: even}", "6:24", "must be one of off, {within: 10%}"),
    ("balance: {networkOut: even}", "6:25", "must be one of off, {within: 10%}"),
    ("moves: {throttle: 50}", "6:21", "spec.moves.throttle is 50, which must be a text. Write a unit: 50MiB/s"),
    ("moves: {throttle: 50MiB}", "6:21", "has not the form"),
    ("clusterId: 17", "6:14", 'spec.clusterId is 17, which must be a text: write "17". The cluster'),
    ("moves: {throttle: 0B/s}", "6:11", "a throttle of 0"),
    ("moves: {throttle: 0.5B/s}", "6:21", "write a number that fits 64 bits"),
    ("moves: {throttle: 9999999999PiB/s}", "6:21", "write a number that fits 64 bits"),
    (f"moves: {{throttle: {'9' * 5000}B/s}}", "6:21", "write a number that fits 64 bits"),
    ("moves: {timeout: 7200}", "6:20", "Write a unit: 2h"),
    ("moves: {timeout: 0s}", "6:11", "a timeout of 0"),
    ("moves: {perBroker: 0}", "6:22", "must be at least 1"),
    ("moves: {electionBatch: 5000}", "6:26", "must be at most 1000"),
    ("limits: {movedBytes: 5}", "6:24", "Write a unit: 2TiB"),
    ("limits: {diskUse: 80}", "6:21", "Write a unit: 20%"),
    ("limits: {diskUse: 150%}", "6:12", "100% at most"),
    ("limits: {changedPartitions: 101%}", "6:12", "100% at most"),
    ("limits: {changedPartitions: -1}", "6:31", "spec.limits.changedPartitions is -1"),
    ("windows: [{days: [mon], from: '22:00'}]", "6:13", "lacks to"),
    ("windows: [{days: [monday], from: '22:00', to: '05:00'}]", "6:21", "did you mean 'mon'?"),
    ("windows: [{days: [mon], from: 22:00, to: '25:00'}]", "6:44", "has not the form"),
    ("windows: [{days: [mon], from: '22:00', to: '22:00'}]", "6:13", "begins and ends at 22:00"),
    ("windows: [{days: [mon], from: '22:00', to: '23:00', timezone: Mars/Olympus}]", "6:13", "is no time zone"),
    ("windows: [{days: [mon], from: '22:00', to: '23:00', timezone: ../../etc}]", "6:13", "is no time zone"),
    ("client: {a: b}", "1:1", "client and simulation exclude each other"),
    ("client: {a: [b]}", "6:15", "spec.client.a is a list"),
    ("client: {a: '${vault:x}'}", "6:15", "holds something like ${env:NAME}"),
    ("client: {a: 'x${env:Y'}", "6:15", "holds something like ${env:NAME}"),
    ("client: {a: '${file:}'}", "6:15", "holds something like ${env:NAME}"),
]


@pytest.mark.parametrize(("spec", "place", "says"), CLUSTERS)
def test_what_a_cluster_cannot_mean_is_told_at_its_place(tmp_path: Path, spec: str, place: str, says: str) -> None:
    problems = told(tmp_path, cluster=cluster_with(spec))
    assert any(problem.startswith(f"c/cluster.yaml:{place}: ") and says in problem for problem in problems), problems
    assert all(len(problem) < 400 for problem in problems)


def test_a_cluster_is_called_like_its_folder(tmp_path: Path) -> None:
    assert told(tmp_path, cluster=CLUSTER.replace("name: c", "name: d")) == [
        "c/cluster.yaml:3:18: the Cluster is called d, but its folder c: give both one name (KR111)"
    ]


def test_a_folder_without_a_cluster_says_so(tmp_path: Path) -> None:
    (problem,) = told(tmp_path, cluster=topic("{}"))
    assert "declares no Cluster" in problem


@pytest.mark.parametrize(
    "key", ["sasl.password", "ssl.key.password", "oauth.client.secret", "token", "sasl.jaas.config"]
)
@pytest.mark.parametrize("value", ["[{0}]", "{{x: {0}}}", "!{0} x", "&{0} x", "*{0}", "@{0}", "'{0}", '"{0}\\q"'])
def test_no_message_holds_a_secret(tmp_path: Path, key: str, value: str) -> None:
    text = cluster_with(f"client: {{{key}: {value.format(CANARY)}}}")
    assert CANARY not in " ".join(told(tmp_path, cluster=text))


# Slips by which a password is no value of its key any more: as text, or as part of a key.
@pytest.mark.parametrize(
    "spec",
    [
        f"client: sasl.password={CANARY}",
        f"client:\n    bootstrap.servers=a:1\n    sasl.username=u\n    sasl.password={CANARY}",
        f"client:\n    sasl.username:u\n    sasl.password:{CANARY}",
        f"client:\n    bootstrap.servers: a:1\n    sasl.password:{CANARY}",
        f"client: |\n    sasl.pasword={CANARY}",
        f"client: [sasl.password={CANARY}]",
        f"client: {{bootstrap.servers: a:1, sasl.password:{CANARY}}}",
        f"client: {{bootstrap.servers: a:1, sasl.pasword={CANARY}}}",
        f"client: {{bootstrap.servers: a:1, sasl.password={CANARY}: x}}",
        f"client: {{bootstrap.servers: a:1, sasl.password={CANARY}, sasl.password={CANARY}}}",
        f"sasl.password={CANARY}: x",
        f"topics: sasl.jaas.config = x {CANARY}",
    ],
)
def test_no_message_holds_a_secret_that_lost_its_place(tmp_path: Path, spec: str) -> None:
    problems = told(tmp_path, cluster=cluster_with(spec))
    assert problems
    assert CANARY not in " ".join(problems)


def test_a_text_where_client_properties_belong_is_told_but_never_shown(tmp_path: Path) -> None:
    assert told(tmp_path, cluster=cluster_with(f"client: user {CANARY}"))[0].startswith(
        "c/cluster.yaml:6:11: spec.client is set to something, which must be a mapping"
    )


def test_a_property_whose_name_holds_its_value_is_refused(tmp_path: Path) -> None:
    told_of_it = [each for each in told(tmp_path, cluster=cluster_with("client: {a.b:c: x}")) if "KR103" in each]
    assert told_of_it == [
        "c/cluster.yaml:6:12: this is no client property: write its name, a colon, a space and its value (KR103)"
    ]


@pytest.mark.parametrize("key", ["x.password", "x.secret"])
def test_no_message_of_a_topic_holds_a_secret(tmp_path: Path, key: str) -> None:
    assert "1234567" not in " ".join(told(tmp_path, x=topic(f"{{config: {{{key}: 1234567ms}}}}")))


def test_the_worked_example_is_read() -> None:
    root = Path(__file__).resolve().parents[2] / "desired-state"
    assert len(load_desired(root, "demo").topics) > 20


def test_a_wrong_unit_is_told_beside_a_wrong_form(tmp_path: Path) -> None:
    problems = told(tmp_path, x=topic("{clas: y, config: {retention.ms: 7GiB}}"))
    assert [problem.split(" ")[0] for problem in problems] == ["c/x.yaml:4:8:", "c/x.yaml:4:40:"]


def test_a_pattern_takes_placement_and_config_of_its_class_but_no_replication_factor(tmp_path: Path) -> None:
    wide = topic_class("{replicationFactor: 3, placement: {racks: {spread: strict}}, config: {retention.ms: 1d}}")
    (pattern,) = load(tmp_path, a=f"{wide}---\n{patterns('{class: k}')}").patterns
    assert (pattern.replication_factor, pattern.placement.racks_spread) == (None, Spread.STRICT)
    assert pattern.config == {"retention.ms": "86400000"}


def test_a_config_that_some_kafka_may_take_is_left_to_the_cluster(tmp_path: Path) -> None:
    taken = "{config: {segment.bytes: 100KiB, vendor.tier.enable: soon}, customConfigs: [vendor.tier.enable]}"
    found = load(tmp_path, a=topic(taken))
    assert list(found.topics["t"].config.values()) == ["102400", "soon"]


@pytest.mark.parametrize("key", sorted(TOPIC_CONFIGS.keys() - {*TOPIC_THROTTLES}))
def test_every_kafkas_default_of_a_topic_config_is_taken(tmp_path: Path, key: str) -> None:
    for rule in TOPIC_CONFIGS[key].rules.values():
        if rule.default:
            assert load(tmp_path, a=topic(f"{{config: {{{key}: '{rule.default}'}}}}")).topics["t"].config


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("retention.sm", "retention.ms"),
        ("retention_ms", "retention.ms"),
        ("Retention.Ms", "retention.ms"),
        ("log.retention.ms", "retention.ms"),
        ("log.roll.ms", "segment.ms"),
        ("message.max.bytes", "max.message.bytes"),
        ("'min insync replicas'", "min.insync.replicas"),
        ("cleanup-policy", "cleanup.policy"),
    ],
)
def test_a_config_that_no_kafka_has_is_told_with_the_one_that_was_meant(
    tmp_path: Path, written: str, meant: str
) -> None:
    (problem,) = told(tmp_path, a=topic(f"{{config: {{segment.ms: 1d, {written}: 3000}}}}"))
    assert problem.startswith("c/a.yaml:4:33: ")
    assert f"; did you mean {meant!r}?" in problem
    assert problem.endswith("(KR103)")


def test_a_config_that_looks_like_none_of_kafkas_is_told_without_a_guess(tmp_path: Path) -> None:
    assert told(tmp_path, a=topic("{config: {vendor.tier.enable: true}}")) == [
        (
            "c/a.yaml:4:17: 'vendor.tier.enable' is no topic config of Kafka 3.9 to 4.3. "
            "What only this cluster knows is listed under customConfigs (KR103)"
        )
    ]


def test_a_class_that_no_topic_has_is_judged_too_and_one_of_many_once(tmp_path: Path) -> None:
    wrong = topic_class("{config: {retention.sm: 1, segment.bytes: 5}}")
    assert len(told(tmp_path / "none", a=wrong)) == 2
    many = "---\n".join(topic("{class: k}", name) for name in "abc")
    assert told(tmp_path / "three", a=wrong, b=many) == told(tmp_path / "none", a=wrong)


def test_what_a_class_lists_holds_for_its_topics_and_what_a_topic_lists_for_itself_alone(tmp_path: Path) -> None:
    listed = topic_class("{customConfigs: [vendor.x]}") + "---\n" + topic("{class: k, config: {vendor.x: 1}}")
    assert load(tmp_path / "class", a=listed).topics["t"].config == {"vendor.x": "1"}
    other = topic("{config: {vendor.x: 1}, customConfigs: [vendor.x]}", "a")
    assert len(told(tmp_path / "topic", a=other + "---\n" + topic("{config: {vendor.x: 1}}", "b"))) == 1


def test_a_listed_key_that_kafka_knows_is_not_judged_either(tmp_path: Path) -> None:
    newer = "{config: {compression.type: brotli}, customConfigs: [compression.type]}"
    assert load(tmp_path, a=topic(newer)).topics["t"].config == {"compression.type": "brotli"}


def test_a_pattern_lists_keys_of_its_own(tmp_path: Path) -> None:
    (pattern,) = load(tmp_path, a=patterns("{config: {vendor.x: 1}, customConfigs: [vendor.x]}")).patterns
    assert pattern.config == {"vendor.x": "1"}


def test_min_isr_above_the_replicas_says_what_kafka_takes_instead(tmp_path: Path) -> None:
    assert told(tmp_path, a=topic("{replicationFactor: 2, config: {min.insync.replicas: 3}}")) == [
        (
            "c/a.yaml:4:39: min.insync.replicas 3 is above replicationFactor 2 (c/a.yaml:4): "
            "Kafka then takes the smaller, so acks=all writes stop once any replica is missing (KR126)"
        )
    ]
