"""`import` through the command line: from a snapshot, beside a cluster.yaml, and what it refuses."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import ROOT, Program, all_of
from helpers.program.documents import document
from jsonschema import Draft7Validator

from reconciler.files.schema_check import schema_folder
from reconciler.files.snapshot import read_snapshot, write_snapshot

pytestmark = pytest.mark.long

DEMO = ROOT / "desired-state" / "demo"


@pytest.fixture
def state(tmp_path: Path) -> str:
    """Return the demo's snapshot in the folder that the program is called in."""
    shutil.copy(DEMO / "snapshot.json", tmp_path / "state.json")
    return "state.json"


def declare(spec: str) -> Path:
    """Write a Cluster document with that spec; return its folder."""
    folder = Path("desired-state/prod")
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(document("Cluster", "prod", spec))
    return folder


def files() -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(Path().rglob("*")) if file.is_file()}


def test_a_snapshot_is_imported_validates_and_plans_to_nothing(reconciler: Program, state: str) -> None:
    made = reconciler("import", "--cluster", "prod", "--state", state)
    assert (made.code, made.out) == (0, "")
    assert made.err.startswith("Wrote desired-state/prod: 40 topics, 480 partitions, 3 classes, 3 files.\n")
    assert (
        all_of(
            made.err,
            [
                "Kept today: racks strict by 39 of 40 topics; replicationFactor 3 by 39, 2 by 1;",
                "topic sessions: racks: 2 of 12 partitions (4, 9)",
            ],
        )
        == []
    )
    assert reconciler("validate").code == 0
    planned = reconciler("plan", "--state", state, "--detailed-exitcode")
    # One topic has as many replicas as its min ISR: a plan says so as long as it is so.
    nothing, warned = planned.out.splitlines()
    assert (planned.code, nothing) == (0, "No changes. 40 topics, 480 partitions match.")
    assert warned.startswith("warning: topic clicks is to have partitions with 2 replicas, as many as min.insync")
    assert reconciler("diff", "--state", state, "--detailed-exitcode").code == 0
    topics = Path("desired-state/prod/topics.yaml").read_text("utf-8")
    assert "# racks: 2 of 12 partitions (4, 9) are not spread" in topics
    assert "metadata: {name: audit}\nspec: {class: standard, partitions: 12, config: {retention.ms: 90d}}\n" in topics


def test_configs_that_only_the_cluster_knows_are_written_under_custom_configs(
    reconciler: Program, tmp_path: Path
) -> None:
    own = {"vendor.tier.enable": "true", "retention.ms": "86400000"}
    several = {name: {**own, "vendor.y": name} if name == "a" else own for name in "abcd"}
    lines = [f"{name}-0: 1,2 leader 1" for name in several]
    write_snapshot(small_cluster(*lines, configs=several), tmp_path / "state.json")
    assert reconciler("import", "--cluster", "prod", "--state", "state.json").code == 0
    assert "customConfigs: [vendor.tier.enable]" in Path("desired-state/prod/classes.yaml").read_text("utf-8")
    assert "customConfigs: [vendor.y]" in Path("desired-state/prod/topics.yaml").read_text("utf-8")
    assert reconciler("validate").code == 0
    assert reconciler("plan", "--state", "state.json", "--detailed-exitcode").code == 0


def test_json_says_all_of_it_in_the_schemas_form(reconciler: Program, state: str) -> None:
    made = reconciler("import", "--cluster", "prod", "--state", state, "-o", "json")
    value = json.loads(made.out)
    Draft7Validator(json.loads((schema_folder() / "import.json").read_text("utf-8"))).validate(value)
    assert value["planEmpty"] is True
    assert [each["name"] for each in value["classes"]] == ["standard", "compacted", "keep-2d"]
    assert [each["topic"] for each in value["exceptions"]] == [None, "sessions"]
    assert value["balance"] == {"replicas": "within 1%", "leaders": "even", "topics": "off"}


def test_beside_a_cluster_file_that_says_how_to_reach_it_only_the_rest_is_written(
    reconciler: Program, state: str
) -> None:
    folder = declare("{simulation: snapshot.json, elections: off}")
    own = (folder / "cluster.yaml").read_text()
    shutil.copy(state, folder / "snapshot.json")
    made = reconciler("import", "--cluster", "prod")
    assert made.code == 0
    assert "(not written: cluster.yaml was there, and stays)" in made.err
    assert (folder / "cluster.yaml").read_text() == own
    assert sorted(path.name for path in folder.iterdir()) == [
        "classes.yaml", "cluster.yaml", "snapshot.json", "topics.yaml",
    ]  # fmt: skip
    assert reconciler("plan", "--detailed-exitcode").code == 0


def test_elections_are_written_off_where_a_plan_would_hold_some(reconciler: Program) -> None:
    write_snapshot(small_cluster("a-0: 1,2", "a-1: 2,1 leader 1"), "state.json")
    made = reconciler("import", "--cluster", "prod", "--state", "state.json")
    assert "a-1 is not led by the preferred leader: elections: off is written" in made.err
    text = Path("desired-state/prod/cluster.yaml").read_text("utf-8")
    assert "elections: off # 1 partition is not led by the preferred leader today; without" in " ".join(text.split())
    assert reconciler("plan", "--state", "state.json", "--detailed-exitcode").code == 0
    Path("desired-state/prod/cluster.yaml").write_text(text.replace("elections: off", ""))
    assert reconciler("plan", "--state", "state.json", "--detailed-exitcode").code == 2


def test_a_cluster_file_that_is_there_and_wants_elections_is_told_to_hold_some(reconciler: Program) -> None:
    write_snapshot(small_cluster("a-0: 2,1 leader 1"), "state.json")
    declare("{}")
    made = reconciler("import", "--state", "state.json", "--cluster", "prod")
    assert "a plan elects it, unless the cluster.yaml that is there says elections: off" in made.err
    assert "asks for more than the cluster keeps: a plan would hold 1 election (KR015)" in made.err


def test_a_broker_that_is_to_leave_is_told_and_its_topics_are_declared_all_the_same(
    reconciler: Program, state: str
) -> None:
    declare("{brokers: [{id: 5, state: draining}], topics: {managed: all, delete: allow}}")
    made = reconciler("import", "--state", state)
    assert made.code == 64
    made = reconciler("import", "--state", state, "--cluster", "prod", "-o", "json")
    value = json.loads(made.out)
    assert (value["topics"], value["leftOut"], value["planEmpty"]) == (40, [], False)
    assert "move " in value["exceptions"][0]["message"]


def test_a_topic_of_a_dead_broker_stands_in_the_file_as_a_comment(reconciler: Program) -> None:
    write_snapshot(small_cluster("whole-0: 4,5", "sick-0: 1,2", fenced=[2]), "state.json")
    made = reconciler("import", "--cluster", "prod", "--state", "state.json")
    assert "topic sick: left out: partition 0: broker 2 is not alive" in made.err
    text = Path("desired-state/prod/topics.yaml").read_text("utf-8")
    assert "# apiVersion: reconciler/v1\n# kind: Topic\n# metadata: {name: sick}\n" in text
    assert reconciler("plan", "--state", "state.json", "--detailed-exitcode").code == 0
    modeline, *rest = text.splitlines()
    assert modeline.startswith("# yaml-language-server: $schema=")
    lines = ["---" if line.startswith("# Left out: ") else line.removeprefix("# ") for line in rest]
    Path("desired-state/prod/topics.yaml").write_text("\n".join(lines))
    assert reconciler("validate").code == 0
    declared = reconciler("plan", "--state", "state.json", "--detailed-exitcode")
    assert (declared.code, "sick" in declared.out) == (2, True)


def test_a_second_import_changes_nothing_and_says_so(reconciler: Program, state: str) -> None:
    arguments = ("import", "--cluster", "prod", "--state", state)
    assert reconciler(*arguments).code == 0
    before = files()
    again = reconciler(*arguments)
    said = "Nothing to add to desired-state/prod: 40 topics are declared already.\nA plan of these files is empty.\n"
    assert (again.code, again.out, again.err) == (0, "", said)
    value = json.loads(reconciler(*arguments, "-o", "json").out)
    assert (value["added"], value["files"], value["topics"], value["declared"]) == ([], [], 0, 40)
    assert files() == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--state", "state.json"), 64, "name the cluster"),
        (("--cluster", "prod"), 64, "name --bootstrap-server, --client or --state"),
        (("--from", "strimzi"), 64, "--from strimzi needs the FILEs"),
        (("--cluster", "prod", "--state", "state.json", "x.yaml"), 64, "leave --state"),
        (("--cluster", "prod", "--state", "nosuch.json"), 1, "nosuch.json: no such file"),
        (("--cluster", "..", "--state", "state.json"), 1, "'..' is no cluster's name"),
        ((), 64, "reconciler init"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_writes_nothing(
    reconciler: Program, state: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    del state
    before = files()
    ended = reconciler("import", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert files() == before


def test_client_properties_are_named_and_never_copied(reconciler: Program, state: str) -> None:
    Path("desired-state").mkdir()
    for folder in (Path("desired-state"), Path()):
        secret = folder / "secret.properties"
        secret.write_text("bootstrap.servers=kafka:9092\nsasl.password=canary-of-mine\n")
        name = f"of-{folder.name}"
        made = reconciler("import", "--cluster", name, "--state", state, "--client", str(secret))
        text = Path(f"desired-state/{name}/cluster.yaml").read_text("utf-8")
        # What is outside the root, no document may name.
        assert ('client:\n    file: "../secret.properties"\n' in text) is bool(folder.name)
        assert "canary" not in text + made.out + made.err


def test_a_cluster_of_many_topics_is_split_by_the_beginnings_of_their_names(reconciler: Program) -> None:
    names = [f"{team}.{thing}.{number}" for team in ("shop", "web") for thing in ("a", "b") for number in range(120)]
    lines = [f"{name}-0: {1 + n % 6}" for n, name in enumerate([*names, "lonely", "web", *["__internal"]])]
    write_snapshot(small_cluster(*lines), "many.json")
    assert reconciler("import", "--cluster", "big", "--state", "many.json").code == 0
    written = sorted(path.name for path in Path("desired-state/big/topics").iterdir())
    assert written == ["other.yaml", "shop.a.yaml", "shop.b.yaml", "web.a.yaml", "web.b.yaml", "web.other.yaml"]
    assert (
        "__internal" not in b"".join(files()[str(Path("desired-state/big/topics", each))] for each in written).decode()
    )
    planned = reconciler("plan", "--state", "many.json", "--detailed-exitcode")
    assert planned.code == 0


def test_the_same_cluster_gives_the_same_bytes(reconciler: Program, state: str) -> None:
    assert reconciler("import", "--cluster", "prod", "--state", state).code == 0
    value = json.loads(Path(state).read_text("utf-8"))
    for key in ("topics", "brokers"):
        value[key].reverse()
    Path("turned.json").write_text(json.dumps(value))
    assert reconciler("import", "-C", "again", "--cluster", "prod", "--state", "turned.json").code == 0
    for file in Path("desired-state/prod").iterdir():
        assert file.read_bytes() == Path("again/prod", file.name).read_bytes(), file
    assert read_snapshot(state) == read_snapshot("turned.json")


STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {{name: {name}, labels: {{strimzi.io/cluster: {cluster}}}}}
spec: {{partitions: 6, replicas: 3, config: {{min.insync.replicas: 2, retention.ms: {retention}}}}}
"""


def strimzi(*names: str, cluster: str = "prod", retention: int = 86400000) -> str:
    return "---\n".join(STRIMZI.format(name=name, cluster=cluster, retention=retention) for name in names)


def test_topics_of_another_tool_become_ours_and_a_plan_says_what_differs(reconciler: Program, state: str) -> None:
    Path("topics.yaml").write_text(strimzi("orders.events", "audit", "mine").replace("partitions: 6", "partitions: 24"))
    made = reconciler("import", "topics.yaml", "--bootstrap-server", "kafka:9092", "-o", "json")
    assert made.code == 0
    value = json.loads(made.out)
    Draft7Validator(json.loads((schema_folder() / "import.json").read_text("utf-8"))).validate(value)
    assert (value["cluster"], value["source"], value["planEmpty"]) == ("prod", "files", None)
    assert reconciler("validate").code == 0
    text = Path("desired-state/prod/cluster.yaml").read_text("utf-8")
    assert 'bootstrap.servers: "kafka:9092"' in text
    assert "config: {min.insync.replicas: 2, retention.ms: 1d}" in Path("desired-state/prod/classes.yaml").read_text()
    planned = reconciler("diff", "--state", state, "--detailed-exitcode")
    assert planned.code == 2
    assert "mine" in planned.out


def test_topics_of_several_clusters_need_a_name(reconciler: Program) -> None:
    Path("topics.yaml").write_text(strimzi("a", "b") + "---\n" + strimzi("a", cluster="test"))
    ended = reconciler("import", "topics.yaml")
    assert (ended.code, ended.out) == (64, "")
    assert "the files speak of 2 clusters (prod, test): name one with --cluster" in ended.err
    assert reconciler("import", "topics.yaml", "--cluster", "other").code == 64
    one = reconciler("import", "topics.yaml", "--cluster", "prod")
    assert one.code == 0
    assert "1 topic of other clusters (test) is left out (KR017)" in one.err
    assert reconciler("validate").code == 0


def test_a_file_without_topics_is_an_error_that_says_what_it_holds(reconciler: Program) -> None:
    Path("x.yaml").write_text("kind: Deployment\napiVersion: apps/v1\n")
    ended = reconciler("import", "x.yaml", "--cluster", "prod")
    assert ended.code == 1
    assert (
        all_of(
            ended.err,
            [
                "no topic of Strimzi, Jikkou, topicctl, Terraform or kafka-reassign-partitions in x.yaml",
                "x.yaml:1:1:",
                "KR016",
            ],
        )
        == []
    )


def test_a_wrong_file_is_told_by_its_line_and_nothing_is_written(reconciler: Program) -> None:
    Path("x.yaml").write_text(strimzi("a").replace("partitions: 6", "partitions: six"))
    before = files()
    ended = reconciler("import", "x.yaml", "--cluster", "prod")
    assert (ended.code, ended.out) == (1, "")
    assert "error: x.yaml:4:20: spec.partitions must be a whole number of at least 1 (KR191)" in ended.err
    assert files() == before


def test_uneven_offsets_that_no_file_declares_are_no_warning_for_ever(reconciler: Program) -> None:
    # Each declared topic is on all three brokers, and nothing of it can even out what the internal topic adds.
    own = [f"t{number}-0: 1,2,3 size 5" for number in range(9)]
    offsets = [f"__consumer_offsets-{number}: 1 size 5" for number in range(3)]
    observed = small_cluster(*own, *offsets, brokers=(1, 2, 3))
    topics = dict(observed.topics)
    topics["__consumer_offsets"] = replace(topics["__consumer_offsets"], is_internal=True)
    write_snapshot(replace(observed, topics=topics), "state.json")
    assert reconciler("import", "--cluster", "prod", "--state", "state.json").code == 0
    cluster = Path("desired-state/prod/cluster.yaml").read_text("utf-8")
    assert re.search("replicas: {within: 20%} +# 9 to 12 on a broker", cluster)
    planned = reconciler("plan", "--state", "state.json", "--detailed-exitcode")
    assert (planned.code, planned.out) == (0, "No changes. 9 topics, 9 partitions match.\n")
