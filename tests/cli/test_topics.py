"""`topics`: what it prints of a snapshot, of a cluster and of all of them, and how it ends."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.program.call import Program, modules_loaded_by
from helpers.program.documents import document

pytestmark = pytest.mark.long

DESCRIBED = Path(__file__).parent / "described_topics"
"""What kafka-topics 4.3 printed of six brokers of which two were killed, and our snapshot of them then."""
PARTITIONS = [
    {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1, 2], "sizes": [2048, 2048], "endOffset": 1200},
    {"partition": 1, "leader": 2, "replicas": [2, 1], "isr": [2, 1], "sizes": [1024, 1024], "endOffset": 40},
]
BARE = {"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}
STATE: dict[str, Any] = {
    "formatVersion": "1.0",
    "clusterId": "c1",
    "observedAt": "2026-11-21T00:00:00Z",
    "brokers": [{"id": 1}, {"id": 2}],
    "topics": [
        {
            "name": "clicks",
            "partitions": [BARE],
            "configs": {"remote.storage.enable": "true", "my.password": "hunter2"},
        },
        {"name": "orders", "partitions": PARTITIONS},
    ],
    "groups": [{"groupId": "billing", "state": "Empty", "offsets": {"orders": {"0": 1000, "1": 40}}}],
}
BEFORE = STATE | {
    "observedAt": "2026-11-19T00:00:00Z",
    "topics": [
        {"name": "clicks", "partitions": [BARE | {"endOffset": 3}]},
        {"name": "orders", "partitions": [one | {"endOffset": 40, "sizes": [1024, 1024]} for one in PARTITIONS]},
    ],
}


def declare(name: str = "prod", owner: str = "shop", **state: object) -> None:
    """Write a simulated cluster that declares one of its two topics."""
    folder = Path("desired-state") / name
    folder.mkdir(parents=True)
    topic = document("Topic", "orders", "{partitions: 2}", f"{{owner: {owner}}}")
    (folder / "cluster.yaml").write_text(f"{document('Cluster', name, '{simulation: state.json}')}---\n{topic}")
    (folder / "state.json").write_text(json.dumps(STATE | state))


@pytest.fixture
def state() -> str:
    """Return the argument that names a snapshot in the present folder."""
    Path("state.json").write_text(json.dumps(STATE))
    return "--state=state.json"


def test_a_list_has_a_row_a_topic_and_a_dash_for_what_is_not_known(reconciler: Program) -> None:
    declare()
    ended = reconciler("topics", "list")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "  topic   owner  declared                           partitions  RF     size  all replicas  readers\n"
        "  clicks  -      not declared                                1   1        -             -        0\n"
        "  orders  shop   desired-state/prod/cluster.yaml:6           2   2  3.0 KiB       6.0 KiB        1\n"
    )


def test_of_a_snapshot_alone_nobody_knows_what_is_declared(reconciler: Program, state: str) -> None:
    ended = reconciler("topics", "list", state, "ord*")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1:] == ["  orders  -      -                  2   2  3.0 KiB       6.0 KiB        1"]


def test_growth_is_told_since_an_earlier_snapshot(reconciler: Program, state: str) -> None:
    Path("before.json").write_text(json.dumps(BEFORE))
    listed = reconciler("topics", "list", state, "--since", "before.json")
    assert [line.split()[-5:] for line in listed.out.splitlines()[1:]] == [
        ["-", "-", "0", "-", "-"],
        ["KiB", "1", "+512", "B", "580"],
    ]
    described = reconciler("topics", "describe", state, "--since", "before.json", "orders")
    assert "  growth    +512 B and 580 records a day since 2026-11-19T00:00:00Z\n" in described.out
    again = json.dumps(STATE | {"observedAt": "2026-11-20T00:00:00Z"})
    Path("before.json").write_text(again)
    idle = reconciler("topics", "describe", state, "--since", "before.json", "orders")
    assert "  growth    0 B a day, and idle since 2026-11-20T00:00:00Z at least\n" in idle.out
    Path("before.json").write_text(again.replace("c1", "c2"))
    other = reconciler("topics", "list", state, "--since", "before.json")
    assert (other.code, other.out, "it is of cluster c2" in other.err, "(KR205)" in other.err) == (1, "", True, True)


def test_growth_is_told_by_loads(reconciler: Program) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    declare()
    Path("loads").mkdir()
    rows = [
        {"cluster": cluster, "topic": topic, "partition": number, "growth_bytes_per_day": growth,
         "messages_in_avg": rate, "messages_in_max": rate and 2 * rate}
        for cluster, topic, number, growth, rate in (
            ("prod", "orders", 0, 512.4, 0.5), ("prod", "orders", 1, 0.2, 0.0), ("prod", "clicks", 0, None, 0.0),
            ("other", "orders", 0, 1e9, 7.0),
        )
    ]  # fmt: skip
    parquet.write_table(pa.Table.from_pylist(rows), "loads/part-0.parquet")
    told = [{"cluster": "prod", "firstBucket": "2026-11-01T00:00:00Z"}]
    Path("loads/_report.json").write_text(json.dumps({"clusters": told}))
    ended = reconciler("topics", "list", "--loads", "loads", "-o", "json")
    found = {one["topic"]: one["growth"] for one in json.loads(ended.out)["clusters"][0]["topics"]}
    since = "2026-11-01T00:00:00Z"
    assert found == {
        "clicks": {"since": since, "bytesPerDay": None, "recordsPerDay": 0, "idle": True},
        "orders": {"since": since, "bytesPerDay": 513, "recordsPerDay": 43_200, "idle": False},
    }
    described = reconciler("topics", "describe", "--loads", "loads", "orders")
    assert f"  growth    +513 B and 43,200 records a day since {since}\n" in described.out
    both = reconciler("topics", "list", "--loads", "loads", "--since", "x.json")
    assert (both.code, "give one of them" in both.err) == (64, True)
    none = reconciler("topics", "list", "--loads", "nowhere")
    assert (none.code, "(KR150)" in none.err) == (1, True)


def test_loads_are_of_a_cluster_that_is_named(reconciler: Program, state: str) -> None:
    ended = reconciler("topics", "list", state, "--loads", "loads")
    assert (ended.code, ended.out) == (64, "")
    assert "name the right folder with -C" in ended.err


def test_what_kafkas_own_tool_prints_comes_first_line_by_line(reconciler: Program) -> None:
    ended = reconciler("topics", "describe", "--state", str(DESCRIBED / "snapshot.json"), "[!_]*")
    assert ended.code == 0
    ours = [line for line in ended.out.splitlines() if line.lstrip("\t").startswith("Topic: ")]
    theirs = (DESCRIBED / "kafka-topics.txt").read_text().splitlines()
    # Kafka's tool walks a hash map of topics; each topic's lines are in order.
    assert sorted(theirs, key=topic_of) == ours


def topic_of(line: str) -> str:
    return line.split("\t")[line.startswith("\t")]


def test_below_them_stands_what_else_is_told(reconciler: Program) -> None:
    declare()
    ended = reconciler("topics", "describe")
    assert ended.out == (
        "Topic: clicks\tPartitionCount: 1\tReplicationFactor: 1\t"
        "Configs: remote.storage.enable=true,my.password=(hidden)\n"
        "\tTopic: clicks\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
        "  declared  not declared\n"
        "  owner     -\n"
        "  size      -, - in all replicas\n"
        "  tiered    yes: sizes are of what is on the brokers\n"
        "  readers   none\n"
        "\n"
        "Topic: orders\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: \n"
        "\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2,1\tElr: \tLastKnownElr: \n"
        "  declared  desired-state/prod/cluster.yaml:6\n"
        "  owner     shop\n"
        "  size      3.0 KiB, 6.0 KiB in all replicas\n"
        "  tiered    no\n"
        "  readers  state  members  lag\n"
        "  billing  Empty        0  200\n"
    )
    told = reconciler("topics", "describe", "-o", "json").out
    assert ("hunter2" in told, "(hidden)" in told) == (False, True)


def test_a_topic_that_is_not_there_is_an_error_beside_those_that_are(reconciler: Program, state: str) -> None:
    ended = reconciler("topics", "describe", state, "orders", "click")
    assert (ended.code, ended.out.startswith("Topic: orders\t")) == (1, True)
    assert ended.err == "error: there is no topic click, or this user may not see it: did you mean clicks? (KR206)\n"


def test_of_a_topic_that_is_yet_to_be_made_it_is_told_where_it_is_declared(reconciler: Program) -> None:
    declare(topics=STATE["topics"][:1])
    for verb in (("list", "orders"), ("describe", "orders"), ("key", "orders", "k")):
        ended = reconciler("topics", *verb)
        assert ended.code == 1
        assert ended.err == (
            "error: there is no topic orders, or this user may not see it: "
            "it is declared at desired-state/prod/cluster.yaml:6, and a plan makes it (KR206)\n"
        )


def test_csv_has_a_head_and_nothing_that_a_spreadsheet_runs(reconciler: Program) -> None:
    declare(owner='"=cmd()"')
    clicks, orders = csv.DictReader(io.StringIO(reconciler("topics", "list", "-o", "csv").out))
    assert (orders["owner"], orders["declaredAt"], orders["bytes"]) == ("'=cmd()", "prod/cluster.yaml:6", "3072")
    assert (clicks["bytes"], clicks["declared"], clicks["tiered"]) == ("", "false", "true")
    rows = csv.DictReader(io.StringIO(reconciler("topics", "describe", "-o", "csv").out))
    assert [(one["topic"], one["partition"], one["replicas"], one["bytes"], one["endOffset"]) for one in rows] == [
        ("clicks", "0", "1", "", ""),
        ("orders", "0", "1,2", "2048,2048", "1200"),
        ("orders", "1", "2,1", "1024,1024", "40"),
    ]


def test_of_all_clusters_one_that_fails_does_not_stop_the_others(reconciler: Program) -> None:
    declare("prod")
    declare("test", clusterId="c2")
    (Path("desired-state") / "prod" / "state.json").write_text("[")
    ended = reconciler("topics", "list", "orders", "--cluster", "*")
    assert (ended.code, ended.out.splitlines()[0], ended.out.count("orders")) == (1, "test", 1)
    assert "desired-state/prod/state.json" in ended.err
    as_json = reconciler("topics", "describe", "--cluster", "prod,test", "-o", "json")
    told = json.loads(as_json.out)
    assert (as_json.code, [one["cluster"] for one in told["clusters"]], list(told["failed"])) == (1, ["test"], ["prod"])
    # A topic that one of them has is no error.
    (Path("desired-state") / "prod" / "state.json").write_text(json.dumps(STATE | {"topics": []}))
    assert reconciler("topics", "list", "orders", "--cluster", "*").code == 0
    assert "there is no topic nothing" in reconciler("topics", "list", "nothing", "--cluster", "*").err
    for more in (("--state", "x.json"), ("--bootstrap-server", "x:1"), ("--since", "x.json")):
        assert reconciler("topics", "list", "--cluster", "*", *more).code == 64


def test_whatever_is_wrong_in_files_of_topics_is_told_and_the_rest_is_shown(reconciler: Program) -> None:
    declare()
    Path("desired-state/prod/broken.yaml").write_text("kind: [")
    ended = reconciler("topics", "list")
    assert (ended.code, ended.out.splitlines()[2].split()[:4]) == (0, ["orders", "-", "-", "2"])
    assert ended.err.startswith("warning: who declares and owns topics is not known; not read: ")
    assert "desired-state/prod/broken.yaml:2:1: " in ended.err
    assert ended.err.endswith("run validate (KR207)\n")


def test_a_key_has_a_partition_now_and_after_growth(reconciler: Program, state: str) -> None:
    declare()
    for source in ((state,), ("--cluster", "prod")):
        ended = reconciler("topics", "key", "orders", "user-42", "--partitions", "3", *source)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == (
            "orders has 2 partitions: key user-42 goes to partition 0.\n"
            "With 3 partitions it would go to partition 1; 66.7% of keys would go to another partition than now.\n"
        )
    as_bytes = reconciler("topics", "key", "orders", "757365722d3432", "--hex", "-o", "json", state)
    (told,) = json.loads(as_bytes.out)["clusters"]
    assert (told["partition"], told["partitions"], told["after"]) == (0, 2, None)
    assert reconciler("topics", "key", "orders", "xyz", "--hex", state).code == 64
    missing = reconciler("topics", "key", "order", "k", state)
    assert (missing.code, "did you mean orders? (KR206)" in missing.err) == (1, True)
    of_all = reconciler("topics", "key", "orders", "k", "--cluster", "*")
    assert of_all.out == "prod: orders has 2 partitions: key k goes to partition 0.\n"


def test_groups_of_a_topic_are_its_readers_with_their_lag_there(reconciler: Program, state: str) -> None:
    ended = reconciler("groups", "list", "--topic", "orders", state)
    assert [line.split()[0] for line in ended.out.splitlines()] == ["group", "billing"]
    assert ended.out.splitlines()[1].endswith(" 200")
    assert reconciler("groups", "list", "--topic", "clicks", state).out == "No groups.\n"
    missing = reconciler("groups", "list", "--topic", "click", state)
    assert (missing.code, "did you mean clicks? (KR206)" in missing.err) == (1, True)


@pytest.mark.parametrize("verb", [("list",), ("key", "orders", "k")])
def test_a_snapshot_needs_no_spark_no_solver_and_no_client(verb: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    loaded = modules_loaded_by("topics", *verb, "--state", "state.json", cwd=tmp_path)
    assert loaded & {"pyspark", "ortools", "kafka", "rich", "deepdiff"} == frozenset()
