"""After a kill at any crash point, what each verb that cleans says is what the cluster then shows.

The cluster is a file of JSON, which `Seen` reads by itself: it shares nothing with the program but the names of keys.
Every case begins on a machine that knows nothing of the run: no journal, no kept plan. `RECORDS` says what became of
the run's record in the cluster.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.figures import Tell
from helpers.plans.deaths import passing
from helpers.program.call import Ended, Program
from helpers.program.documents import document, write_simulated

from reconciler.apply.crash import CRASH_POINTS, Killed, planted
from reconciler.cli.main import main
from reconciler.model.cluster import Cluster

pytestmark = pytest.mark.long

SNAPSHOT = Path("desired-state/small/snapshot.json")
RECORD = SNAPSHOT.with_name("snapshot.json.lock.kept")
KEYS = (
    "leader.replication.throttled.rate", "follower.replication.throttled.rate", "cordoned.log.dirs",
    "leader.replication.throttled.replicas", "follower.replication.throttled.replicas",
)  # fmt: skip
RATE = "20971520"
"""What the plan throttles to, 20 MiB/s, and what an operator has set on a broker too."""
DECLARED = (
    document("Topic", "clicks", "{placement: {assignment: [[1, 2, 4], [2, 3, 4]]}}"),
    document("Topic", "orders", "{placement: {assignment: [[2, 1], [4, 5]]}}"),
    document("Topic", "audit", "{placement: {assignment: [[4, 3]]}}"),
)
SPEC = "moves: {throttle: 20MiB/s, perStage: 2, cordon: draining}, brokers: [{id: 6, state: draining}]"
OPERATORS = {1: {KEYS[0]: "7000000"}, 5: {KEYS[0]: RATE, KEYS[1]: RATE}}


def observed(leaders: str) -> Cluster:
    """Return the cluster before any run; `leaders`: which replicas of clicks an operator throttles as leaders."""
    return small_cluster(
        f"audit-0: 6,3 size {10**9}", f"clicks-0: 1,2,3 size {10**9}", f"clicks-1: 2,3,1 size {10**9}",
        f"orders-0: 1,2 size {10**9}", f"orders-1: 4,6 size {10**9}",
        kafka_version="4.3",
        configs={"clicks": {KEYS[3]: leaders, KEYS[4]: "0:3,1:1"}, "orders": {KEYS[4]: ""}},
        rates=OPERATORS,
    )  # fmt: skip


RECORDS = ("kept", "gone", "short", "bare")
VERBS: Mapping[str, tuple[str, ...]] = {
    "doctor": ("doctor", "--cluster", "small", "--fix", "throttles", "--yes"),
    "doctor PLAN": ("doctor", "plan.json", "--fix", "throttles", "--yes"),
    "apply PLAN": ("apply", "plan.json", "--yes"),
    "cancel PLAN": ("cancel", "plan.json"),
    "cancel": ("cancel", "--cluster", "small", "--yes"),
}
OF_OTHER_RUNS = frozenset({"withdraw.before", "withdraw.sent", "dirs.before", "dirs.sent", "dirs.recorded"})
OF_NOTHING_LEFT = frozenset({"end.recorded"})


@dataclass(frozen=True)
class Seen:
    """What the cluster's file shows."""

    keys: Mapping[str, str]
    """Each throttle and cordon, by where it is."""
    moving: frozenset[str]
    replicas: Mapping[str, tuple[int, ...]]


def seen() -> Seen:
    found = json.loads(SNAPSHOT.read_text())
    owners = [(f"broker {one['id']}", one) for one in found["brokers"]]
    owners += [(f"topic {one['name']}", one) for one in found["topics"]]
    keys = {
        f"{name} {key}": one["configs"][key] for name, one in owners for key in KEYS if key in one.get("configs", {})
    }
    partitions = {
        f"{topic['name']}-{one['partition']}": one for topic in found["topics"] for one in topic["partitions"]
    }
    moving = {name for name, one in partitions.items() if one.get("addingReplicas") or one.get("removingReplicas")}
    return Seen(keys, frozenset(moving), {name: tuple(one["replicas"]) for name, one in partitions.items()})


def let_moves_end() -> None:
    """Have Kafka end what is in flight: the target's replicas are there and in sync, the others gone."""
    found = json.loads(SNAPSHOT.read_text())
    for one in (one for topic in found["topics"] for one in topic["partitions"]):
        gone = one.pop("removingReplicas", [])
        one.pop("addingReplicas", None)
        for name in ("sizes", "logDirs"):
            if name in one:
                one[name] = [
                    value for value, broker in zip(one[name], one["replicas"], strict=True) if broker not in gone
                ]
        one["replicas"] = [broker for broker in one["replicas"] if broker not in gone]
        one["isr"] = list(one["replicas"])
        one["leader"] = one["leader"] if one["leader"] in one["replicas"] else one["replicas"][0]
    SNAPSHOT.write_text(json.dumps(found))


@dataclass(frozen=True)
class Folders:
    """Folders of one cluster: before any run, and after a run that died; each is made once."""

    base: Path
    leaders: str
    dead: dict[tuple[str, int], Path | None] = field(default_factory=dict)

    @property
    def laid_out(self) -> Path:
        """Return a folder with the cluster, what is declared for it, and its plan."""
        folder = self.base / "laid-out"
        if not folder.exists():
            folder.mkdir()
            with chdir(folder):
                write_simulated(observed(self.leaders), *DECLARED, spec=SPEC)
                assert main(["plan", "--out", "plan.json"]) == 0
        return folder

    def killed_at(self, point: str, hit: int) -> Path | None:
        """Return a folder whose run died when it passed that point so often; None if it ended before."""
        if (point, hit) not in self.dead:
            self.dead[point, hit] = self._killed_at(point, hit)
        return self.dead[point, hit]

    def _killed_at(self, point: str, hit: int) -> Path | None:
        folder = self.base / f"killed-{len(self.dead)}"
        shutil.copytree(self.laid_out, folder)
        is_hit = passing(point, hit)

        def kill(name: str) -> None:
            if is_hit(name):
                raise Killed

        with chdir(folder), planted(kill):
            try:
                main(["apply", "plan.json", "--yes"])
            except Killed:
                shutil.rmtree("runs", ignore_errors=True)
                return folder
        return None


def change_record(how: str) -> None:
    """Let the record be as an operator, time or a small `offset.metadata.max.bytes` leaves it."""
    if not RECORD.exists() or how == "kept":
        return
    if how == "gone":
        RECORD.unlink()
        return
    fields: dict[str, Any] = {**json.loads(RECORD.read_text()), "whole": False, "moves": []}
    fields["lists"] = [row[:3] for row in fields["lists"]]
    fields |= {"rates": None, "lists": None} if how == "bare" else {}
    RECORD.write_text(json.dumps(fields))


def cases(points: Collection[str], hits: range) -> Iterator[tuple[str, int, str, str]]:
    for point in sorted({*points} - OF_OTHER_RUNS):
        for hit in hits:
            for record in RECORDS:
                yield from ((point, hit, record, verb) for verb in VERBS)


@pytest.mark.parametrize(
    ("leaders", "points", "hits"),
    [
        pytest.param("0:9", CRASH_POINTS, range(1, 2), id="part"),
        pytest.param("*", ("moves.done", "throttle.topic", "unthrottle.sent"), range(2, 3), id="all-leaders-part"),
        pytest.param("0:9", CRASH_POINTS, range(1, 4), id="deep", marks=pytest.mark.deep),
        pytest.param("*", CRASH_POINTS, range(1, 4), id="all-leaders-deep", marks=pytest.mark.deep),
    ],
)
def test_what_a_verb_says_it_left_is_what_the_cluster_shows(
    tmp_path: Path, reconciler: Program, figures: Tell, *, leaders: str, points: Collection[str], hits: range
) -> None:
    folders = Folders(tmp_path, leaders)
    before = seen_in(folders.laid_out)
    counts: Counter[str] = Counter()
    for number, (point, hit, record, verb) in enumerate(cases(points, hits)):
        dead = folders.killed_at(point, hit)
        if dead is None:
            continue
        place = tmp_path / f"case-{number}"
        shutil.copytree(dead, place)
        with chdir(place):
            change_record(record)
            if verb in {"doctor", "cancel"}:
                Path("plan.json").unlink()
            wrong = list(judged(reconciler, verb, record, before, counts))
        assert not wrong, f"{verb}, killed at {point}:{hit}, record {record}: {wrong}"
        shutil.rmtree(place)
        counts["cases"] += 1
    figures("verbs after a kill", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))


def seen_in(folder: Path) -> Seen:
    with chdir(folder):
        return seen()


def judged(reconciler: Program, verb: str, record: str, before: Seen, counts: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with a verb's words, its exit code, or what it left."""
    dead = seen()
    ended = reconciler(*VERBS[verb])
    if ended.code == 3 and "KR455" in ended.err:
        counts["refused while moves are in flight"] += 1
        if seen() != dead:
            yield "it was refused, and changed something"
        let_moves_end()
        dead = seen()
        ended = reconciler(*VERBS[verb])
    after = seen()
    ours = {name: value for name, value in after.keys.items() if before.keys.get(name) != value}
    lost = {name: value for name, value in before.keys.items() if after.keys.get(name) is None}
    text = f"exit {ended.code}\n{ended.out}\n{ended.err}"
    counts[f"{verb} exit {ended.code}"] += 1
    if "PLAN" in verb and ended.code != 0:
        yield f"the plan was at hand, and it could not decide\n{text}"
    # A cancel by the record alone takes off; what the record says was there before is for doctor, which asks.
    is_for_doctor = verb == "cancel" and ended.code == 5 and all(is_named(name, ended) for name in lost)
    if lost and not is_for_doctor:
        yield f"an operator's values are gone: {lost}\n{text}"
    if ended.code == 0 and (ours or (after.moving and "cancel" in verb)):
        yield f"it ended with 0, and left {ours}, {after.moving}\n{text}"
    is_at_hand = "PLAN" in verb or record in {"kept", "short"}
    if is_at_hand and ours and not is_for_doctor:
        yield f"the plan or the record was at hand, and it left {ours}\n{text}"
    if ended.code not in {0, 5} and not (verb == "cancel" and ended.code == 1 and not ours and "KR709" in text):
        yield f"it ended with {ended.code}\n{text}"
    yield from (f"{name} is left, and not named\n{text}" for name in ours if not is_named(name, ended))
    put_back = re.search(r"Put back: (\d+)\.", ended.err)
    changed = sum(dead.keys.get(name) != after.keys.get(name) for name in {*dead.keys, *after.keys})
    if put_back is not None and int(put_back[1]) != changed:
        yield f"it says {put_back[0]} and changed {changed}\n{text}"
    if verb == "apply PLAN" and ended.code == 0 and after.moving:
        yield f"it ended with 0, and moves are in flight\n{text}"


def is_named(name: str, ended: Ended) -> bool:
    """Whether one line says where that key is, and which."""
    *owner, key = name.split(" ")
    return any(" ".join(owner) in line and key in line for line in f"{ended.out}\n{ended.err}".splitlines())
