"""Whose a topic is, and what of its files its owner does not allow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.owners import claims, owner_problems
from reconciler.diff.quotas import with_quotas
from reconciler.model.change import CreatePartitions
from reconciler.model.desired import ConfigBounds, Desired, DesiredCluster, DesiredOwner, DesiredTopic, Placement
from reconciler.model.plan import Plan, Source
from reconciler.model.problem import Location, Severity


@dataclass(frozen=True, slots=True)
class Case:
    """What team-a says of its topics, what is declared of orders.a, and the codes of what it breaks."""

    owner: Mapping[str, object]
    topic: Mapping[str, object] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    found: tuple[str, ...] = ()


def bounds(key: str, least: str | None = None, most: str | None = None, *one_of: str) -> dict[str, object]:
    return {"config": {key: ConfigBounds(least, most, one_of)}}


def sets(**config: str | None) -> dict[str, object]:
    return {"config": {key.replace("_", "."): value for key, value in config.items()}}


def assigned(*lists: tuple[int, ...]) -> dict[str, object]:
    return {"placement": Placement(assignment=lists)}


OWNER_AT, TOPIC_AT = {"": Location("owners.yaml", 1)}, {"": Location("topics.yaml", 1)}
TIERS = {"labels": {"tier": ("gold", "s*")}}
DAY = sets(retention_ms="86400000")
CASES = {
    "within all limits": Case(
        {"limits": {"topics": 1, "partitions": 2, "replicationFactor": 2}, "names": ("x*", "orders.*")},
        {"partitions": 2, "replication_factor": 2},
    ),
    "too many topics": Case({"limits": {"topics": 0}}, found=("KR472",)),
    "too many partitions": Case({"limits": {"partitions": 1}}, {"partitions": 2}, found=("KR472",)),
    "too many by assignment": Case({"limits": {"partitions": 1}}, assigned((1,), (2,)), found=("KR472",)),
    "too many replicas": Case({"limits": {"replicationFactor": 1}}, {"replication_factor": 2}, found=("KR473",)),
    "replicas by assignment": Case({"limits": {"replicationFactor": 1}}, assigned((1, 2)), found=("KR473",)),
    "a wrong name": Case({"names": ("web.*",)}, found=("KR474",)),
    "no label": Case(TIERS, found=("KR475",)),
    "a wrong label": Case(TIERS, labels={"tier": "bronze"}, found=("KR475",)),
    "a right label": Case(TIERS, labels={"tier": "silver"}),
    "a key not allowed": Case({"config": {}}, DAY, found=("KR476",)),
    "a key given up": Case({"config": {}}, sets(retention_ms=None)),
    "a key allowed": Case(bounds("retention.ms"), DAY),
    "above": Case(bounds("retention.ms", None, "82800000"), DAY, found=("KR476",)),
    "at the bound": Case(bounds("retention.ms", "86400000", "86400000"), DAY),
    "no limit is above": Case(bounds("retention.ms", None, "82800000"), sets(retention_ms="-1"), found=("KR476",)),
    "below": Case(bounds("retention.ms", "90000000"), DAY, found=("KR476",)),
    "none of these": Case(
        bounds("cleanup.policy", None, None, "delete"), sets(cleanup_policy="compact"), found=("KR476",)
    ),
    "one of these, in another order": Case(
        bounds("cleanup.policy", None, None, "compact,delete"), sets(cleanup_policy="delete, compact")
    ),
    "by its label": Case({"topics": (), "limits": {"topics": 0}}, labels={"owner": "team-a"}, found=("KR472",)),
    "nobody's": Case({"topics": ("x*",), "limits": {"topics": 0}}),
    "a label that is misspelt": Case({"topics": ()}, labels={"owner": "team-aa"}, found=("KR470",)),
    "an absent topic": Case({"names": ("x*",), "limits": {"topics": 0}}, {"is_absent": True}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_owner_is_told_what_its_topics_break(case: Case) -> None:
    owner = DesiredOwner("team-a", at=OWNER_AT, **{"topics": ("o*",), **case.owner})  # type: ignore[arg-type]
    topic = DesiredTopic("orders.a", labels=case.labels, at=TOPIC_AT, **case.topic)  # type: ignore[arg-type]
    desired = Desired(DesiredCluster("prod"), {topic.name: topic}, owners=(owner,))
    problems = tuple(owner_problems(desired))
    assert tuple(problem.code for problem in problems) == case.found
    assert {problem.severity for problem in problems} <= {Severity.VIOLATION}
    places = {"KR470": (TOPIC_AT[""],), "KR472": (OWNER_AT[""],)}
    for problem in problems:
        assert (problem.at, *problem.beside) == places.get(problem.code, (TOPIC_AT[""], OWNER_AT[""])), problem


@pytest.mark.parametrize(
    ("topic", "owners"),
    [
        (DesiredTopic("orders.web"), "a"),  # by the longest of its patterns
        (DesiredTopic("orders.long"), "b"),
        (DesiredTopic("orders.z"), "bc"),  # whose patterns are equally long
        (DesiredTopic("oil", labels={"owner": "c"}), "c"),
        (DesiredTopic("else"), ""),
        (DesiredTopic("oil", labels={"owner": "d"}), ""),
    ],
)
def test_the_label_comes_first_then_the_longest_pattern(topic: DesiredTopic, owners: str) -> None:
    patterns = {"a": ("o*", "orders.web"), "b": ("orders.*",), "c": ("orders.?",)}
    desired = Desired(
        DesiredCluster("prod"), owners=tuple(DesiredOwner(name, topics=p) for name, p in patterns.items())
    )
    ((_, found),) = claims(desired, [topic])
    assert "".join(owner.name for owner in found) == owners


def test_at_a_plans_end_an_owner_has_what_all_its_topics_have() -> None:
    """The sizes of orders.b are unknown; the plan gives orders.a two partitions more."""
    observed = small_cluster("orders.a-0: 1,2 size 5", "orders.b-0: 1,2")
    limits = {"topics": 1, "partitions": 3, "bytes": 10}
    owner = DesiredOwner("team-a", topics=("orders.*",), limits=limits, at=OWNER_AT)
    grows = CreatePartitions("orders.a", 1, 3)
    plan = Plan("prod", observed.cluster_id, Source(""), topic_changes=(grows,))
    found = with_quotas(plan, Desired(DesiredCluster("prod"), owners=(owner,)), observed)
    assert [one.message.partition(": ")[0] for one in found.violations] == [
        "team-a would have 4 partitions, and its limits.partitions is 3"
    ]
    assert [one.message.partition(": ")[0] for one in found.warnings] == [
        "team-a has 2 topics, and its limits.topics is 1; this plan adds none",
        "some sizes of what team-a owns are unknown, so its limits.bytes cannot be checked",
    ]
    assert {one.at for one in (*found.violations, *found.warnings)} == {OWNER_AT[""]}
