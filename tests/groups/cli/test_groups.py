"""The verbs of `groups` on a snapshot and on a simulated cluster: what they print, and how they end."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.program.call import Program, all_of, modules_loaded_by
from helpers.program.documents import document

from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.groups.cli.groups import VERBS
from reconciler.model.topic_partition import TopicPartition

NOT_EMPTY = Answer("NON_EMPTY_GROUP")

HEAVY = {"numpy", "ortools", "pyspark", "kafka", "rich", "yaml", "jsonschema", "deepdiff"}


def partition(number: int, leader: int, end: int | None = None) -> dict[str, object]:
    replicas = [leader, leader % 2 + 1]
    found: dict[str, object] = {"partition": number, "leader": leader, "replicas": replicas, "isr": replicas}
    return found if end is None else found | {"endOffset": end}


MEMBER = {
    "memberId": "app-1-f00", "clientId": "app-1", "host": "10.0.0.1", "instanceId": None, "rack": "a",
    "subscription": ["orders"], "assignment": {"orders": [0, 1, 2]},
}  # fmt: skip
SNAPSHOT = {
    "formatVersion": "1.0",
    "clusterId": "c1",
    "observedAt": "2026-11-21T14:00:00Z",
    "brokers": [{"id": 1, "host": "k1", "port": 9092}, {"id": 2, "host": "k2", "port": 9092}],
    "topics": [
        {"name": "__consumer_offsets", "internal": True, "partitions": [partition(0, 1), partition(1, 2)]},
        {"name": "orders", "partitions": [partition(0, 1, 1200), partition(1, 2, 40), partition(2, 2, 7)]},
    ],
    "groups": [
        {"groupId": "audit", "state": "Empty", "coordinator": 2, "offsets": {"orders": {"0": 1000}}},
        {
            "groupId": "billing", "state": "Stable", "protocol": "range", "coordinator": 2, "members": [MEMBER],
            "offsets": {"orders": {"0": 40, "1": 40}},
        },
        {"groupId": "connect-1", "state": "Stable", "protocol": "v1", "protocolType": "connect"},
        {"groupId": "modern", "state": "Stable", "type": "consumer", "protocol": "uniform"},
    ],
}  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Return the arguments that name a simulated cluster in the present folder."""
    folder = tmp_path / "desired-state" / "s"
    folder.mkdir(parents=True)
    (folder / "simulated.json").write_text(json.dumps(SNAPSHOT))
    (folder / "cluster.yaml").write_text(document("Cluster", "s", "{simulation: simulated.json}"))
    return "--cluster=s"


@pytest.fixture
def state(tmp_path: Path) -> str:
    """Return the argument that names a snapshot."""
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(SNAPSHOT))
    return f"--state={file}"


def test_list_shows_every_group_in_one_line(reconciler: Program, state: str) -> None:
    ended = reconciler("groups", "list", state)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "  group      kind               state   assignor  members  coordinator    lag\n"
        "  audit      classic            Empty   -               0            2    200\n"
        "  billing    classic            Stable  range           1            2  1,160\n"
        "  connect-1  classic (connect)  Stable  v1              0            1      -\n"
        "  modern     consumer           Stable  uniform         0            2      -\n"
    )


def test_describe_shows_members_coordinator_and_lag(reconciler: Program, state: str) -> None:
    ended = reconciler("groups", "describe", "billing", state)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "group billing: Stable, range, classic, 1 member, lag 1,160\n"
        "  coordinator: broker 2 (k2:9092), leader of __consumer_offsets-1\n"
        "  member     client  host      rack  owns\n"
        "  app-1-f00  app-1   10.0.0.1  a     orders 0-2\n"
        "  topic   member  partition  committed   end    lag\n"
        "  orders  app-1           0         40  1200  1,160\n"
        "  orders  app-1           1         40    40      0\n"
        "  orders  app-1           2          -     7      -\n"
    )


@pytest.mark.parametrize(
    ("coordinator", "leader", "told"),
    [
        (2, 2, "  coordinator: broker 2 (k2:9092), leader of __consumer_offsets-1\n"),
        (None, 2, "  coordinator: broker 2 (k2:9092), leader of __consumer_offsets-1\n"),
        (None, None, "  no coordinator; __consumer_offsets-1 has no leader\n"),
        (1, None, "  coordinator: broker 1 (k1:9092); __consumer_offsets-1 has no leader\n"),
        (77, 2, "  coordinator: broker 77; __consumer_offsets-1 is led by broker 2\n"),
    ],
)
def test_a_coordinator_is_called_leader_only_where_it_leads(
    reconciler: Program, tmp_path: Path, coordinator: int | None, leader: int | None, told: str
) -> None:
    offsets = {"name": "__consumer_offsets", "partitions": [partition(0, 1), partition(1, 2) | {"leader": leader}]}
    group = {"groupId": "billing", "state": "Stable", "coordinator": coordinator}
    (tmp_path / "s.json").write_text(json.dumps({**SNAPSHOT, "topics": [offsets], "groups": [group]}))
    assert told in reconciler("groups", "describe", "--state=s.json").out


def test_a_simulated_cluster_shows_what_its_snapshot_does(reconciler: Program, cluster: str, state: str) -> None:
    for verb in ("list", "describe", "lag"):
        assert reconciler("groups", verb, cluster).out == reconciler("groups", verb, state).out


@pytest.mark.parametrize("arguments", [("billing", "audit"), ("--group", "billing", "--group=audit", "billing")])
def test_groups_are_named_as_arguments_or_as_options(
    reconciler: Program, state: str, arguments: tuple[str, ...]
) -> None:
    told = json.loads(reconciler("groups", "lag", *arguments, state, "-o", "json").out)
    assert [group["groupId"] for group in told["groups"]] == ["audit", "billing"]


def test_json_says_null_where_nothing_is_known(reconciler: Program, state: str) -> None:
    (group,) = json.loads(reconciler("groups", "describe", "billing", state, "-o", "json").out)["groups"]
    assert group["members"] == [MEMBER]
    assert [(each["partition"], each["committed"], each["lag"]) for each in group["partitions"]] == [
        (0, 40, 1160), (1, 40, 0), (2, None, None),
    ]  # fmt: skip
    assert (group["totalLag"], group["offsetsPartition"], group["coordinatorAfterPlan"]) == (1160, 1, None)


def test_every_group_that_is_not_there_is_told_with_the_nearest(reconciler: Program, state: str, cluster: str) -> None:
    for place in (state, cluster):
        ended = reconciler("groups", "describe", "biling", "billing", "nothing", place)
        assert (ended.code, ended.out) == (1, "")
        assert "there is no group biling, or this user may not see it: did you mean billing? (KR910)" in ended.err
        assert "there is no group nothing" in ended.err


def test_the_plan_tells_who_will_coordinate(reconciler: Program, cluster: str, tmp_path: Path) -> None:
    offsets = document("Topic", "__consumer_offsets", "{placement: {assignment: [[1, 2], [1, 2]]}}")
    (tmp_path / "desired-state" / "s" / "offsets.yaml").write_text(offsets)
    planned = reconciler("plan", cluster, "--out", "plan.json")
    assert planned.code == 0, planned.err
    shown = reconciler("show", "plan.json").out
    # A simulated cluster is read as a real one: without groups, so the plan says how to find them.
    assert "`groups describe --plan PLAN` names them (KR920)" in shown
    described = reconciler("groups", "describe", "billing", cluster, "--plan", "plan.json").out
    assert "leader of __consumer_offsets-1; broker 1 once the plan has run" in described
    moved = SNAPSHOT | {"groups": [{"groupId": "billing", "state": "Stable", "coordinator": 1}]}
    (tmp_path / "moved.json").write_text(json.dumps(moved))
    already = reconciler("groups", "describe", "--state=moved.json", "--plan", "plan.json").out
    assert "broker 1 (k1:9092); __consumer_offsets-1 is led by broker 2\n" in already
    other = {**SNAPSHOT, "clusterId": "another"}
    (tmp_path / "other.json").write_text(json.dumps(other))
    refused = reconciler("groups", "describe", "--state=other.json", "--plan", "plan.json")
    assert (refused.code, "is of cluster c1, and these groups are of another" in refused.err) == (1, True)


# Reset


def test_a_reset_is_shown_and_nothing_is_written(reconciler: Program, cluster: str) -> None:
    before = reconciler("groups", "lag", "audit", cluster).out
    ended = reconciler("groups", "reset-offsets", "audit", "--topic", "orders", "--to-offset", "500", cluster)
    assert ended.code == 0
    assert ended.out == (
        "group audit: 3 offsets to commit, 500 records to be read again\n"
        "  topic   effect          partition  committed  new  lag\n"
        "  orders  500 read again          0       1000  500  700\n"
        "  orders  first commit            1          -   40    0\n"
        "  orders  first commit            2          -    7    0\n"
    )
    assert "orders-1, orders-2: each ends before that offset: set to its latest offset (KR902)" in ended.err
    assert ended.err.endswith("Nothing has been committed: give --execute to commit these offsets.\n")
    assert reconciler("groups", "lag", "audit", cluster).out == before


def test_a_commit_behind_the_end_promises_no_records_that_are_not_there(
    reconciler: Program, cluster: str, tmp_path: Path
) -> None:
    simulated = tmp_path / "desired-state" / "s" / "simulated.json"
    simulated.write_text(
        simulated.read_text().replace('"offsets": {"orders": {"0": 1000}}', '"offsets": {"orders": {"0": 5000}}')
    )
    reset = ("groups", "reset-offsets", "audit", "--topic", "orders:0", cluster)
    latest, earliest = reconciler(*reset, "--to-latest").out, reconciler(*reset, "--to-earliest").out
    assert latest == (
        "group audit: 1 offset to commit\n"
        "  topic   effect                partition  committed   new  lag\n"
        "  orders  no record read again          0       5000  1200    0\n"
    )
    assert "1,200 records to be read again" in earliest
    assert "unchanged" in reconciler(*reset, "--to-current").out


@pytest.mark.parametrize(
    ("target", "new"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 1200),
        (["--to-current"], 1000),
        (["--to-offset", "7"], 7),
        (["--shift-by", "-10"], 990),
        (["--shift-by=10"], 1010),
        (["--to-datetime", "2026-11-21T13:00:00.000"], 0),
        (["--to-datetime", "2026-11-21T15:00:00+01:00"], 0),
        (["--to-datetime", "2026-11-21T14:00:01Z"], 1200),
        (["--by-duration", "90m"], 0),
        (["--by-duration", "P1DT2H"], 0),
        (["--by-duration", "pt1h"], 0),
        (["--by-duration", "PT7200.5S"], 0),
        (["--by-duration", "999999999d"], 0),
        # One millisecond before 1970 is -1, which is LATEST to Kafka.
        (["--to-datetime", "1969-12-31T23:59:59.999Z"], 0),
        (["--to-datetime", "0001-01-01T00:00:00+14:00"], 0),
        (["--to-offset", "99999999999999999999999999"], 1200),
    ],
)
def test_every_target_is_committed_with_execute(reconciler: Program, cluster: str, target: list[str], new: int) -> None:
    arguments = ["groups", "reset-offsets", "audit", "--topic", "orders:0", *target, cluster]
    ended = reconciler(*arguments, "--execute", "-o", "json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["executed"] is True
    (group,) = json.loads(reconciler("groups", "lag", "audit", cluster, "-o", "json").out)["groups"]
    assert group["partitions"][0]["committed"] == new == told["groups"][0]["offsets"][0]["new"]


def test_the_csv_makes_the_round_trip(reconciler: Program, cluster: str, tmp_path: Path) -> None:
    reset = ("groups", "reset-offsets", "audit")
    assert reconciler(*reset, "--all-topics", "--to-current", "--export", "a.csv", cluster).code == 0
    assert (tmp_path / "a.csv").read_text() == "orders,0,1000\n"
    assert reconciler(*reset, "--topic", "orders", "--to-latest", "--execute", cluster).code == 0
    assert reconciler(*reset, "--from-file", "a.csv", "--execute", cluster).code == 0
    again = reconciler(*reset, "--topic=orders:0", "--to-current", "--export", "-", cluster)
    assert again.out == "orders,0,1000\n"
    assert "group audit: 1 offset to commit" in again.err


def test_several_groups_share_a_csv(reconciler: Program, cluster: str, tmp_path: Path) -> None:
    ended = reconciler(
        "groups", "reset-offsets", "--all-groups", "--all-topics", "--to-current", "--export=a.csv", cluster
    )
    assert ended.code == 3  # billing has a member
    assert (tmp_path / "a.csv").read_text() == "audit,orders,0,1000\nbilling,orders,0,40\nbilling,orders,1,40\n"
    missing = reconciler("groups", "reset-offsets", "audit", "modern", "--from-file=a.csv", cluster)
    assert (missing.code, "a.csv holds no offsets of group modern (KR916)" in missing.err) == (1, True)


def test_all_groups_make_the_round_trip_however_many_there_are(
    reconciler: Program, cluster: str, tmp_path: Path
) -> None:
    simulated = tmp_path / "desired-state" / "s" / "simulated.json"
    snapshot = json.loads(simulated.read_text())
    alone, other = snapshot["groups"][0], snapshot["groups"][0] | {"groupId": " '=spaced "}
    simulated.write_text(json.dumps(snapshot | {"groups": [alone]}))
    everyone = ("groups", "reset-offsets", "--all-groups", cluster)
    assert reconciler(*everyone, "--all-topics", "--to-current", "--export=a.csv").code == 0
    assert (tmp_path / "a.csv").read_text() == "audit,orders,0,1000\n"  # as Kafka's tool, unless one is named
    simulated.write_text(json.dumps(snapshot | {"groups": [alone, other]}))
    assert reconciler(*everyone, "--all-topics", "--to-current", "--export=b.csv").code == 0
    assert reconciler(*everyone, "--from-file=b.csv").code == 0
    simulated.write_text(json.dumps(snapshot | {"groups": [alone]}))
    ended = reconciler(*everyone, "--from-file=b.csv")
    assert ended.code == 0
    assert "b.csv holds offsets of group  '=spaced : left out, because --all-groups means" in ended.err
    assert "(KR919)" in ended.err
    named = reconciler("groups", "reset-offsets", "audit", "--from-file=b.csv", cluster)
    assert (named.code, "KR919" in named.err) == (0, False)


def test_a_topic_of_a_file_that_is_not_there_is_named(reconciler: Program, cluster: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("gone,0,5\n")
    ended = reconciler("groups", "reset-offsets", "audit", "--from-file=a.csv", cluster)
    assert (ended.code, "there is no topic gone: check its name (KR908)" in ended.err) == (1, True)


def test_a_group_with_members_is_shown_and_refused(reconciler: Program, cluster: str) -> None:
    for execute in ((), ("--execute",)):
        ended = reconciler(
            "groups", "reset-offsets", "billing", "audit", "--all-topics", "--to-latest", cluster, *execute
        )
        assert ended.code == 3
        assert "group billing: 2 offsets to commit, 1,160 records skipped" in ended.out
        assert "group billing is Stable with 1 member: stop the members first" in ended.err
    # All or nothing: the other group keeps its offsets too.
    assert " 1000  1200  200" in reconciler("groups", "lag", "audit", cluster).out


def test_a_reset_begins_a_group_that_is_not_there(reconciler: Program, cluster: str) -> None:
    ended = reconciler("groups", "reset-offsets", "new", "--topic", "orders:0,2", "--to-latest", "--execute", cluster)
    assert (ended.code, "there is no group new yet: it begins with these offsets (KR915)" in ended.err) == (0, True)
    assert "  new        classic" in reconciler("groups", "list", cluster).out
    assert reconciler("groups", "reset-offsets", "no", "--all-topics", "--to-latest", cluster).code == 1


def test_what_kafka_refuses_stands_beside_what_it_took_and_ends_with_1(
    reconciler: Program, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_one(
        _: SimulatedAdmin, __: str, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Answer]:
        denied = Answer("TOPIC_AUTHORIZATION_FAILED", "the right Read is missing")
        return {key: denied if key.partition == 1 else Answer() for key in offsets}

    monkeypatch.setattr(SimulatedAdmin, "commit_offsets", refuse_one)
    reset = ("groups", "reset-offsets", "audit", "--topic", "orders", "--to-latest", "--execute", cluster)
    ended = reconciler(*reset)
    assert (ended.code, ended.err) == (1, "")
    assert ended.out == (
        "group audit: 2 offsets committed, 200 records skipped, 1 partition refused\n"
        "  topic   effect        partition  committed   new  lag\n"
        "  orders  200 skipped           0       1000  1200    0\n"
        "  orders  refused               1          -    40    0\n"
        "  orders  first commit          2          -     7    0\n"
        "  refused: the right Read is missing\n"
    )
    told = json.loads(reconciler(*reset, "-o", "json").out)
    assert [each["error"] for each in told["groups"][0]["offsets"]] == [None, "the right Read is missing", None]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--to-latest", "--all-topics"], "name the groups, or give --all-groups"),
        (["g", "--all-groups", "--to-latest", "--all-topics"], "name the groups, or give --all-groups"),
        (["g", "--all-topics"], "give one target of --by-duration, --from-file, "),
        (
            ["g", "--all-topics", "--to-latest", "--to-offset", "0"],
            "give one target only, not --to-latest, --to-offset.",
        ),
        (["g", "--to-latest"], "say what to reset with --topic or --all-topics"),
        (["g", "--from-file", "x.csv", "--topic", "t"], "say what to reset with --topic or --all-topics"),
        (["g", "--all-topics", "--topic", "t", "--to-latest"], "give --topic or --all-topics, not both"),
        (["g", "--topic", "t:0", "--topic", "t:1", "--to-latest"], "write its partitions in one --topic"),
        (["g", "--topic", "t:", "--to-latest"], "'t:' is no topic"),
        (["g", "--topic", "t:x", "--to-latest"], "'t:x' is no topic"),
        (["g", "--topic", "t", "--to-offset", "x"], "'x' is not a valid integer"),
        (["g", "--topic", "t", "--to-datetime", "noon"], "'noon' is no time: write it as 2026-11-20T08:00:00Z"),
        (["g", "--topic", "t", "--by-duration", "90"], "'90' is no length of time"),
        (
            ["g", "--topic", "t", "--by-duration", "PT"],
            "'PT' is no length of time: write it as 90s, 30m, 4h, 2d, or as",
        ),
        (["g", "--topic", "t", "--by-duration", "PT٣S"], "is no length of time"),
        (["g", "--topic", "t", "--by-duration", "P1DT"], "'P1DT' is no length of time"),
        (["g", "--topic", "t", "--by-duration", "P999999999DT99H"], "is longer than any log"),
        (["g", "--topic", "t", "--to-latest", "--export", "-", "-o", "json"], "export to a file"),
        (["g", "--topic", "t", "--to-latest", "--state", "x.json"], "works on a cluster, not on a snapshot"),
    ],
)
def test_an_unclear_reset_is_wrong_usage(reconciler: Program, arguments: list[str], told: str) -> None:
    ended = reconciler("groups", "reset-offsets", *arguments)
    assert (ended.code, ended.out) == (64, "")
    assert told in ended.err


# Delete


def test_a_deletion_is_shown_then_done(reconciler: Program, cluster: str) -> None:
    shown = reconciler("groups", "delete", "audit", cluster)
    assert (shown.code, shown.out) == (0, "  - audit  Empty, 1 committed offset to go with it\n")
    assert shown.err == "Nothing has been deleted: give --execute to delete them.\n"
    done = reconciler("groups", "delete", "audit", "--execute", cluster)
    assert (done.code, done.out, done.err) == (0, "  - audit  deleted, with 1 committed offset\n", "")
    gone = reconciler("groups", "delete", "audit", "--execute", cluster)
    assert (gone.code, "there is no group audit" in gone.err) == (1, True)


def test_deleting_a_group_with_members_is_refused_with_all_the_others(reconciler: Program, cluster: str) -> None:
    ended = reconciler("groups", "delete", "audit", "billing", "--execute", cluster)
    assert ended.code == 3
    assert "group billing is Stable with 1 member: stop the members first. Nothing was deleted. (KR918)" in ended.err
    assert "audit" in reconciler("groups", "list", cluster).out


def test_a_group_that_kafka_does_not_delete_is_told_and_ends_with_1(
    reconciler: Program, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedAdmin, "delete_groups", lambda _, group_ids: dict.fromkeys(group_ids, NOT_EMPTY))
    ended = reconciler("groups", "delete", "audit", "--execute", cluster)
    assert (ended.code, ended.err) == (1, "")
    assert ended.out == "  ! audit  not deleted: the group has members again (NON_EMPTY_GROUP)\n"


def test_deleting_needs_a_name_and_a_cluster(reconciler: Program, state: str) -> None:
    assert reconciler("groups", "delete").code == 64
    assert reconciler("groups", "delete", "audit", state).code == 64


# Help


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_groups_has_help_with_examples_and_variables(reconciler: Program, verb: str) -> None:
    ended = reconciler("groups", verb, "--help")
    assert ended.code == 0
    wanted = ["Examples:", f"reconciler groups {verb}", "Exit codes:", "--cluster", "RECONCILER_CLUSTER"]
    assert all_of(ended.out, wanted) == []


def test_a_mistyped_verb_of_groups_is_told_the_nearest(reconciler: Program) -> None:
    assert "Did you mean describe?" in reconciler("groups", "descrbe").err


@pytest.mark.long
@pytest.mark.parametrize("arguments", [("--help",), ("reset-offsets", "--help"), ("lag", "--nonsense"), ("delete",)])
def test_help_and_wrong_usage_of_groups_load_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert modules_loaded_by("groups", *arguments) & HEAVY == set()
