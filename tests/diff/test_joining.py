"""The declared class of a new topic: whatever the class says is so already, by the judgement of a plan."""

from collections.abc import Mapping

from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.imported.classes import with_classes
from reconciler.diff.imported.joining import changed_by_a_plan, with_declared_classes
from reconciler.diff.imported.strongest_rules import adopted
from reconciler.files.desired_writer import is_writable
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Placement, Spread
from reconciler.model.imported import Adopted

BASE = Desired(DesiredCluster("c"))
STRICT, PREFER = Placement(racks_spread=Spread.STRICT), Placement(racks_spread=Spread.PREFER)
LINES = ("t-0: 1,2,3", "t-1: 4,5,6", "loose-0: 1,4,6", "two-0: 1,2")
CONFIGS = {"t": {"retention.ms": "1000", "min.insync.replicas": "2"}}


def a_class(factor: int | None, placement: Placement = Placement(), **config: str | None) -> DesiredTopic:  # noqa: B008 - frozen
    return DesiredTopic(
        "", replication_factor=factor, placement=placement, config={k.replace("_", "."): v for k, v in config.items()}
    )


def joined(classes: Mapping[str, DesiredTopic], usual: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the class of each topic of a cluster of six brokers in racks a, b, c, a, b, c."""
    observed = small_cluster(*LINES, configs=CONFIGS)
    found = adopted(BASE, observed, is_writable)
    return with_declared_classes(found, classes, usual or {}, changed_by_a_plan(BASE, observed)).class_of


def test_the_class_that_says_most_of_a_topic_is_its_class() -> None:
    classes = {"plain": a_class(3), "keeping": a_class(3, retention_ms="1000"), "other": a_class(3, retention_ms="2")}
    assert joined(classes) == {"t": "keeping", "loose": "plain"}


def test_a_class_whose_rules_the_topic_breaks_is_not_its_class() -> None:
    assert joined({"spread": a_class(3, STRICT), "any": a_class(3)}) == {"t": "spread", "loose": "any"}
    assert joined({"spread": a_class(None, STRICT)}) == {"t": "spread", "two": "spread"}
    far = Placement(brokers_except=frozenset({1}))
    assert joined({"far": a_class(3, far)}) == {}


def test_a_class_may_ask_for_less_than_the_topic_keeps() -> None:
    assert joined({"wish": a_class(3, PREFER)})["t"] == "wish"


def test_the_class_of_its_neighbours_goes_first() -> None:
    classes = {"keeping": a_class(3, retention_ms="1000"), "team": a_class(3)}
    assert joined(classes, {"t": "team", "loose": "team"}) == {"t": "team", "loose": "team"}
    assert joined(classes, {"t": "team"})["loose"] == "team"
    assert joined({"empty": a_class(None)}) == {}
    assert joined({"empty": a_class(None)}, {"t": "empty"}) == {"t": "empty"}


def test_a_class_that_removes_an_override_is_for_topics_without_one() -> None:
    assert joined({"none": a_class(3, retention_ms=None)}) == {"loose": "none"}


def test_without_a_cluster_a_class_must_have_the_very_rules() -> None:
    topics = {
        name: DesiredTopic(name, replication_factor=3, placement=each)
        for name, each in (("p", PREFER), ("n", Placement()))
    }
    found = with_declared_classes(Adopted(topics), {"s": a_class(3, STRICT), "p": a_class(3, PREFER)}, {})
    assert found.class_of == {"p": "p"}
    assert [(each.name, each.topics) for each in found.joined] == [("p", 1)]


def test_new_classes_beside_declared_ones_have_other_names_and_hold_three_topics_at_least() -> None:
    declared = {"standard": a_class(3, STRICT)}
    few = {name: DesiredTopic(name, replication_factor=2) for name in "ab"}
    assert with_classes(Adopted(few), declared).classes == ()
    many = {name: DesiredTopic(name, replication_factor=2, config={"segment.bytes": "1073741824"}) for name in "abc"}
    (made,) = with_classes(Adopted(many), declared).classes
    assert (made.name, made.topics) == ("rf2-unspread-segment-1gib", 3)
    (alone,) = with_classes(Adopted(many), {"gold": a_class(3)}).classes
    assert alone.name == "rf2-segment-1gib"
