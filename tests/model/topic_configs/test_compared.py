"""Every part that compares two values of a topic config takes two spellings of one value for the same."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import plan_of

from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import paths_of
from reconciler.apply.topic_changes import ChangeState, standing
from reconciler.diff.against import MirrorMaker, Pair, Seen, compared_topics
from reconciler.diff.compare import compare
from reconciler.diff.imported.joining import changed_by_a_plan, with_declared_classes
from reconciler.diff.imported.strongest_rules import adopted
from reconciler.diff.mirrors import Copy, SourceTopic, with_copies
from reconciler.diff.owners import topic_problems
from reconciler.diff.rules import topic_rules
from reconciler.files.desired_writer import is_writable
from reconciler.model.change import AlterConfigs, CreateTopic
from reconciler.model.cluster import Cluster
from reconciler.model.desired import ConfigBounds, Desired, DesiredCluster, DesiredMirror, DesiredOwner, DesiredTopic
from reconciler.model.problem import Location
from reconciler.model.stage import TopicsStage
from reconciler.staging.rollback import rollback_of

BASE = Desired(DesiredCluster("c"))
ALIKE = [
    ("min.cleanable.dirty.ratio", "0.50", "0.5"),
    ("min.cleanable.dirty.ratio", "0.0001", "1.0E-4"),
    ("preallocate", "True", "true"),
    ("cleanup.policy", "compact, delete", "delete,compact"),
    ("retention.ms", "0604800000", "604800000"),
]
UNLIKE = [("cleanup.policy", "compact", "delete"), ("min.cleanable.dirty.ratio", "0.5", "0.05")]


def cluster(key: str, value: str) -> Cluster:
    return small_cluster("t-0: 1", configs={"t": {key: value}})


def by_diff(key: str, one: str, other: str) -> bool:
    observed, desired = cluster(key, other), replace(BASE, topics={"t": DesiredTopic("t", config={key: one})})
    return not compare(desired, observed, topic_rules(desired, observed)).topic_changes


def by_another_cluster(key: str, one: str, other: str) -> bool:
    pairs = [Pair("t", "t", None, ())]
    (found,) = compared_topics(pairs, Seen(cluster(key, one)), Seen(cluster(key, other)), MirrorMaker())
    return not found.configs


def by_mirror(key: str, one: str, other: str) -> bool:
    """By the copy's own document, and by another mirror of the same copy."""
    at = {f"config.{key}": Location("m.yaml", 1)}
    first, second = (
        Copy(DesiredMirror(name, "us", ("t",), config=(key,), at=at), "t", SourceTopic(1, {key: value}, is_whole=True))
        for name, value in (("m", one), ("n", other))
    )
    document = replace(BASE, topics={"t": DesiredTopic("t", config={key: other})})
    answers = {not with_copies(document, {"t": [first]})[1], not with_copies(BASE, {"t": [first, second]})[1]}
    (is_same,) = answers
    return is_same


def by_class(key: str, one: str, other: str) -> bool:
    observed, classes = cluster(key, other), {"k": DesiredTopic("", config={key: one})}
    found = adopted(BASE, observed, is_writable)
    joined = with_declared_classes(found, classes, {}, changed_by_a_plan(BASE, observed))
    return joined.class_of == {"t": "k"}


def by_owner(key: str, one: str, other: str) -> bool:
    owner = DesiredOwner("o", config={key: ConfigBounds(None, None, (other,))})
    return not [*topic_problems(DesiredTopic("t", config={key: one}), owner)]


def by_run(key: str, one: str, other: str) -> bool:
    """By a change of configs that is done, one that is not begun, and a topic that is there already."""
    observed = cluster(key, other)
    seen = Observed(topics=observed.topics, brokers=observed.brokers, configs={"t": observed.topics["t"].configs})
    altered, created = AlterConfigs("t", {key: one}, (), {key: None}), CreateTopic("t", 1, 1, {key: one}, {0: (1,)})
    begun = AlterConfigs("t", {key: "another"}, (), {key: one})
    paths = paths_of(plan_of([], observed))
    states = [standing(change, seen, paths).state for change in (altered, created, begun)]
    assert states in ([ChangeState.DONE, ChangeState.DONE, ChangeState.TO_DO], [ChangeState.STALE] * 3)
    return states[0] is ChangeState.DONE


def by_rollback(key: str, one: str, other: str) -> bool:
    """By what the plan set; what is as it was before the plan needs nothing."""
    observed = cluster(key, other)
    changes = AlterConfigs("t", {key: one}, (), {key: None}), AlterConfigs("t", {key: "another"}, (), {key: one})
    set_by, set_before = (
        rollback_of(plan_of([TopicsStage(1, (0,))], observed, topic_changes=(change,)), observed, BASE)
        for change in changes
    )
    answers = {not set_by.left and not set_by.plan.is_empty, not set_before.left and set_before.plan.is_empty}
    (is_same,) = answers
    return is_same


PLACES = (by_diff, by_another_cluster, by_mirror, by_class, by_owner, by_run, by_rollback)


@pytest.mark.parametrize("is_same_for", PLACES)
def test_spellings_of_one_value_are_the_same(is_same_for: Callable[[str, str, str], bool]) -> None:
    assert [each for each in ALIKE if not is_same_for(*each)] == []
    assert [each for each in UNLIKE if is_same_for(*each)] == []
