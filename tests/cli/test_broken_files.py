"""What stops, looks or cleans up, while a run is under way and files of topics are broken: all of it works."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Ended, Program
from helpers.program.documents import document

from reconciler.apply.crash import Killed, planted
from reconciler.cli.main import main
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.files.strict_yaml import MAX_BYTES

pytestmark = pytest.mark.long

FOLDER = Path("desired-state/small")
SNAPSHOT = FOLDER / "snapshot.json"
CLUSTER = document("Cluster", "small", "{clusterId: simulated, simulation: snapshot.json, moves: {throttle: 50MiB/s}}")
CLASS = document("TopicClass", "plain", "{replicationFactor: 3}")
TOPIC = document("Topic", "clicks", "{class: plain, placement: {assignment: [[1, 2, 4], [2, 3, 4]]}}")
Break = Callable[[], object]


def writes(name: str, content: str | bytes) -> Break:
    """Return what writes that file of the cluster's folder."""
    data = content.encode() if isinstance(content, str) else content

    def broken() -> None:
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_bytes(data)

    return broken


def _many_broken_folders() -> None:
    """Make folders by names of files, and a way that leads in a circle."""
    (FOLDER / "x.yaml").mkdir()
    (FOLDER / "x.yaml" / "topics.yaml").write_text("kind: [")
    (FOLDER / "again").symlink_to("x.yaml")


def _too_large() -> None:
    with (FOLDER / "topics.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)


BROKEN: dict[str, Break] = {
    "syntax": writes("topics.yaml", TOPIC + "  spec: [\n"),
    "an unknown kind": writes("topics.yaml", TOPIC.replace("Topic", "Topik")),
    "an unknown key": writes("topics.yaml", TOPIC.replace("placement", "placment")),
    "not UTF-8": writes("topics.yaml", TOPIC.encode() + b"# \xff\n"),
    "a folder of that name": _many_broken_folders,
    "a dangling link": lambda: (FOLDER / "x.yaml").symlink_to("nowhere"),
    "a link out of the root": lambda: (FOLDER / "x.yaml").symlink_to("/etc/hostname"),
    "a circle of links": lambda: (FOLDER / "x.yaml").symlink_to("x.yaml"),
    "a named pipe": partial(os.mkfifo, FOLDER / "x.yaml"),
    "too large": _too_large,
    "too deep": writes("topics.yaml", TOPIC + "---\n" + "[" * 40 + "]" * 40),
    "duplicate keys": writes("topics.yaml", TOPIC + "kind: Topic\n"),
    "duplicate topics": writes("more.yaml", TOPIC),
    "empty": writes("topics.yaml", ""),
    "binary": writes("topics.yaml", bytes(range(256)) * 40),
    "an anchor": writes("topics.yaml", TOPIC + "---\n&a [*a, *a]\n"),
    "a missing class": (FOLDER / "classes.yaml").unlink,
    "a second Cluster": writes("more.yaml", CLUSTER.replace("snapshot.json", "other.json")),
    "another cluster is broken": writes("../large/cluster.yaml", CLUSTER + "["),
    "behind the Cluster": writes("cluster.yaml", f"{CLUSTER}---\nkind: [\n---\n{TOPIC}"),
    "before the Cluster": writes("cluster.yaml", f"%YAML 1.2\n---\nkind: Topik\n---\n&a [\n--- # so\n{CLUSTER}"),
    "beside the Cluster, not UTF-8": writes("cluster.yaml", f"{CLUSTER}---\r\n# ".encode() + b"\xff Cluster"),
    "beside the Cluster, too deep": writes("cluster.yaml", f"{'[' * 40}\n---\n{CLUSTER}---\n{'{Cluster: ' * 40}"),
}
SOUND = {"empty"}
"""Which of them `validate` takes: nobody has to declare a topic."""
VERBS: dict[str, tuple[str, ...]] = {
    "apply": ("apply", "plan.json", "--yes"),
    "cancel": ("cancel", "--cluster", "small"),
    "cancel --rollback": ("cancel", "--cluster", "small", "--rollback", "--yes"),
    "doctor": ("doctor", "--cluster", "small"),
    "doctor --fix": ("doctor", "--cluster", "small", "--fix", "throttles", "--yes"),
    "groups describe": ("groups", "describe", "--cluster", "small"),
    "show": ("show", "plan.json"),
    "snapshot": ("snapshot", "--cluster", "small"),
    "status": ("status", "--cluster", "small"),
    "throttle": ("throttle", "plan.json", "20MiB/s"),  # which finds no run that is on
}


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a cluster, a group on it, and a plan for it, whose apply died with moves in flight."""
    folder = tmp_path_factory.mktemp("crashed")
    observed = small_cluster(f"clicks-0: 1,2,3 size {10**9}", f"clicks-1: 2,3,1 size {10**9}")

    def kill(name: str) -> None:
        if name == "reassign.recorded" and any(one.is_reassigning for _, one in read_snapshot(SNAPSHOT).partitions()):
            raise Killed

    with chdir(folder):
        FOLDER.mkdir(parents=True)
        for name, text in (("cluster", CLUSTER), ("classes", CLASS), ("topics", TOPIC)):
            (FOLDER / f"{name}.yaml").write_text(text)
        write_snapshot(observed, SNAPSHOT)
        assert main(["plan", "--out", "plan.json"]) == 0
        with pytest.raises(Killed), planted(kill):
            main(["apply", "plan.json", "--yes"])
    return folder


@pytest.fixture
def begun(crashed: Path, tmp_path: Path, reconciler: Program) -> Program:
    """Return the program in a copy of that folder."""
    shutil.copytree(crashed, tmp_path, dirs_exist_ok=True)
    return reconciler


@pytest.fixture(scope="module")
def sound() -> dict[str, Ended]:
    """Keep how each verb ends where no file is broken: asked once, by the first test that needs it."""
    return {}


@pytest.fixture
def as_ever(verb: str, sound: dict[str, Ended], crashed: Path, tmp_path: Path, reconciler: Program) -> Ended:
    """Return how that verb ends where no file is broken."""
    if verb not in sound:
        with chdir(shutil.copytree(crashed, tmp_path / "sound")):
            sound[verb] = reconciler(*VERBS[verb])
    return sound[verb]


LOOKERS = ("doctor", "status")
"""These read all that there is to read, and are tried on each of them."""


@pytest.mark.parametrize(
    ("verb", "broken"),
    [
        *((verb, broken) for verb in LOOKERS for broken in BROKEN),
        *((verb, broken) for verb in VERBS if verb not in LOOKERS for broken in ("an unknown kind", "a missing class")),
    ],
)
def test_what_is_wrong_in_files_of_topics_stops_no_verb(verb: str, broken: str, as_ever: Ended, begun: Program) -> None:
    BROKEN[broken]()
    ended = begun(*VERBS[verb])
    assert (ended.code, comparable(ended)) == (as_ever.code, comparable(as_ever)), (ended, as_ever)
    if verb == "apply":
        lists = [one.replicas for _, one in read_snapshot(SNAPSHOT).partitions()]
        assert lists == [(1, 2, 4), (2, 3, 4)]


def comparable(ended: Ended) -> list[str]:
    """Return what a verb says, or its error, but for the time that it took, and for what doctor did not look at."""
    text = re.sub(r" in (under )?\d+ s ", " ", ended.out or ended.err)
    return [line for line in text.splitlines() if not line.startswith("not looked at: the topics that are declared: ")]


@pytest.mark.parametrize("broken", BROKEN)
def test_each_of_them_is_an_error_of_validate(broken: str, begun: Program) -> None:
    BROKEN[broken]()
    assert begun("validate", "--cluster", "*").code == (0 if broken in SOUND else 1)


@pytest.mark.parametrize(("broken", "code"), [("an unknown kind", "KR102"), ("a missing class", "KR112")])
def test_doctor_says_what_it_left_out(broken: str, code: str, begun: Program) -> None:
    BROKEN[broken]()
    told = [line for line in begun("doctor").out.splitlines() if line.startswith("not looked at: the topics")]
    assert len(told) == 1
    assert told[0].startswith("not looked at: the topics that are declared: desired-state/small/topics.yaml:")
    assert told[0].endswith(f" ({code}); run validate")


def test_a_way_back_that_knows_no_rules_of_topics_says_so(begun: Program) -> None:
    BROKEN["an unknown kind"]()
    ended = begun("cancel", "--rollback", "--dry-run")
    assert (
        "the way back is planned without the topics that are declared: desired-state/small/topics.yaml:2:7" in ended.err
    )


BROKEN_CLUSTERS = {
    "syntax": (CLUSTER + "  }\n", "5:3", "KR101"),
    "an unknown key": (CLUSTER.replace("moves", "movs"), "4:57", "KR103"),
    "behind a sound document": (f"{CLASS}---\n{CLUSTER}".replace("moves", "movs"), "9:57", "KR103"),
    "a throttle of nothing": (CLUSTER.replace("50MiB/s", "0B/s"), "4:65", "KR129"),
    "twice": (f"{CLUSTER}---\n{CLUSTER}", "6:1", "KR111"),
    "empty": ("", "", "KR111"),
}


@pytest.mark.parametrize(
    ("verb", "broken"),
    [
        *(("cancel", broken) for broken in BROKEN_CLUSTERS),
        *((verb, "an unknown key") for verb in VERBS if verb not in {"cancel", "show"}),
    ],
)
def test_a_broken_cluster_document_is_told_with_its_place_and_what_serves_instead(
    verb: str, broken: str, begun: Program
) -> None:
    text, place, code = BROKEN_CLUSTERS[broken]
    writes("cluster.yaml", text)()
    before = SNAPSHOT.read_bytes()
    ended = begun(*VERBS[verb])
    first, last = ended.err.splitlines()[0], ended.err.splitlines()[-1]
    assert ended.code == 1
    assert first.startswith(f"error: desired-state/small{f'/cluster.yaml:{place}: ' if place else ' '}"), ended
    assert f"({code})" in first
    assert "--bootstrap-server HOST:PORT or --client FILE serve instead (KR133)" in last
    assert SNAPSHOT.read_bytes() == before


def test_other_broken_files_do_not_hide_what_is_wrong_with_the_cluster_document(begun: Program) -> None:
    BROKEN["binary"]()
    writes("cluster.yaml", CLUSTER + "  }\n")()
    told = begun("status", "--cluster", "small").err.splitlines()
    assert [line.rpartition(" ")[2] for line in told] == ["(KR101)", "(KR133)"], told


def test_the_cluster_document_may_stand_in_another_file(begun: Program) -> None:
    (FOLDER / "cluster.yaml").rename(FOLDER / "main.yml")
    BROKEN["an unknown kind"]()
    assert begun("status", "plan.json").code == 0
    assert begun("cancel", "plan.json").code == 0


def test_a_folder_that_is_not_there_is_told_by_name(begun: Program) -> None:
    for verb in (("status", "plan.json"), ("cancel", "plan.json"), ("apply", "plan.json", "--yes"), ("snapshot",)):
        ended = begun("-C", "nowhere", *verb, "--cluster", "small")
        assert (ended.code, "nowhere has no cluster 'small': check --cluster and -C" in ended.err) == (64, True)


TAKES_A_PLAN = {
    "apply": ("apply", "plan.json", "--yes"),
    "apply --dry-run": ("apply", "plan.json", "--dry-run"),
    "cancel": ("cancel", "plan.json"),
    "cancel --rollback": ("cancel", "plan.json", "--rollback", "--yes"),
    "doctor": ("doctor", "plan.json"),
    "doctor of a snapshot": ("doctor", "plan.json", "--state", str(SNAPSHOT)),
    "groups describe": ("groups", "describe", "--plan", "plan.json"),
    "show": ("show", "plan.json"),
    "show --prove": ("show", "plan.json", "--prove"),
    "status": ("status", "plan.json"),
    "throttle": ("throttle", "plan.json", "20MiB/s"),
}


@pytest.mark.parametrize(("verb", "by"), [*((verb, "option") for verb in TAKES_A_PLAN), ("apply", "variable")])
def test_another_cluster_than_the_plans_is_wrong_usage(
    verb: str, by: str, begun: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER, "desired-state/large")
    before = SNAPSHOT.read_bytes()
    if by == "variable":
        monkeypatch.setenv("RECONCILER_CLUSTER", "large")
    ended = begun(*TAKES_A_PLAN[verb], *(("--cluster", "large") if by == "option" else ()))
    assert (ended.code, ended.out) == (64, "")
    assert ended.err == (
        "error: the plan is for small, and --cluster (RECONCILER_CLUSTER) names large: name the right plan, "
        "or leave --cluster out, as a plan says itself what it is for (KR004)\n"
    )
    assert SNAPSHOT.read_bytes() == before


def test_the_plans_own_cluster_may_be_named_too(begun: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_CLUSTER", "small")
    assert [begun(*TAKES_A_PLAN[verb]).code for verb in ("show", "status")] == [0, 0]
