"""Two plans made on one state are applied one after the other: the second keeps the hard rules, or is refused.

The rules are restated here in plain sums over the simulated cluster, at each of its states.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from helpers.clusters.mixed_clusters import mixed_cluster
from helpers.depth import parts
from helpers.figures import Tell

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply import checks
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.limits import ApplyRules
from reconciler.apply.run import run_plan
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredLogDir,
    DesiredTopic,
    Even,
    Limits,
    LogDirState,
    Placement,
    Spread,
    TopicPolicy,
)
from reconciler.model.plan import Plan
from reconciler.model.problem import PlacementInfeasible, ReconcilerError, Refused, StalePlan
from reconciler.workflow.plan import plan_of

MB = 1_000_000
DISK = 300 * MB
SHARE = Fraction(4, 5)
MOST_REPLICAS = 11
RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
LISTS = {
    "big": ((1, 2), (4, 5)),
    "logs": ((1, 2, 3), (4, 5, 6), (1, 5, 3), (4, 2, 6)),
    "old": ((1, 2), (2, 3)),
    "orders": ((1, 2, 3), (2, 3, 4), (3, 1, 5), (4, 5, 6), (1, 5, 6), (4, 2, 3)),
    "pay": ((1, 3), (2, 1), (3, 2), (1, 2)),
}
SIZES = {"big": 60, "logs": 15, "old": 10, "orders": 20, "pay": 25}
Edit = Callable[[DesiredCluster, dict[str, DesiredTopic]], DesiredCluster]


def observed() -> Cluster:
    """Return six brokers in three racks, of which the last one has two log dirs; brokers 1 to 3 hold the most."""
    partitions = {
        name: tuple(
            Partition(
                number,
                leader=replicas[0],
                replicas=replicas,
                isr=replicas,
                sizes=(SIZES[name] * MB,) * len(replicas),
                log_dirs=tuple("/d2" if one == 6 and number % 2 else "/d1" for one in replicas),
            )
            for number, replicas in enumerate(lists)
        )
        for name, lists in LISTS.items()
    }
    topics = {name: Topic(name, found, topic_id=f"id-of-{name}") for name, found in partitions.items()}
    brokers = {}
    for broker, rack in RACKS.items():
        sizes = {"/d1": DISK} if broker != 6 else {"/d1": DISK // 2, "/d2": DISK // 2}
        dirs = tuple(LogDir(path, size, size - used(topics, broker, path)) for path, size in sizes.items())
        brokers[broker] = Broker(broker, rack=rack, log_dirs=dirs)
    return Cluster("pairs", brokers, topics, observed_at="2026-11-21T14:00:00Z", kafka_version="4.3", controller_id=1)


def used(topics: Mapping[str, Topic], broker: int, path: str) -> int:
    """Return the bytes of all replicas in that log dir."""
    return sum(
        size or 0
        for topic in topics.values()
        for one in topic.partitions
        for replica, size, held_in in zip(one.replicas, one.sizes, one.log_dirs, strict=True)
        if (replica, held_in) == (broker, path)
    )


def broker_edit(broker: DesiredBroker) -> Edit:
    return lambda cluster, _topics: replace(cluster, brokers={**cluster.brokers, broker.id: broker})


def topic_edit(name: str, **fields: object) -> Edit:
    def edit(cluster: DesiredCluster, topics: dict[str, DesiredTopic]) -> DesiredCluster:
        topics[name] = replace(topics.get(name, DesiredTopic(name)), **fields)  # type: ignore[arg-type]
        return cluster

    return edit


CHANGES: Mapping[str, Edit] = {
    "drain": broker_edit(DesiredBroker(6, BrokerState.DRAINING, has_state=True)),
    "cordon": broker_edit(DesiredBroker(4, BrokerState.CORDONED, has_state=True)),
    "log dir": broker_edit(DesiredBroker(6, log_dirs=(DesiredLogDir("/d2", LogDirState.DRAINING),))),
    "factor up": topic_edit("pay", replication_factor=3),
    "factor down": topic_edit("logs", replication_factor=2),
    "new topic": topic_edit("fresh", partitions=4, replication_factor=3),
    "grow": topic_edit("orders", partitions=10),
    "config": topic_edit("orders", config={"retention.ms": "1000"}),
    "min isr": topic_edit("logs", config={"min.insync.replicas": "3"}),
    "delete": topic_edit("old", is_absent=True),
    "racks": topic_edit("big", placement=Placement(racks_replicas=(("a", 1), ("c", 1)))),
    "assignment": topic_edit("pay", placement=Placement(assignment=((4, 5), (5, 4), (4, 6), (5, 6)))),
    "fewer replicas": lambda cluster, _topics: replace(cluster, limits=replace(cluster.limits, replicas_per_broker=9)),
    "balance": lambda cluster, _topics: replace(cluster, balance=Balance(replicas=Even(), leaders=Even())),
}


def desired(*names: str) -> Desired:
    """Return the files with these changes in them."""
    cluster = DesiredCluster(
        "pairs",
        topics=TopicPolicy(is_delete_allowed=True),
        limits=Limits(disk_use=SHARE, replicas_per_broker=MOST_REPLICAS, changed_partitions=None),
    )
    strict = Placement(racks_spread=Spread.STRICT)
    topics = {
        name: DesiredTopic(
            name,
            partitions=len(lists),
            replication_factor=len(lists[0]),
            placement=strict if name in {"orders", "logs"} else Placement(),
        )
        for name, lists in LISTS.items()
    }
    for name in names:
        cluster = CHANGES[name](cluster, topics)
    return Desired(cluster, topics, digest="sha256:" + "0" * 64)


def broken(cluster: Cluster, files: Desired) -> Counter[str]:
    """Return by how much each hard rule is broken, by rule and place."""
    found = Counter[str]()
    count = Counter(one for topic in cluster.topics.values() for each in topic.partitions for one in each.replicas)
    limit = files.cluster.limits.replicas_per_broker or 0
    for broker in cluster.brokers.values():
        found[f"replicasPerBroker of {broker.id}"] = max(0, count[broker.id] - limit)
        for one in broker.log_dirs:
            held, total = used(cluster.topics, broker.id, one.path), one.total_bytes or 0
            found[f"diskUse of {broker.id} {one.path}"] = max(0, held - int(total * SHARE))
        state = files.cluster.broker(broker.id).state
        if state in {BrokerState.DRAINING, BrokerState.CORDONED}:
            found[f"{state} {broker.id}"] = count[broker.id]
    for topic in cluster.topics.values():
        found.update(dict(broken_by_topic(topic, files)))
    return +found


def broken_by_topic(topic: Topic, files: Desired) -> Iterator[tuple[str, int]]:
    """Yield the racks, the replication factor and the replicas in sync that a topic's partitions are short of."""
    needed = int(topic.configs.get("min.insync.replicas", "1"))
    placement = files.topics[topic.name].placement
    for each in topic.partitions:
        key = f"{topic.name}-{each.partition}"
        racks = Counter(RACKS[one] for one in each.target_replicas)
        if placement.racks_spread is Spread.STRICT:
            most = -(-len(each.target_replicas) // 3)
            yield f"racks of {key}", sum(max(0, here - most) for here in racks.values())
        yield f"factor of {key}", max(0, needed - len(each.target_replicas))
        yield f"in sync of {key}", max(0, min(needed, len(each.target_replicas)) - len(each.isr))
        yield f"twice in {key}", len(each.replicas) - len(set(each.replicas))


def plans() -> Mapping[str, Plan]:
    """Return the plan of each change, all made on one state; each fits by itself."""
    state = observed()
    made = {name: plan_of(desired(name), state) for name in CHANGES}
    assert {name for name, plan in made.items() if plan.violations or plan.is_empty} == set()
    return made


def applied(plan: Plan, start: Cluster, files: Desired) -> tuple[str, Cluster, list[Cluster]]:
    """Apply a plan; return how it ended, the cluster in the end, and all states that it passed."""
    passed: list[Cluster] = []
    admin = SimulatedAdmin(start, save=passed.append)
    outcomes = []
    for is_dry in (True, False):
        try:
            run_plan(plan, admin, MemoryJournal(), declared=ApplyRules(files.cluster), is_dry_run=is_dry)
            outcomes.append("done")
        except (Refused, StalePlan) as error:
            outcomes.append(error.code)
        if outcomes[-1] != "done":
            assert (admin.writes, admin.cluster) == (0, start), "a refused plan changes nothing"
    assert outcomes[0] == outcomes[1], "a dry run promises what a run does not do"
    return outcomes[1], admin.cluster, passed


def played(first: str, second: str, made: Mapping[str, Plan]) -> tuple[str, list[str]]:
    """Apply the first plan, then the second; return how the second ended, and the rules that it broke."""
    end, between, _ = applied(made[first], observed(), desired(first))
    assert end == "done", (first, end)
    files = desired(first, second)
    before = broken(between, files)
    end, _, passed = applied(made[second], between, files)
    worse = [rule for state in passed for rule, excess in broken(state, files).items() if excess > before[rule]]
    return end, sorted(set(worse))


def test_each_of_two_plans_made_on_one_state_keeps_the_rules_or_is_refused(figures: Tell) -> None:
    made = plans()
    ends = {pair: played(*pair, made) for pair in permutations(CHANGES, 2)}
    wrong = {pair: rules for pair, (_, rules) in ends.items() if rules}
    assert wrong == {}
    counts = Counter(end for end, _ in ends.values())
    figures("pairs of plans", f"{len(ends)} ordered pairs of {len(CHANGES)} changes: {dict(sorted(counts.items()))}")
    assert len(ends) >= 110
    assert {"done", "KR413", "KR419", "KR461", "KR462", "KR502"} <= counts.keys()


def test_without_the_second_look_pairs_do_break_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "check_limits", lambda *_args, **_options: None)
    made = plans()
    ends = {pair: played(*pair, made) for pair in permutations(CHANGES, 2)}
    wrong = {rule.split(" ")[0] for _, rules in ends.values() for rule in rules}
    assert {"replicasPerBroker", "diskUse", "draining", "cordoned", "factor"} <= wrong


@parts("seeds", range(60), deep=range(1500))
def test_a_plan_without_violations_is_not_refused_on_the_state_that_it_was_made_from(
    seeds: range, figures: Tell
) -> None:
    ends = Counter[str]()
    for seed in seeds:
        files, state = mixed_cluster(seed)
        state = replace(state, topics={name: in_one_dir(topic) for name, topic in state.topics.items()})
        try:
            plan = plan_of(files, state)
        except PlacementInfeasible:
            continue
        if plan.is_empty or plan.violations:
            continue
        admin = SimulatedAdmin(state)
        try:
            run_plan(plan, admin, MemoryJournal(), declared=ApplyRules(files.cluster))
            end = "done"
        except ReconcilerError as error:
            end = f"{error.code} of seed {seed}: {error}"
        ends[end[:5]] += 1
        # Nothing is moved to a dead broker, or from one that has all records; and some moves never end.
        assert end[:5] in {"done", "KR420", "KR704"}, end
    assert ends["done"] > len(seeds) / 4
    figures("plans on their own state", f"{len(seeds)} seeds, {ends['done']} plans: none refused")


def in_one_dir(topic: Topic) -> Topic:
    """Return the topic with each replica in the log dir that brokers of random clusters have."""
    found = (replace(one, log_dirs=("/d",) * len(one.replicas) if one.sizes else ()) for one in topic.partitions)
    return replace(topic, partitions=tuple(found))
