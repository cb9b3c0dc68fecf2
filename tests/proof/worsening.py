"""Makes plans worse on purpose, and tells the truth about their values: what the proof must see by its bounds alone."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from helpers.plans.oracle import balance_of, leader_options, legal_sets, problem_of, reached_replicas, squares

from reconciler.model.budget import Budget, Budgeted
from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Even
from reconciler.model.move import Move, Reason
from reconciler.model.plan import BrokerShare, Plan, PriceLevel
from reconciler.model.stage import ReassignStage, moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.arithmetic import NotProved
from reconciler.proof.bounds import leader_measures, replica_measures
from reconciler.proof.demands import demands_of
from reconciler.proof.reached import reached

Placement = dict[TopicPartition, tuple[int, ...]]
Worth = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Worsener:
    """The states of a plan, and what the oracle knows of them."""

    desired: Desired
    observed: Cluster
    random: Random

    def worse(self, plan: Plan) -> Iterator[tuple[str, Plan]]:
        """Yield plans that are worse than this one by the oracle's count, each with the way it was made worse."""
        end = reached_replicas(self.observed, moves_of(plan.stages), plan.topic_changes)
        ways: Mapping[str, Callable[[Placement], Placement | None]] = {
            "heaped": self._heaped,
            "needless copy": self._with_needless_copy,
            "swapped destination": self._with_swapped_destination,
            "worse leader order": self._with_other_leader,
        }
        for name, way in ways.items():
            for _ in range(4):
                other = way(dict(end))
                if other is not None and self._is_worse(other, end):
                    yield name, self._plan_to(plan, other)
                    break

    def is_as_good(self, plan: Plan, other: Plan) -> bool:
        """Whether a plan keeps the rules in the end and is no worse than another one."""
        ends = [reached_replicas(self.observed, moves_of(each.stages), each.topic_changes) for each in (plan, other)]
        problem = problem_of(self.desired, self.observed)
        is_legal = all(
            tuple(sorted(ends[0].get(d.topic_partition, ()))) in legal_sets(d, problem.rack_of) for d in problem.demands
        )
        return is_legal and not self._is_worse(*ends)

    def _is_worse(self, end: Placement, than: Placement) -> bool:
        """Whether the replicas are worse or, if they are the same, the leaders, which are best for their replicas."""
        (replicas, leaders), (other_replicas, other_leaders) = self._worth(end), self._worth(than)
        is_same = all(set(end[key]) == set(ids) for key, ids in than.items())
        return leaders > other_leaders if is_same else replicas > other_replicas

    def _worth(self, end: Placement) -> tuple[Worth, Worth]:
        """Return what a placement is worth in the order of the contract, replicas first; less is better."""
        problem, balance = problem_of(self.desired, self.observed), self.desired.cluster.balance
        capacity = problem.capacity
        led_by = {b: self.desired.cluster.broker(b).weight("leaders") for b in capacity}
        counts, led = Counter(b for ids in end.values() for b in ids), Counter(ids[0] for ids in end.values())
        copies = sum(demand.copied(end[demand.topic_partition]) for demand in problem.demands)
        size = sum(demand.bytes_copied(end[demand.topic_partition]) for demand in problem.demands)
        chosen = {d.topic_partition.topic for d in problem.demands if d.settled is None or d.settled != d.current}
        by_topic = [[ids for key, ids in end.items() if key.topic == name] for name in sorted(chosen)]
        is_even = isinstance(balance.topics, Even)
        topics = sum(squares(capacity, Counter(b for ids in each for b in ids)) for each in by_topic) * is_even
        topics_led = sum(squares(led_by, Counter(ids[0] for ids in each)) for each in by_topic) * is_even
        changed = sum(bool(d.current) and end[d.topic_partition][0] != d.current[0] for d in problem.demands)
        first, second = (size, copies) if problem.is_size_known else (copies, size)
        evenness = squares(capacity, counts)
        of_replicas = (balance_of(balance.replicas, capacity, counts), topics, first, second, evenness)
        return of_replicas, (balance_of(balance.leaders, led_by, led), topics_led, changed)

    def _free(self, end: Placement) -> list[tuple[TopicPartition, list[tuple[int, ...]]]]:
        """Return the partitions with a choice, and their legal sets."""
        problem = problem_of(self.desired, self.observed)
        sets = {d.topic_partition: legal_sets(d, problem.rack_of) for d in problem.demands}
        found = [(key, choices) for key, choices in sets.items() if len(choices) > 1 and key in end]
        self.random.shuffle(found)
        return found

    def _heaped(self, end: Placement) -> Placement | None:
        """Heap what is new on as few brokers as the rules allow."""
        present = {key: partition.target_replicas for key, partition in self.observed.partitions()}
        few = Counter[int]()
        for key, choices in self._free(end):
            if set(end[key]) == set(present.get(key, ())):
                continue
            heaped = max(choices, key=lambda ids: (len(set(ids) & set(present.get(key, ()))), sum(few[b] for b in ids)))
            end[key] = self._ordered(key, heaped, end[key])
            few.update(heaped)
        return end

    def _with_needless_copy(self, end: Placement) -> Placement | None:
        for key, choices in self._free(end):
            others = [ids for ids in choices if set(ids) != set(end[key])]
            end[key] = self._ordered(key, self.random.choice(others), end[key])
            return end
        return None

    def _with_swapped_destination(self, end: Placement) -> Placement | None:
        """Let two partitions trade a replica each."""
        for (one, some), (other, more) in combinations(self._free(end), 2):
            for left in set(end[one]) - set(end[other]):
                for right in set(end[other]) - set(end[one]):
                    sets = [
                        tuple(sorted(set(end[one]) - {left} | {right})),
                        tuple(sorted(set(end[other]) - {right} | {left})),
                    ]
                    if sets[0] in some and sets[1] in more:
                        end[one] = self._ordered(one, sets[0], end[one])
                        end[other] = self._ordered(other, sets[1], end[other])
                        return end
        return None

    def _with_other_leader(self, end: Placement) -> Placement | None:
        problem = problem_of(self.desired, self.observed)
        demands = [each for each in problem.demands if len(leader_options(each, end[each.topic_partition])) > 1]
        if not demands:
            return None
        demand = self.random.choice(demands)
        ids = end[demand.topic_partition]
        leader = self.random.choice([b for b in leader_options(demand, ids) if b != ids[0]])
        end[demand.topic_partition] = (leader, *(b for b in ids if b != leader))
        return end

    def _ordered(self, key: TopicPartition, ids: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
        demand = next(d for d in problem_of(self.desired, self.observed).demands if d.topic_partition == key)
        options = leader_options(demand, ids)
        leader = before[0] if before[0] in options else options[0]
        return (leader, *sorted(set(ids) - {leader}))

    def _plan_to(self, plan: Plan, end: Placement) -> Plan:
        """Return the plan that ends there, in one stage."""
        moves = []
        for key, partition in self.observed.partitions():
            now = partition.target_replicas
            if key in end and end[key] != now:
                size, new = partition.bytes_to_copy, len(set(end[key]) - set(now))
                moves.append(
                    Move(key, now, end[key], new * (size or 0), Reason.BALANCE, is_size_known=size is not None)
                )
        changes = tuple(
            replace(change, assignment={n: end[TopicPartition(change.topic, n)] for n in change.assignment})
            if isinstance(change, CreateTopic | CreatePartitions)
            else change
            for change in plan.topic_changes
        )
        stages = (ReassignStage(1, tuple(moves)),) if moves else ()
        counts, led = Counter(b for ids in end.values() for b in ids), Counter(ids[0] for ids in end.values())
        after = {b: BrokerShare(counts[b], led[b]) for b in sorted({*plan.balance_after, *counts})}
        return replace(plan, stages=stages, topic_changes=changes, balance_after=after)


def claims(plan: Plan, desired: Desired, observed: Cluster) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with all values made true, and whatever might talk a checker out of its work beside them."""
    demands = demands_of(desired, observed)
    balance = desired.cluster.balance
    try:
        end = reached(plan, demands)
        measures = {**replica_measures(demands, balance, end)[1], **leader_measures(demands, balance, end)[1]}
    except NotProved:  # a rule is broken: no values are asked for
        yield "alone", plan
        return
    values = {name: measure.value for name, measure in measures.items()}
    levels = [
        replace(level, value=values[level.objective], lower_bound=values[level.objective])
        for level in plan.proof.levels
        if level.objective in values
    ]
    copied = values["bytes"]

    def told(levels: list[PriceLevel], *, bound: int | None = None) -> Plan:
        first = values[plan.proof.objective]
        proof = replace(plan.proof, value=first, lower_bound=first if bound is None else bound, levels=tuple(levels))
        return replace(plan, proof=proof)

    def within(budget: int, levels: list[PriceLevel]) -> Plan:
        budgeted = Budgeted(budget, 0, budget + 1)
        named = told(levels)
        return replace(named, source=replace(named.source, budget=Budget(budget)), budgeted=budgeted)

    yield "alone", told(levels)
    for weight in (1, 1 << 40):
        weighed = [replace(each, weight=weight, byte_weight=1, lower_bound=0) for each in levels]
        yield f"weights of {weight}", told(weighed)
        of_balance = [new if "balance" in new.objective else old for new, old in zip(weighed, levels, strict=True)]
        for budget in (copied, copied + 1, copied * 2 + 100):
            yield f"a budget of {budget} and weights of {weight}", within(budget, of_balance)
    yield "bounds lowered", told([replace(each, lower_bound=0) for each in levels], bound=0)
    yield "bounds lifted", told([replace(each, lower_bound=each.lower_bound + 1) for each in levels])
    for place in range(len(levels)):
        yield f"without {levels[place].objective}", told(levels[:place] + levels[place + 1 :])
        yield f"from {levels[place].objective} on", told(levels[place:])
        yield f"up to {levels[place].objective}", told(levels[: place + 1])
        yield f"a budget of {copied} from {levels[place].objective} on", within(copied, levels[place:])
    first = [each for each in levels if each.objective == plan.proof.objective]
    yield "as if for loads", told([replace(each, load_prices={"disk": {}}, shift=1) for each in first])
    yield "as if for loads, without a bound", told([replace(each, prices={}, lower_bound=0) for each in first], bound=0)
    yield "nothing", told([])
