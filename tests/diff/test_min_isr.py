"""A replication factor at or below the min ISR in force is reported in every output, and no plan claims to keep it."""

import json
from dataclasses import dataclass, replace
from itertools import product

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import reached_replicas

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.files.plan_file import plan_text
from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    TopicPolicy,
)
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Location, Problem
from reconciler.model.stage import moves_of
from reconciler.render import as_markdown, as_plan_html, as_text
from reconciler.staging.rollback import rollback_of
from reconciler.workflow.plan import Planner, plan_of

BELOW, AT = "KR881", "KR882"
MIN_ISR = "min.insync.replicas"
KINDS = ("lowered", "raised", "unchanged", "only declared", "new", "grown", "assigned", "drained")
SOURCES = ("topic", "files", "brokers", "a broker's override")
LINE = Location("c/topics.yaml", 3)


@dataclass(frozen=True, slots=True)
class Case:
    """A topic `t` that has `replicas` once its plan has run, and who sets its min ISR."""

    kind: str
    replicas: int
    min_isr: int
    source: str

    def desired(self) -> Desired:
        """Return the files: the factor is written where the kind needs it, the min ISR where files are the source."""
        written = self.kind in {"lowered", "raised", "unchanged", "new", "grown"}
        lists = tuple(tuple(range(5 - number, 5 - number - self.replicas, -1)) for number in range(2))
        topic = DesiredTopic(
            "t",
            partitions={"new": 2, "grown": 3}.get(self.kind),
            replication_factor=self.replicas if written else None,
            config={MIN_ISR: str(self.min_isr)} if self.source == "files" else {},
            placement=Placement(assignment=lists) if self.kind == "assigned" else Placement(),
            at={"": LINE},
        )
        brokers = {1: DesiredBroker(1, state=BrokerState.DRAINING)} if self.kind == "drained" else {}
        # A topic that drains is touched, and need not be declared.
        is_declared = self.kind != "drained" or self.source == "files"
        return Desired(DesiredCluster("c", brokers=brokers), {"t": topic} if is_declared else {})

    def observed(self) -> Cluster:
        """Return the cluster before; brokers' settings that do not count are far off, so that a mix-up shows."""
        before = {"lowered": self.replicas + 1, "raised": max(1, self.replicas - 1)}.get(self.kind, self.replicas)
        lists = [",".join(str(1 + number + place) for place in range(before)) for number in range(2)]
        lines = [] if self.kind == "new" else [f"t-{number}: {one} size 5" for number, one in enumerate(lists)]
        overrides = {MIN_ISR: str(self.min_isr)} if self.source == "topic" else {}
        observed = small_cluster("u-0: 2,3,4,5,6 size 5", *lines, configs={"t": overrides})
        usual = {"topic": 4, "files": 4, "brokers": self.min_isr, "a broker's override": 1}[self.source]
        brokers = {id_: replace(one, settings={MIN_ISR: str(usual)}) for id_, one in observed.brokers.items()}
        if self.source == "a broker's override":
            brokers[2] = replace(brokers[2], configs={MIN_ISR: str(self.min_isr)})
        return replace(observed, brokers=brokers)

    @property
    def code(self) -> str | None:
        """The warning that there is to be: a min ISR of 1 asks for a leader alone."""
        if self.min_isr == 1 or self.replicas > self.min_isr:
            return None
        return AT if self.replicas == self.min_isr else BELOW


def is_possible(case: Case) -> bool:
    if case.source == "topic":
        return case.kind != "new"
    # A factor that the files write below their own min ISR is refused (KR126).
    is_factor_written = case.kind not in {"only declared", "drained"}
    return not (case.source == "files" and is_factor_written and case.replicas < case.min_isr)


CASES = [case for each in product(KINDS, (1, 2, 3), (1, 2, 3), SOURCES) if is_possible(case := Case(*each))]


def reported(plan: Plan) -> list[Problem]:
    return [problem for problem in plan.warnings if problem.code in {BELOW, AT}]


@pytest.mark.parametrize("kind", KINDS)
@parts("step", 4, deep=1)
def test_every_output_reports_it_and_none_claims_that_the_min_isr_is_kept(step: int, kind: str) -> None:
    for case in [each for each in CASES if each.kind == kind][::step]:
        observed = case.observed()
        plan = plan_of(case.desired(), observed)
        # The oracle: the lists that the plan's own moves and assignments lead to, counted.
        reached = reached_replicas(observed, moves_of(plan.stages), plan.topic_changes)
        assert {len(replicas) for key, replicas in reached.items() if key.topic == "t"} == {case.replicas}, case
        assert [each.code for each in reported(plan)] == ([case.code] if case.code else []), case
        outputs = {
            "text": as_text.plan(plan),
            "json": plan_text(plan),
            "markdown": as_markdown.plan(plan),
            "html": as_plan_html.plan(plan),
        }
        for name, text in outputs.items():
            assert case.code is None or case.code in text, (case, name)
            assert "racks and min ISR kept" not in text.lower() or case.code != BELOW, (case, name)
        if not plan.is_empty:
            sentence = f"Racks and min ISR{' (but for KR881)' if case.code == BELOW else ''} kept at every stage"
            assert sentence in outputs["text"], case


def test_one_warning_names_all_topics_alike_the_line_of_the_first_and_who_sets_the_min_isr() -> None:
    observed = small_cluster(
        *(f"{name}-0: 1,2 size 5" for name in ("a", "b", "c", "d")),
        configs={"b": {MIN_ISR: "3"}, "c": {MIN_ISR: "2"}, "d": {MIN_ISR: "1"}},
    )
    brokers = {id_: replace(one, settings={MIN_ISR: "2"}) for id_, one in observed.brokers.items()}
    at = {"replicationFactor": LINE}
    topics = {name: DesiredTopic(name, replication_factor=2, at=at) for name in ("a", "b", "c", "d", "e")}
    topics["e"] = replace(topics["e"], partitions=1)
    found = reported(plan_of(Desired(DesiredCluster("c"), topics), replace(observed, brokers=brokers)))
    taken = "Kafka then takes the smaller, so "
    end = f"acks=all writes stop once any replica is missing; raise replicationFactor, or lower {MIN_ISR}"
    equal = f"partitions with 2 replicas, as many as {MIN_ISR} 2"
    assert [each.at for each in found] == [LINE] * 3
    assert [(each.code, each.message) for each in found] == [
        (BELOW, f"topic b is to have partitions with 2 replicas, below {MIN_ISR} 3 (set on the topic): {taken}{end}"),
        (AT, f"topic c is to have {equal} (set on the topic): {end}"),
        (AT, f"2 topics (a, e) are to have {equal} (the brokers' setting): {end}"),
    ]


def test_five_thousand_topics_are_one_warning() -> None:
    observed = small_cluster(*(f"t{number:04}-0: 1,2 size 5" for number in range(5000)))
    brokers = {id_: replace(one, settings={MIN_ISR: "2"}) for id_, one in observed.brokers.items()}
    topics = {name: DesiredTopic(name) for name in observed.topics}
    (found,) = reported(plan_of(Desired(DesiredCluster("c"), topics), replace(observed, brokers=brokers)))
    assert found.message.startswith("5000 topics (t0000, t0001, ")
    assert "and 4,990 more) are to have" in found.message


def test_an_override_that_the_plan_takes_away_or_sets_counts_as_it_will_be() -> None:
    observed = small_cluster("gone-0: 1,2 size 5", "set-0: 1,2,3 size 5", configs={"gone": {MIN_ISR: "2"}})
    topics = {"gone": DesiredTopic("gone", config={MIN_ISR: None}), "set": DesiredTopic("set", config={MIN_ISR: "3"})}
    (found,) = reported(plan_of(Desired(DesiredCluster("c"), topics), observed))
    assert (found.code, found.message.partition(":")[0]) == (
        AT,
        f"topic set is to have partitions with 3 replicas, as many as {MIN_ISR} 3 (as declared)",
    )


def test_the_fewest_replicas_of_a_partition_count_and_a_reassignment_in_flight_as_ended() -> None:
    observed = small_cluster("t-0: 1,2,3 size 5", "t-1: 1,2 size 5", configs={"t": {MIN_ISR: "2"}})
    desired = Desired(DesiredCluster("c"), {"t": DesiredTopic("t")})
    assert [each.code for each in reported(plan_of(desired, observed))] == [AT]
    first, second = observed.topics["t"].partitions
    moving = replace(second, replicas=(1, 2, 3), isr=(1, 2, 3), sizes=(5, 5, 5), removing_replicas=(2, 3))
    topic = replace(observed.topics["t"], partitions=(first, moving))
    plan = plan_of(desired, replace(observed, topics={"t": topic}))
    assert [each.code for each in reported(plan)] == [BELOW]


def test_topics_that_are_deleted_or_left_alone_are_not_reported() -> None:
    observed = small_cluster("gone-0: 1 size 5", "other-0: 1 size 5", "t-0: 1,2,3 size 5", "t-1: 2,3,4 size 5")
    brokers = {id_: replace(one, settings={MIN_ISR: "2"}) for id_, one in observed.brokers.items()}
    observed = replace(observed, brokers=brokers)
    topics = {"gone": DesiredTopic("gone", is_absent=True), "t": DesiredTopic("t", replication_factor=3)}
    cluster = DesiredCluster("c", topics=TopicPolicy(is_delete_allowed=True))
    assert reported(plan_of(Desired(cluster, topics), observed)) == []
    every = {**topics, "other": DesiredTopic("other", replication_factor=1)}
    assert [each.code for each in reported(plan_of(Desired(cluster, every), observed))] == [BELOW]
    assert reported(Planner(only=("t*",)).plan(Desired(cluster, every), observed)) == []


def test_a_new_topic_below_its_declared_min_isr_is_refused_where_the_brokers_give_its_factor() -> None:
    observed = small_cluster("u-0: 1")
    brokers = {id_: replace(one, settings={"default.replication.factor": "1"}) for id_, one in observed.brokers.items()}
    at = {f"config.{MIN_ISR}": LINE}
    topic = DesiredTopic("t", partitions=1, config={MIN_ISR: "2"}, at=at)
    desired, observed = Desired(DesiredCluster("c"), {"t": topic}), replace(observed, brokers=brokers)
    with pytest.raises(InvalidInput) as refused:
        compare(desired, observed, topic_rules(desired, observed))
    assert [(each.code, each.at) for each in refused.value.problems] == [("KR126", LINE)]
    allowed = Desired(DesiredCluster("c"), {"t": replace(topic, config={MIN_ISR: "1"})})
    assert len(compare(allowed, observed, topic_rules(allowed, observed)).topic_changes) == 1


def test_a_new_topic_whose_factor_the_brokers_give_is_reported_at_their_min_isr() -> None:
    observed = small_cluster("u-0: 1,2")
    settings = {"default.replication.factor": "2", MIN_ISR: "2"}
    observed = replace(observed, brokers={b: replace(one, settings=settings) for b, one in observed.brokers.items()})
    plan = plan_of(Desired(DesiredCluster("c"), {"t": DesiredTopic("t", partitions=1)}), observed)
    assert [each.code for each in reported(plan)] == [AT]


@pytest.mark.parametrize(("min_isr", "code"), [("1", None), ("2", AT), ("3", BELOW)])
def test_a_rollback_reports_where_it_goes_back_to(min_isr: str, code: str | None) -> None:
    before = small_cluster("t-0: 1,2 size 5")
    brokers = {id_: replace(one, settings={MIN_ISR: min_isr}) for id_, one in before.brokers.items()}
    before = replace(before, brokers=brokers)
    desired = Desired(DesiredCluster("c"), {"t": DesiredTopic("t", replication_factor=4)})
    plan = plan_of(desired, before)
    assert reported(plan) == []
    (partition,) = before.topics["t"].partitions
    end = reached_replicas(before, moves_of(plan.stages), ())
    (replicas,) = end.values()
    reached = replace(partition, replicas=replicas, isr=replicas, leader=replicas[0], sizes=(5,) * len(replicas))
    after = replace(before, topics={"t": replace(before.topics["t"], partitions=(reached,))})
    back = rollback_of(plan, after, desired).plan
    assert [each.code for each in reported(back)] == ([code] if code else [])
    sentence = "Min ISR (but for KR881) kept at every stage" if code == BELOW else "Min ISR kept at every stage"
    assert sentence in as_text.plan(back)
    assert json.loads(plan_text(back))["source"]["rollsBack"] == plan.id
