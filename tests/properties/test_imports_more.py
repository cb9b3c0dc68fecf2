"""Laws of a second import over random clusters: what is there stays, what came later is declared as it is."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from helpers.depth import parts
from mutations.faults import Fault, planted
from properties.import_clusters import CONFIGS, Habits, import_cluster_of

from reconciler.files.load import load_desired
from reconciler.files.snapshot import write_snapshot
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, Desired
from reconciler.model.imported import Imported
from reconciler.workflow.importing import import_cluster
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.plan import plan_of

pytestmark = pytest.mark.long

THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
NEGLECTED = Habits(0.6, 0.8, 0.6, 0.8, 0.4, 0.8)


def complaints(seed: int) -> list[str]:
    """Return what is wrong with three imports: of some topics, of all, and of all again."""
    random = Random(seed)
    observed = import_cluster_of(seed, NEGLECTED if seed % 2 else Habits())
    early = {name: topic for name, topic in observed.topics.items() if random.random() < 0.6}
    with TemporaryDirectory() as folder:
        root = Path(folder, "root")
        _imported(replace(observed, topics=early), root)
        (root / "c" / "own.yaml").write_text("---\n".join(_classes(random)), "utf-8")
        before, first = _files(root), load_desired(root, "c")
        made = _imported(observed, root)
        after, desired = _files(root), load_desired(root, "c")
        again = _imported(observed, root)
        found = [] if _files(root) == after and not again.added else ["a third import adds something"]
    found += [f"{name} lost bytes" for name, content in before.items() if not after.get(name, b"").startswith(content)]
    found += [f"{name} is another now" for name in first.topics if desired.topics[name] != first.topics[name]]
    new = desired.topics.keys() - first.topics.keys()
    found += [] if new == {each.topic for each in made.added} else ["what was added is not what is told"]
    quiet = replace(desired.cluster, balance=Balance(), is_election_wanted=False)
    was = plan_of(Desired(quiet, first.topics), observed)
    plan = plan_of(replace(desired, cluster=quiet), observed)
    found += [] if plan.summary == was.summary and plan.topic_changes == was.topic_changes else ["a plan does more"]
    found += [] if made.is_plan_empty == plan_of(desired, observed).is_empty else ["the plan is told wrongly"]
    return found + [f"{name} is not declared as it is" for name in new if not _is_as_observed(observed, desired, name)]


def _classes(random: Random) -> Iterator[str]:
    """Yield classes as people write them, which suit some of the topics that come later."""
    for number in range(random.randint(0, 6)):
        factor, spread = random.choice((1, 2, 2, 3)), random.choice(("strict", "prefer", "ignore", None))
        rules = f"placement: {{racks: {{spread: {spread}}}}}" if spread else "protect: [delete]"
        configs = {key: value for key, value in random.choice(CONFIGS).items() if key not in THROTTLES}
        config = ", ".join(f"{key}: {json.dumps(value)}" for key, value in configs.items())
        head = f"apiVersion: reconciler/v1\nkind: TopicClass\nmetadata: {{name: own-{number}}}\n"
        yield f"{head}spec: {{replicationFactor: {factor}, {rules}, config: {{{config}}}}}\n"


def _imported(observed: Cluster, root: Path) -> Imported:
    state = root.parent / "state.json"
    write_snapshot(observed, state)
    return import_cluster(Inputs(root=str(root), cluster="c", state=str(state)))


def _files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.yaml")}


def _is_as_observed(observed: Cluster, desired: Desired, name: str) -> bool:
    declared, topic = desired.topics[name], observed.topics[name]
    factors = {len(partition.target_replicas) for partition in topic.partitions}
    configs = {key: value for key, value in topic.configs.items() if key not in THROTTLES}
    if len(factors) == 1 and int(configs.get("min.insync.replicas", 0)) > min(factors):
        del configs["min.insync.replicas"]
    factor = min(factors) if len(factors) == 1 else None
    is_same = (declared.partitions, declared.replication_factor) == (len(topic.partitions), factor)
    return is_same and {key: value for key, value in declared.config.items() if value is not None} == configs


@parts("seeds", range(3), deep=range(200))
def test_what_is_declared_stays_and_what_came_later_is_declared_as_it_is(seeds: Sequence[int]) -> None:
    assert {seed: wrong for seed in seeds if (wrong := complaints(seed))} == {}


JOINING, LAYOUT = "diff.imported.joining", "files.layout"
FAULTS = [
    Fault("a class is not judged", f"{JOINING}.with_declared_classes", "if changed is not None", "if False"),
    Fault("any config fits", f"{JOINING}._candidates", "topic.config.get(key) == value", "True"),
    Fault(
        "any factor fits",
        f"{JOINING}._candidates",
        "each.replication_factor in {None, topic.replication_factor}",
        "True",
    ),
    Fault("what is there goes", f"{LAYOUT}.with_added", "made = content + gap + added", "made = added"),
    Fault(
        "declared topics come again",
        "diff.imported.strongest_rules.is_undeclared",
        "not is_declared(base, name)",
        "True",
    ),
]


@pytest.mark.deep
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_planted_in_a_second_import_is_noticed(fault: Fault) -> None:
    with planted(fault, "reconciler"):
        assert next((seed for seed in range(60) if _is_noticed(seed)), None) is not None


def _is_noticed(seed: int) -> bool:
    try:
        return complaints(seed) != []
    except Exception:  # noqa: BLE001 - a fault may end in any error; without it there is none
        return True
