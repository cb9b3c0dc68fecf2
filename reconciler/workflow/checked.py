"""Checks a plan on the simulated controller before anybody sees it: each stage must run, and every state be safe.

What the controller makes of a partition follows from which of its lists name the same broker, who lives, and what its
topic asks for; so of partitions that are alike in all that, one is tried. A plan has very many, of few kinds.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from reconciler.diff.rules import NO_RACK, TopicRules, topic_rules
from reconciler.model.change import AlterConfigs, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.columns import NONE, Ints, alike, narrowed, place_among_equals, places_in, starts_of_runs
from reconciler.model.desired import Desired, Spread
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr, needed_in_sync
from reconciler.model.move_table import Moves
from reconciler.model.partition_table import PartitionTable
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, ReconcilerError
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage, TopicsStage, elections_of
from reconciler.model.table_maker import table_of
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.topic_partition import TopicPartition, named
from reconciler.simulate.configs import value_problem
from reconciler.simulate.reach import Ran, run_stage
from reconciler.simulate.storage import with_put

_MOVED, _LED, _NEXT_STAGE = -2, -3, -2  # marks before brokers' ids; the last is added to one of the others


class UnsafePlan(ReconcilerError):
    """A plan of ours has a stage that Kafka would refuse, or that is not safe: our fault, told before it is saved."""

    code = "KR399"


def refuse_unsafe(plan: Plan, observed: Cluster, rules: Mapping[str, TopicRules]) -> None:
    """Raise UnsafePlan unless each stage in turn can run and breaks no rack rule and no min ISR that held before it."""
    before, changes = _as_we_know_it(observed), tuple(map(_change_as_we_know_it, plan.topic_changes))
    tried = _one_of_each_kind(plan, observed, rules)
    for stage in plan.stages:
        ran = run_stage(before, _stage_of(stage, tried), changes)
        found = [*ran.problems, *_broken(ran, before, rules)]
        if found:
            raise UnsafePlan(_told(stage, found))
        before = ran.cluster


def refuse_unsafe_return(plan: Plan, observed: Cluster, desired: Desired) -> None:
    """Refuse the same of a rollback but for rack rules: it goes back to what was there."""
    rules = {name: replace(rule, spread=None) for name, rule in topic_rules(desired, observed).items()}
    refuse_unsafe(plan, observed, rules)


def _stage_of(stage: Stage, tried: Collection[TopicPartition]) -> Stage:
    """Return the stage with these partitions alone."""
    if isinstance(stage, TopicsStage | LogDirsStage):
        return stage
    elections = tuple(each for each in stage.elections if each.topic_partition in tried)
    if not isinstance(stage, ReassignStage):
        return replace(stage, elections=elections)
    moves = Moves.of(stage.moves)
    return replace(stage, moves=moves.part(moves.rows_of(tried)), elections=elections)


def _one_of_each_kind(plan: Plan, observed: Cluster, rules: Mapping[str, TopicRules]) -> Collection[TopicPartition]:
    """Return the first partition of each kind, and all in flight, unknown, or of a topic that the plan changes."""
    table, events = table_of(observed), events_of(plan)
    rows = table.rows_at(events.topics, events.topic, events.number)
    changed = {change.topic for change in plan.topic_changes}
    is_changed = np.array([name in changed for name in table.topics], dtype=np.bool_)
    is_rare = (rows < 0) | np.isin(rows, [row for row, each in table.rare.items() if any(each)])
    is_rare[rows >= 0] |= is_changed[table.topic[rows[rows >= 0]]]
    alone, others = np.flatnonzero(is_rare), np.flatnonzero(~is_rare)
    if len(others):
        first, _ = alike(_columns(table, rows[others], events.told[others], observed, rules))
        alone = np.append(alone, others[first])
    return frozenset(named(events.topics, events.topic[alone].tolist(), events.number[alone].tolist()))


def _columns(
    table: PartitionTable, rows: Ints, steps: Ints, observed: Cluster, rules: Mapping[str, TopicRules]
) -> list[Ints]:
    """Return what tells the kinds of these rows apart, a number a row in each column."""
    strict = {
        name: (rules[name].racks, rules[name].rack_replicas or ())
        for name in table.topics
        if rules[name].spread is Spread.STRICT
    }
    numbers = {ruled: number for number, ruled in enumerate(sorted({*strict.values()}))}
    spread = np.array([numbers[strict[name]] if name in strict else NONE for name in table.topics])[table.topic[rows]]
    asked = [observed.topics[name].configs.get(MIN_ISR, "") for name in table.topics]
    min_isr = np.unique(asked, return_inverse=True)[1][table.topic[rows]]
    # A broker is the place where it is named first, a rack likewise: two kinds differ in who is the same as whom.
    columns = (table.replicas[rows], table.isr[rows], table.leader[rows, None], steps)
    brokers = np.hstack([*map(narrowed, columns)])
    known = [observed.brokers[each] for each in sorted(observed.brokers)]
    place = places_in(np.array([each.id for each in known], dtype=np.int64), brokers)
    # What stands last is of brokers that are not known: their place is NONE, which is -1.
    is_fenced = np.array([*(each.is_fenced for each in known), NONE])
    rack_of = [*(each.rack or NO_RACK for each in known), NO_RACK]
    names, rack = np.unique(rack_of, return_inverse=True)
    is_meant = np.array([np.isin(names, racks) for racks, _ in (*numbers, ((), ()))])
    is_named = np.array([bool(by_rack) for _, by_rack in (*numbers, ((), ()))])
    racks = narrowed(rack)[place]
    racks[(brokers < 0) | (spread < 0)[:, None]] = NONE
    is_ruled = is_meant[spread[:, None], racks] & (racks >= 0)
    # Where each rack has its number of replicas, it matters which one it is.
    ruled = np.where(is_named[spread][:, None], racks, _first_places(racks))
    return [spread, min_isr, *_first_places(brokers).T, *is_fenced[place].T, *ruled.T, *is_ruled.T]


def _first_places(numbers: Ints) -> Ints:
    """Return, in each row, the place where a number stands first; what is below 0 stays."""
    # A column lies in one piece: rows are short, and numpy is slow with short pieces.
    columns = np.ascontiguousarray(numbers.T)
    places, is_one = columns.copy(), columns >= 0
    for place in reversed(range(len(columns))):
        np.copyto(places, place, where=(columns == columns[place]) & is_one)
    return places.T


@dataclass(frozen=True, slots=True)
class Events:
    """What happens to each partition that the plan touches, a row each.

    `topic`: positions in `topics`. `told`: event after event, in blocks as wide as the widest: a mark, and brokers.
    """

    topics: tuple[str, ...]
    topic: Ints
    number: Ints
    told: Ints


def events_of(plan: Plan) -> Events:
    """Return what happens to the partitions of a plan, in columns."""
    moves = plan.every_move()
    elected = [(stage.number, each) for stage in plan.stages for each in elections_of(stage)]
    position = {name: place for place, name in enumerate(moves.topics)}
    led = [(position.setdefault(each.topic_partition.topic, len(position)), each) for _, each in elected]
    topic = np.append(moves.topic, np.array([place for place, _ in led], dtype=np.int64))
    number = np.append(moves.number, np.array([each.topic_partition.partition for _, each in led], dtype=np.int64))
    reassigned = [stage for stage in plan.stages if isinstance(stage, ReassignStage)]
    stage = np.repeat([each.number for each in reassigned], [len(each.moves) for each in reassigned])
    stage = np.append(stage, np.array([number for number, _ in elected], dtype=np.int64)).astype(np.int64)
    told = np.full((len(topic), 1 + moves.before.shape[1] + moves.after.shape[1]), NONE, dtype=np.int64)
    told[: len(moves)] = np.hstack([np.full((len(moves), 1), _MOVED), moves.before, moves.after])
    told[len(moves) :, 0] = _LED
    told[len(moves) :, 1] = [each.leader for _, each in led]
    # A stage's moves come before its elections, and so they stand.
    order = np.lexsort((stage, topic * (1 + int(number.max(initial=0))) + number))
    topic, number, stage, told = topic[order], number[order], stage[order], told[order]
    is_first = starts_of_runs(topic, number)
    told[1:, 0] += np.where(~is_first[1:] & (np.diff(stage) != 0), _NEXT_STAGE, 0)
    row = np.cumsum(is_first) - 1
    turn = place_among_equals(row)
    blocks = np.full((int(is_first.sum()), 1 + int(turn.max(initial=0)), told.shape[1]), NONE, dtype=np.int64)
    blocks[row, turn] = told
    return Events(
        (*position,), topic[is_first], number[is_first], blocks.reshape(len(blocks), blocks.shape[1] * blocks.shape[2])
    )


def _as_we_know_it(observed: Cluster) -> Cluster:
    """Return the cluster as a plan takes it: what is in flight has arrived.

    Of overrides only min.insync.replicas stays: what the cluster takes of the others it judges itself.
    """
    table = table_of(observed)
    topics = {name: replace(topic, configs=_min_isr(topic.configs)) for name, topic in observed.topics.items()}
    moving = {key: observed.partition(key) for key in map(table.key, table.reassigning)}
    arrived = {key: _arrived(partition, observed) for key, partition in moving.items() if partition is not None}
    return with_put(replace(observed, topics=topics), arrived)


def _arrived(partition: Partition, observed: Cluster) -> Partition:
    """Return the partition at its target, with all replicas in sync that live; a run waits for that."""
    target = partition.target_replicas
    isr = tuple(replica for replica in target if observed.is_alive(replica))
    return replace(
        partition.on_replicas(target),
        leader=partition.leader if partition.leader in isr else next(iter(isr), None),
        isr=isr,
        adding_replicas=(),
        removing_replicas=(),
    )


def _min_isr(configs: Mapping[str, str]) -> Mapping[str, str]:
    value = configs.get(MIN_ISR, "")
    return {} if value_problem(MIN_ISR, value, TOPIC_CONFIGS[MIN_ISR].newest) else {MIN_ISR: value}


def _change_as_we_know_it(change: TopicChange) -> TopicChange:
    match change:
        case CreateTopic():
            return replace(change, configs=_min_isr(change.configs))
        case AlterConfigs():
            return replace(change, set=_min_isr(change.set))
        case _:
            return change


def _broken(ran: Ran, before: Cluster, rules: Mapping[str, TopicRules]) -> Iterator[Problem]:
    default = brokers_min_isr(before)
    for key, was in ran.was.items():
        now = ran.now.get(key)
        if was is None or now is None or was == now:
            continue
        rule = rules[key.topic]
        is_strict = rule.spread is Spread.STRICT
        if is_strict and not rule.rack_excess(was.target_replicas) and rule.rack_excess(now.replicas):
            yield Problem("KR391", f"{key} would break its rack rule on brokers {list(now.replicas)}")
        least = min(needed_in_sync(before.topics[key.topic], was, default), len(was.isr), len(now.replicas))
        if len(now.isr) < least:
            yield Problem("KR392", f"{key} would have {len(now.isr)} replicas in sync, fewer than {least}")


def _told(stage: Stage, found: list[Problem]) -> str:
    told = "; ".join(problem.message for problem in found[:3])
    return f"internal error, please report it: stage {stage.number} of the plan made is not safe: {told}"
