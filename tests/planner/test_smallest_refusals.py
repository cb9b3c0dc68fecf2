"""Of a refusal no named rule and no part of a remedy can be left out, and each cure or remedy followed is enough."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import count as count_from
from itertools import islice
from random import Random

import pytest
from helpers.clusters.random_clusters import Size, partly_racked, random_cluster
from helpers.depth import parts
from planner.refusal_oracle import cured, followed, is_placeable, refusal_of, steps_of, with_rules_alone
from planner.remedy_oracle import State, is_plannable, partitions_in_fewer_racks

from reconciler.model.desired import BrokerState, DesiredBroker
from reconciler.model.problem import InvalidInput, PlacementInfeasible, Problem
from reconciler.planner.remedies import THOROUGH, States, conflicting, remedies_of_conflict
from reconciler.workflow.plan import plan_of

pytestmark = pytest.mark.long

DRAWN = Size(brokers=6, topics=3, partitions=5, replication_factor=4)
refusals = parts("number", 15, deep=300)


def _drawn(seed: int) -> State:
    """Return a random state; in some a whole rack leaves, more brokers do, or some have no rack."""
    random = Random(f"refused {seed}")
    desired, observed = random_cluster(seed, DRAWN)
    leaving: set[int] = set()
    if random.random() < 0.4:
        rack = random.choice(sorted({broker.rack or "" for broker in observed.brokers.values()}))
        leaving = {broker.id for broker in observed.brokers.values() if broker.rack == rack}
    elif random.random() < 0.4:
        leaving = {*random.sample(sorted(observed.brokers), 2)}
    state = random.choice([BrokerState.DRAINING, BrokerState.DRAINING, BrokerState.CORDONED])
    brokers = {**desired.cluster.brokers, **{b: DesiredBroker(b, state) for b in leaving}}
    desired = replace(desired, cluster=replace(desired.cluster, brokers=dict(sorted(brokers.items()))))
    if random.random() < 0.3:
        observed = partly_racked(observed, seed)
    return desired, observed


@cache
def _refused(number: int) -> Sequence[tuple[int, State, tuple[Problem, ...]]]:
    """Return so many states that are refused for rules in conflict, with why."""
    return [*islice(_all_refused(), number)]


def _all_refused() -> Iterator[tuple[int, State, tuple[Problem, ...]]]:
    for seed in count_from():
        state = _drawn(seed)
        try:
            plan_of(*state)
        except PlacementInfeasible as refusal:
            yield seed, state, refusal.problems
        except InvalidInput:
            continue


@refusals
def test_no_named_rule_can_be_left_out(number: int) -> None:
    tried = 0
    for seed, state, problems in _refused(number):
        for problem in problems:
            if problem.code != "KR301":
                continue
            refusal = refusal_of(problem)
            assert not is_placeable(with_rules_alone(state, refusal, refusal.named), refusal), (seed, problem.message)
            for rule in refusal.named:
                without = with_rules_alone(state, refusal, refusal.named - {rule})
                assert is_placeable(without, refusal) or not _may_be_left_out(state, refusal.topic, rule), (
                    seed,
                    rule,
                    problem.message,
                )
                tried += 1
    assert tried > number


def _may_be_left_out(state: State, topic: str, rule: tuple[object, ...]) -> bool:
    """Whether that rule is somebody's: the number of replicas of a topic that no file declares is a fact."""
    return rule != ("factor",) or topic in state[0].topics


@refusals
def test_each_cure_is_enough_by_itself(number: int) -> None:
    tried = 0
    for seed, state, problems in _refused(number):
        for problem in problems:
            refusal = refusal_of(problem) if problem.code == "KR301" else None
            if refusal is None or refusal.is_assigned:
                continue
            for cure in set(refusal.cures) - {"No single change is enough"}:
                for changed in cured(state, refusal, cure):
                    assert is_placeable(changed, refusal), (seed, cure, problem.message)
                    tried += 1
    assert tried > number


@refusals
def test_no_part_of_a_remedy_can_be_left_out_and_racks_are_kept_if_it_is_followed(number: int) -> None:
    tried = several = 0
    for seed, state, _ in _refused(number):
        topics = conflicting(States(*state), None)
        for remedy in remedies_of_conflict(States(*state), None, plan_of, THOROUGH):
            words = [edit.words for edit in remedy.edits]
            steps = [step for text in words for step in steps_of(text)]
            assert _is_enough(state, followed(state, steps), topics), (seed, words)
            tried, several = tried + 1, several + (len(steps) > 1)
            for place in range(len(steps)):
                others = [*steps[:place], *steps[place + 1 :]]
                assert not _is_enough(state, followed(state, others), topics), (seed, words, place)
    assert tried > number
    assert several > number / 5


def _is_enough(state: State, changed: State, topics: frozenset[str]) -> bool:
    return is_plannable(changed) and not partitions_in_fewer_racks(state, changed, topics)
