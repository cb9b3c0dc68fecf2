"""Folds a plan into the lines a reviewer reads: one a change, with its reason, place, replicas and bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.model.change import (
    AlterConfigs,
    BrokenRule,
    Changes,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Difference,
    TopicChange,
    class_of,
)
from reconciler.model.effect import EffectClass
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Location
from reconciler.model.stage import LogDirsStage
from reconciler.model.words import counted, labelled, size
from reconciler.render.effects import takes, takes_of_key
from reconciler.render.escape import config_value, visible
from reconciler.render.labels import DESTROYS, IRREVERSIBLE, LEADERS_ONLY, MOVES_DATA

if TYPE_CHECKING:
    from reconciler.model.move_groups import MoveGroup
    from reconciler.model.move_table import Why

_GRAVITY = {DESTROYS: 0, IRREVERSIBLE: 1}
_LEAVING = frozenset({Reason.DRAINING, Reason.DEAD_BROKER})
_CLUSTER_WIDE = frozenset({*_LEAVING, Reason.BALANCE, Reason.LEADERS})
_MOST_PAIRS = 20
"""Pairs of log dirs that are told one by one."""
_ORDER = {reason: rank for rank, reason in enumerate((Reason.DEAD_BROKER, *Reason))}


@dataclass(frozen=True, slots=True)
class Row:
    """One change. `subject`: a topic, or empty for the whole cluster; `effect`: what it takes; `kind`: its nature.

    `bytes` is what is copied, at least where `is_size_known` is false.
    """

    sign: str
    subject: str
    what: str
    effect: str
    kind: str
    bytes: int = 0
    at: Location | None = None
    is_size_known: bool = True


def plan_rows(plan: Plan, *, arrow: str = "->") -> tuple[Row, ...]:
    """Return the plan's changes: topics first, then moves by reason, topic and place, then elections."""
    from reconciler.model.move_groups import grouped  # loads numpy, which differences have no use for

    groups = grouped(plan.every_move(), _group)
    rows = [topic_row(change, arrow=arrow) for change in plan.topic_changes]
    emptied = _emptied(plan)
    is_rollback = plan.source.rolls_back is not None
    rows += [_move_row(group, emptied, arrow, is_rollback=is_rollback) for group in groups.values()]
    rows += _dir_rows(plan)
    elections = plan.summary.elections
    if elections:
        what = counted(elections, "preferred-leader election")
        rows.append(Row("~", "", what, "no data", LEADERS_ONLY))
    return tuple(rows)


def topic_row(change: TopicChange, *, arrow: str = "->") -> Row:
    """Return the line of one change to a topic itself."""
    match change:
        case CreateTopic():
            what = (
                f"create with {counted(change.partitions, 'partition')}, replicationFactor {change.replication_factor}"
            )
            if change.configs:
                what += f"; {_settings(change.configs.items())}"
            return Row("+", change.topic, what, takes(change), "new topic", at=change.at)
        case CreatePartitions():
            what = f"partitions {change.from_count} {arrow} {change.to_count}; keys map elsewhere"
            return Row("+", change.topic, what, takes(change), IRREVERSIBLE, at=change.at)
        case AlterConfigs():
            kind = _kind_of(class_of(change), "config")
            return Row("~", change.topic, _config_changes(change, arrow), takes(change), kind, at=change.at)
        case DeleteTopic():
            return Row("-", change.topic, "delete with all its data", takes(change), DESTROYS, at=change.at)


def gravest_first(rows: Iterable[Row]) -> list[Row]:
    """Return what destroys before what cannot be undone, and both before the rest, each in its order."""
    return sorted(rows, key=lambda each: _GRAVITY.get(each.kind, len(_GRAVITY)))


def _kind_of(found: EffectClass, harmless: str) -> str:
    return harmless if found is EffectClass.HARMLESS else found.value


def differences_counted(found: Changes, fields: Sequence[Difference]) -> str:
    """Return how many differences there are, those included that no plan puts right."""
    count = len(difference_rows(found, fields)) + len(found.stays)
    return counted(count, "difference") if count else "no differences"


def difference_rows(found: Changes, fields: Sequence[Difference], *, arrow: str = "->") -> tuple[Row, ...]:
    """Return what differs: topics as a whole, their fields one by one, broken rules, leaders to elect."""
    whole = [change for change in found.topic_changes if isinstance(change, CreateTopic | DeleteTopic)]
    told = {change.topic for change in whole}
    rows = [topic_row(change, arrow=arrow) for change in whole]
    costs = dict(_field_costs(found.topic_changes))
    rows += [_field_row(each, arrow, costs) for each in fields if each.topic not in told]
    rows += _broken_rows(found.every_broken_rule, arrow)
    rows += [
        Row("~", f"broker {each.broker}", f"log dir {each.log_dir}: {each.detail}", "", "log dirs", at=each.at)
        for each in found.log_dirs
    ]
    rows += [
        Row("~", str(each.topic_partition), f"leader {arrow} {each.leader}, the preferred one", "", LEADERS_ONLY)
        for each in found.elections
    ]
    return tuple(rows)


def _field_costs(changes: Iterable[TopicChange]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield each topic's fields that are not harmless, with what the change takes and its kind."""
    for change in changes:
        if isinstance(change, CreatePartitions):
            yield (change.topic, "partitions"), (takes(change), IRREVERSIBLE)
        for effect in sorted(change.effects, key=lambda each: -each.kind.rank):
            if effect.key is not None:
                kind = _kind_of(effect.kind, "topic")
                yield (change.topic, f"config.{effect.key}"), (takes_of_key(change, effect.key), kind)


def _broken_rows(broken: Iterable[BrokenRule], arrow: str) -> Iterator[Row]:
    """Yield one row for all partitions of a topic that break a rule in the same way."""
    alike: dict[tuple[str, Reason, str, Location | None], list[BrokenRule]] = {}
    for one in broken:
        alike.setdefault((one.topic_partition.topic, one.reason, one.detail, one.at), []).append(one)
    for (topic, reason, detail, at), group in alike.items():
        subject = str(group[0].topic_partition) if len(group) == 1 else topic
        words = (detail if detail.startswith(reason) else f"{reason}: {detail}").replace(" -> ", f" {arrow} ")
        yield Row(
            "~", subject, words + (f" ({len(group)} partitions)" if len(group) > 1 else ""), "", "placement", at=at
        )


def _field_row(difference: Difference, arrow: str, costs: Mapping[tuple[str, str], tuple[str, str]]) -> Row:
    topic, field = difference.topic, difference.field
    old, new = (config_value(field, value) for value in (difference.old, difference.new))
    sign = "+" if difference.old is None else "-" if difference.new is None else "~"
    effect, kind = costs.get((topic, field), ("", "topic"))
    return Row(sign, topic, f"{visible(field)} {old} {arrow} {new}", effect, kind, at=difference.at)


def _group(why: "Why", topic: str) -> tuple[int, str, Location]:
    """Return what moves are told together by; that a broker died is no line's doing."""
    subject = "" if why.reason in _CLUSTER_WIDE else topic
    at = None if why.reason is Reason.DEAD_BROKER else why.at
    return _ORDER[why.reason], subject, at or Location("", 0)


def _move_row(group: "MoveGroup", emptied: frozenset[int], arrow: str, *, is_rollback: bool) -> Row:
    reason, at = group.why
    subject = "" if reason in _CLUSTER_WIDE else group.topic
    what = _why(reason, group, emptied, arrow)
    if is_rollback:
        what = f"back: {counted(group.partitions, 'partition')} to where the plan found them"
    place = None if reason is Reason.DEAD_BROKER else at
    return Row("~", subject, what, _effect(group), _kind(group), group.bytes, place, group.is_size_known)


def _dir_rows(plan: Plan) -> Iterator[Row]:
    """Yield a row for each pair of log dirs with moves between them; one for all where there are very many pairs."""
    by_place: dict[tuple[str, Location], list[DirMove]] = {}
    for move in (move for stage in plan.stages if isinstance(stage, LogDirsStage) for move in stage.moves):
        by_place.setdefault((move.reason, move.at or Location("", 0)), []).append(move)
    for key in sorted(by_place):
        pairs: dict[tuple[int, str, str], list[DirMove]] = {}
        for move in by_place[key]:
            pairs.setdefault((move.broker, move.from_dir, move.to_dir), []).append(move)
        if len(pairs) <= _MOST_PAIRS:
            for (broker, start, end), moves in sorted(pairs.items()):
                what = f"log dirs: {counted(len(moves), 'replica')} from {start} to {end}"
                yield _dir_row(f"broker {broker}", what, moves)
        else:
            count = counted(len({broker for broker, _, _ in pairs}), "broker")
            what = f"log dirs: {counted(len(by_place[key]), 'replica')} between the log dirs of {count}"
            yield _dir_row("", what, by_place[key])


def _dir_row(subject: str, what: str, moves: Sequence[DirMove]) -> Row:
    is_known = all(move.is_size_known for move in moves)
    copied = sum(move.bytes for move in moves)
    data = size(copied) if is_known else f"at least {size(copied)}, some sizes unknown"
    where = "inside the broker" if subject else "inside the brokers"
    return Row("~", subject, what, f"{data}, {where}", MOVES_DATA, copied, moves[0].at, is_known)


def _why(reason: Reason, group: "MoveGroup", emptied: frozenset[int], arrow: str) -> str:
    partitions = counted(group.partitions, "partition")
    brokers = _left_brokers(group, emptied) if reason in _LEAVING else ""
    leaving = f"{partitions} {'leaves' if group.partitions == 1 else 'leave'} {brokers}"
    of_topics = f"{partitions} of {counted(group.topics, 'topic')}"
    before, after = ("/".join(map(str, sorted({*lengths}))) for lengths in zip(*group.factors, strict=True))
    phrases = {
        Reason.ASSIGNMENT: f"assignment: {partitions} not as written",
        Reason.DRAINING: f"draining: {leaving}",
        Reason.REPLICATION_FACTOR: f"replicationFactor {before} {arrow} {after} ({partitions})",
        Reason.RACKS: f"racks: {partitions} spread against the rule",
        Reason.ELIGIBILITY: f"brokers: {partitions} where the rules allow none",
        Reason.DEAD_BROKER: f"dead broker: {leaving}",
        Reason.BALANCE: f"balance: {of_topics}",
        Reason.LEADERS: f"preferred leaders: {of_topics}",
        Reason.NEW_PARTITION: f"new: {partitions}",
        Reason.LOG_DIRS: f"log dirs: {partitions}",
    }
    factors = "" if reason is Reason.REPLICATION_FACTOR else _factors(group, arrow)
    return f"{phrases[reason]}{factors}"


def _factors(group: "MoveGroup", arrow: str) -> str:
    """Return which replication factors change on the way, though it is not what the moves are told by."""
    told = [
        f"replicationFactor {old} {arrow} {new} ({counted(count, 'partition')})"
        for (old, new), count in sorted(group.factors.items())
        if old != new
    ]
    return "".join(f"; {each}" for each in told)


def _effect(group: "MoveGroup") -> str:
    copies, growth = group.copies, group.growth
    if not copies:
        return f"{counted(-growth, 'replica')} to drop, no data" if growth < 0 else "order only, no data"
    verb = {copies: "add", 0: "move"}.get(growth, "copy")
    data = size(group.bytes)
    if not group.is_size_known:
        data = f"at least {data}, some sizes unknown"
    return f"{counted(copies, 'replica')} to {verb}, {data}"


def _kind(group: "MoveGroup") -> str:
    if group.copies:
        return MOVES_DATA
    return LEADERS_ONLY if all(old == new for old, new in group.factors) else "drops replicas"


def _emptied(plan: Plan) -> frozenset[int]:
    """Return the brokers that hold replicas now and none once the plan has run."""
    after = plan.balance_after
    held = (broker_id for broker_id, share in plan.balance_before.items() if share.replicas)
    return frozenset(broker_id for broker_id in held if broker_id in after and not after[broker_id].replicas)


def _left_brokers(group: "MoveGroup", emptied: frozenset[int]) -> str:
    """Return the brokers that these moves leave: those that end empty, else those that every move leaves."""
    by_any, by_all = group.left
    ids = sorted((emptied & by_any) or by_all)
    return labelled("broker", ids) if ids else "their brokers"


def _settings(items: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{visible(key)} {config_value(key, value)}" for key, value in sorted(items))


def _config_changes(change: AlterConfigs, arrow: str) -> str:
    after: dict[str, str | None] = {**change.set, **dict.fromkeys(change.delete)}
    return ", ".join(
        f"{visible(key)} {config_value(key, change.before.get(key))} {arrow} {config_value(key, after[key])}"
        for key in sorted(after)
    )
