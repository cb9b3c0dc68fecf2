"""Laws of imports over random clusters: files that validate, a plan that is empty, rules that could not be stronger."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from helpers.clusters.small_cluster import with_cordons
from helpers.depth import parts
from mutations.faults import Fault, planted
from properties.import_clusters import Habits, import_cluster_of

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.files.desired_writer import is_writable
from reconciler.files.load import load_desired
from reconciler.files.snapshot import write_snapshot
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import Balance, BalanceTarget, Desired, DesiredTopic, Even, Off, Spread, Within
from reconciler.model.imported import Imported
from reconciler.planner.place import plan_placement
from reconciler.workflow.importing import import_cluster
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.plan import plan_of
from reconciler.workflow.validate import validate_files

pytestmark = pytest.mark.long

WHOLE = range(400)
SHOWING = (15, 23, 89, 90)
"""Few others show that leaving replicas count, that any class fits, that a loose band will do."""
PART = (*SHOWING, *WHOLE[:15])
UNEVEN = {"KR803", "KR804", "KR805"}
"""Warnings that counts are less even than asked."""
BANDS = [Fraction(percent, 100) for percent in (1, 2, 5, 10, 15, 20, 25, 30)]
THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def imported(observed: Cluster) -> tuple[Imported, Desired]:
    """Import a cluster through its snapshot; return what was made, and what its files declare."""
    with TemporaryDirectory() as folder:
        state = Path(folder, "state.json")
        write_snapshot(observed, state)
        made = import_cluster(Inputs(root=folder, cluster="c", state=str(state)))
        assert validate_files(Inputs(root=folder, cluster="c")).problems == ()
        return made, load_desired(Path(folder), "c")


def complaints(observed: Cluster) -> list[str]:
    """Return what is wrong with the import of a cluster, as an oracle sees it that knows the contract alone."""
    made, desired = imported(observed)
    plan = plan_of(desired, observed)
    found = [] if plan.is_empty and made.is_plan_empty else [f"a plan is not empty: {plan.summary}"]
    found += [f"each plan warns: {each.message}" for each in plan.warnings if each.code in UNEVEN]
    for name, topic in observed.topics.items():
        if name.startswith("__"):
            found += [f"{name} is declared"] if name in desired.topics else []
        elif name in desired.topics:
            found += _weaker(observed, name, desired.topics[name])
        elif not _is_sick(observed, topic.partitions) and not _collides(name, observed):
            found.append(f"{name} is left out, and there is no reason")
    declared = [each for key, each in observed.partitions() if key.topic in desired.topics]
    waiting = [each for each in declared if each.leader != (first := each.target_replicas[0]) and first in each.isr]
    if bool(waiting) == desired.cluster.is_election_wanted:
        found.append(f"{len(waiting)} partitions are not led by the first replica, and elections are written so")
    return found + _weaker_balance(desired, observed)


def _weaker(observed: Cluster, name: str, declared: DesiredTopic) -> list[str]:
    lists = [partition.target_replicas for partition in observed.topics[name].partitions]
    factors = {len(replicas) for replicas in lists}
    configs = dict(observed.topics[name].configs)
    for key in THROTTLES:
        configs.pop(key, None)
    if len(factors) == 1 and int(configs.get("min.insync.replicas", 0)) > min(factors):
        del configs["min.insync.replicas"]
    facts = {
        "partitions": declared.partitions == len(lists),
        "replicationFactor": declared.replication_factor == (min(factors) if len(factors) == 1 else None),
        "config": dict(declared.config) == configs,
        "racks": declared.placement.racks_spread is _strongest_spread(observed, lists),
        "no assignment": declared.placement.assignment is None,
    }
    return [
        f"{name}: {what} of {declared} against {lists}, {configs}" for what, is_right in facts.items() if not is_right
    ]


def _strongest_spread(observed: Cluster, lists: list[tuple[int, ...]]) -> Spread | None:
    racks = sorted({broker.rack or "" for broker in observed.brokers.values()})
    if len(racks) == 1:
        return None
    if all(_is_strict(observed, racks, replicas) for replicas in lists):
        return Spread.STRICT
    return Spread.PREFER if all(_is_as_spread_as_can_be(observed, racks, replicas) for replicas in lists) else None


def _held(observed: Cluster, racks: list[str], replicas: tuple[int, ...]) -> list[int]:
    count = Counter(observed.brokers[replica].rack or "" for replica in replicas)
    return [count[rack] for rack in racks]


def _is_strict(observed: Cluster, racks: list[str], replicas: tuple[int, ...]) -> bool:
    held = _held(observed, racks, replicas)
    return max(held) <= -(-len(replicas) // len(racks)) and min(held) >= len(replicas) // len(racks)


def _is_as_spread_as_can_be(observed: Cluster, racks: list[str], replicas: tuple[int, ...]) -> bool:
    """Whether no rack holds more than it must, given how many live brokers each has: water filled to one level."""
    room = [sum((b.rack or "") == rack and not b.is_fenced for b in observed.brokers.values()) for rack in racks]
    level = next(level for level in range(len(replicas) + 1) if sum(min(each, level) for each in room) >= len(replicas))
    level = max(level, -(-len(replicas) // len(racks)))
    least = len(replicas) // len(racks)
    held = _held(observed, racks, replicas)
    return all(min(least, each) <= here <= level for each, here in zip(room, held, strict=True))


def _is_sick(observed: Cluster, partitions: Sequence[Partition]) -> bool:
    return any(
        partition.leader is None or not all(observed.is_alive(replica) for replica in partition.target_replicas)
        or not observed.is_alive(partition.leader) or partition.leader not in partition.target_replicas
        for partition in partitions
    )  # fmt: skip


def _collides(name: str, observed: Cluster) -> bool:
    return any(other != name and other.replace(".", "_") == name.replace(".", "_") for other in observed.topics)


def _weaker_balance(desired: Desired, observed: Cluster) -> list[str]:
    balance = desired.cluster.balance
    alive = [broker for broker in observed.brokers if observed.is_alive(broker)]
    partitions = [partition.target_replicas for _, partition in observed.partitions()]
    if not desired.topics:
        return [] if balance == Balance() else ["a balance without topics"]
    held = Counter(replica for replicas in partitions for replica in replicas)
    led = Counter(replicas[0] for replicas in partitions)
    found = []
    if isinstance(balance.leaders, Off):
        if _band(led, alive) is not None:
            found.append("leaders are in a band, and none is written")
    else:
        found += _weaker_target("leaders", balance.leaders, led, desired, observed)
    return found + _weaker_target("replicas", balance.replicas, held, desired, observed)


def _weaker_target(
    measure: str, target: BalanceTarget, held: Counter[int], desired: Desired, observed: Cluster
) -> list[str]:
    alive = [broker for broker in observed.brokers if observed.is_alive(broker)]
    counts = [held[broker] for broker in alive]
    if isinstance(target, Even):
        return []
    if max(counts) - min(counts) <= 1:
        return [f"{measure} are even: {counts}"]
    band = _band(held, alive)
    if band != (target.fraction if isinstance(target, Within) else None):
        return [f"{measure} are within {band}, written is {target}: {counts}"]
    asked = Balance(replicas=Even()) if measure == "replicas" else Balance(leaders=Even())
    tighter = replace(desired, cluster=replace(desired.cluster, balance=asked))
    rules = topic_rules(tighter, observed)
    placed = plan_placement(tighter, observed, rules, compare(tighter, observed, rules))
    is_kept = not placed.moves and not any(each.code in UNEVEN for each in placed.warnings)
    return [f"{measure}: even is kept"] if is_kept else []


def _band(held: Counter[int], alive: list[int]) -> Fraction | None:
    share = Fraction(sum(held[broker] for broker in alive), len(alive))
    whole = (share.numerator // share.denominator, -(-share.numerator // share.denominator))
    for band in BANDS:
        if all(abs(held[b] - share) <= band * share or held[b] in whole for b in alive):
            return band
    return None


@parts("seeds", PART, deep=WHOLE)
def test_an_import_validates_plans_to_nothing_and_writes_the_strongest_rules(seeds: Sequence[int]) -> None:
    assert {seed: wrong for seed in seeds if (wrong := complaints(import_cluster_of(seed)))} == {}


@parts("seeds", range(4), deep=range(80))
def test_an_import_of_a_neglected_cluster_plans_to_nothing(seeds: Sequence[int]) -> None:
    habits = Habits(0.6, 0.8, 0.6, 0.8, 0.4, 0.8)
    assert {seed: wrong for seed in seeds if (wrong := complaints(import_cluster_of(seed, habits)))} == {}


@parts("seeds", range(5), deep=range(150))
def test_an_import_of_a_cluster_with_cordoned_brokers_plans_to_nothing(seeds: Sequence[int]) -> None:
    for seed in seeds:
        drawn = import_cluster_of(seed)
        observed = with_cordons(drawn, Random(seed).sample(sorted(drawn.brokers), 2))
        made, desired = imported(observed)
        assert made.is_plan_empty, seed
        assert desired.cluster.brokers == {}
        assert not UNEVEN & {each.code for each in plan_of(desired, observed).warnings}, seed


STRANGE = (
    "a",
    "é",
    "a b",
    "x\u200b",
    "a\nb",
    "'",
    '"',
    "{",
    "#x",
    "\u202e",
    "true",
    "1",
    "\\",
    "*",
    "a: b",
    "..",
    "a.b",
    "a_b",
)
VALUES = (*STRANGE, "a\nb", "-1", "99999999999999999999", "7d", "zstd", "1.0", "compact")
KEYS = (*STRANGE, "a\nb", "retention.ms", "min.insync.replicas", "cleanup.policy", "compression.type")


@parts("seeds", range(8), deep=range(120))
def test_strange_names_racks_and_configs_do_no_harm(seeds: Sequence[int]) -> None:
    for seed in seeds:
        made, desired, observed = _strangely_named(seed)
        assert made.is_plan_empty, seed
        assert plan_of(desired, observed).is_empty, seed


def _strangely_named(seed: int) -> tuple[Imported, Desired, Cluster]:
    random = Random(seed)
    drawn = import_cluster_of(seed, Habits())
    brokers = {each.id: replace(each, rack=random.choice([*STRANGE, None])) for each in drawn.brokers.values()}
    topics = [
        replace(
            topic,
            name=random.choice((name, "a.b", "a_b", "a\nb", *STRANGE)),
            configs={random.choice(KEYS): random.choice(VALUES)},
        )
        for name, topic in drawn.topics.items()
    ]
    named = {each.name: each for each in sorted(topics, key=lambda each: each.name)}
    observed = replace(drawn, brokers=brokers, topics=named, cluster_id=random.choice(STRANGE))
    return *imported(observed), observed


ADOPT, BALANCE = "diff.imported.strongest_rules", "diff.imported.evenness"
FAULTS = [
    Fault("no strict", f"{ADOPT}._ladder", "else (Spread.STRICT, Spread.PREFER)", "else (Spread.PREFER,)"),
    Fault("a broken rule is written", f"{ADOPT}._descend", "if name in broken and", "if name not in broken and"),
    Fault("the sick are declared", f"{ADOPT}._leave_changing_out", "if name in draft.topics:", "if False:"),
    Fault("leaving replicas count", f"{ADOPT}._add", "len(partition.target_replicas)", "len(partition.replicas)"),
    Fault("collisions are declared", f"{ADOPT}._leave_misnamed_out", "if other != name:", "if False:"),
    Fault("min ISR above the factor", f"{ADOPT}._why_unwritable", "int(value) > factor", "int(value) > 99"),
    Fault("two apart is even", f"{BALANCE}._differ_by_one", "<= 1", "<= 2"),
    Fault("a band is wider than its name", f"{BALANCE}._is_within", "(1 + band)", "(1 + 3 * band)"),
    Fault("a loose band will do", f"{BALANCE}.tightest_band", "for band in BANDS", "for band in BANDS[3:]"),
    Fault("elections are overlooked", "workflow.importing.import_cluster", "waiting=len(kept.waiting)", "waiting=0"),
    Fault(
        "the planner is not asked",
        "workflow.importing._is_kept",
        "not placed.moves and",
        "",
    ),
    Fault(
        "a plan warns for ever",
        "workflow.importing._is_kept",
        " and not any(each.code in UNEVEN for each in placed.warnings)",
        "",
    ),
    Fault("any class fits", "diff.imported.classes._groups", "held.issuperset(each)", "(held or each)"),
    Fault("own configs are lost", "files.desired_writer._topic_document", "found.config.get(key) != value", "False"),
    Fault("minutes are hours", "files.desired_writer._with_unit", "number // size", "number // size + 1"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_planted_in_an_import_is_noticed(fault: Fault) -> None:
    is_writable.cache_clear()
    try:
        with planted(fault, "reconciler"):
            assert first_to_notice(PART) is not None
    finally:
        is_writable.cache_clear()


def first_to_notice(seeds: Sequence[int]) -> int | None:
    """Return the first seed whose import is wrong."""
    return next((seed for seed in seeds if _is_noticed(seed)), None)


def _is_noticed(seed: int) -> bool:
    try:
        return complaints(import_cluster_of(seed)) != []
    except Exception:  # noqa: BLE001 - a fault may end in any error; without it there is none
        return True
