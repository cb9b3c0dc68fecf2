"""Folds a plan into the lines a reviewer reads: one a change, with its reason, place, replicas and bytes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from reconciler.model.words import MANY, counted, few, labelled, size
from reconciler.render.effects import takes, takes_in_all
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
_NOWHERE = Location("", 0)
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
    change: TopicChange | None = None
    """What it is a row of, with no more effects than the row reports."""


def plan_rows(plan: Plan, *, arrow: str = "->", is_whole: bool = False) -> tuple[Row, ...]:
    """Return the plan's changes: topics first, then moves by reason, topic and place, then elections.

    Many topics that one line changes alike share a row, unless it `is_whole`.
    """
    rows = [topic_row(change, arrow=arrow) for change in plan.topic_changes]
    rows = rows if is_whole else _grouped_rows(rows, "topic")
    emptied = _emptied(plan)
    is_rollback = plan.source.rolls_back is not None
    groups = _move_groups(plan, is_whole=is_whole)
    rows += [_move_row(key[1], group, emptied, arrow, is_rollback=is_rollback) for key, group in groups.items()]
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
            return Row("+", change.topic, what, takes(change), "new topic", at=change.at, change=change)
        case CreatePartitions():
            what = f"partitions {change.from_count} {arrow} {change.to_count}; keys map elsewhere"
            return Row("+", change.topic, what, takes(change), IRREVERSIBLE, at=change.at, change=change)
        case AlterConfigs():
            kind = _kind_of(class_of(change), "config")
            what = _config_changes(change, arrow)
            return Row("~", change.topic, what, takes(change), kind, at=change.at, change=change)
        case DeleteTopic():
            what = "delete with all its data"
            return Row("-", change.topic, what, takes(change), DESTROYS, at=change.at, change=change)


def _grouped_rows(rows: Sequence[Row], noun: str) -> list[Row]:
    """Return the rows with one in place of many that one line asks for in the same words; deletions stay alone."""
    alike: dict[object, list[Row]] = {}
    groups = []
    for row in rows:
        own = row.subject if isinstance(row.change, DeleteTopic) else ""
        groups.append(alike.setdefault((row.sign, row.what, row.kind, _line_of(row.at), own), []))
        groups[-1].append(row)
    # A row for many stands where the first of them would.
    shown = ((row, group) for row, group in zip(rows, groups, strict=True) if len(group) <= MANY or row is group[0])
    return [row if len(group) <= MANY else _group_row(group, noun) for row, group in shown]


def _group_row(rows: Sequence[Row], noun: str) -> Row:
    changes = [row.change for row in rows if row.change is not None]
    effect = takes_in_all(changes) if changes else rows[0].effect
    what = f"{counted(len(rows), noun)} ({few(row.subject for row in rows)}): {rows[0].what}"
    return replace(rows[0], subject="", what=what, effect=effect, change=None)


def gravest_first(rows: Iterable[Row]) -> list[Row]:
    """Return what destroys before what cannot be undone, and both before the rest, each in its order."""
    return sorted(rows, key=lambda each: _GRAVITY.get(each.kind, len(_GRAVITY)))


def _kind_of(found: EffectClass, harmless: str) -> str:
    return harmless if found is EffectClass.HARMLESS else found.value


def differences_counted(found: Changes, fields: Sequence[Difference]) -> str:
    """Return how many differences there are, those included that no plan puts right."""
    count = len(difference_rows(found, fields)) + len(found.stays)
    return counted(count, "difference") if count else "no differences"


def difference_rows(
    found: Changes, fields: Sequence[Difference], *, arrow: str = "->", is_whole: bool = True
) -> tuple[Row, ...]:
    """Return what differs: topics as a whole, their fields one by one, broken rules, leaders to elect.

    Unless it `is_whole`, many of them that one line asks for alike share a row.
    """

    def shown(rows: list[Row], noun: str = "topic") -> list[Row]:
        return rows if is_whole else _grouped_rows(rows, noun)

    whole = [change for change in found.topic_changes if isinstance(change, CreateTopic | DeleteTopic)]
    told = {change.topic for change in whole}
    rows = shown([topic_row(change, arrow=arrow) for change in whole])
    costs = dict(_field_costs(found.topic_changes))
    rows += shown([_field_row(each, arrow, costs) for each in fields if each.topic not in told])
    rows += _broken_rows(found.every_broken_rule, arrow, is_whole=is_whole)
    rows += [
        Row("~", f"broker {each.broker}", f"log dir {each.log_dir}: {each.detail}", "", "log dirs", at=each.at)
        for each in found.log_dirs
    ]
    elections = [
        Row("~", str(each.topic_partition), f"leader {arrow} {each.leader}, the preferred one", "", LEADERS_ONLY)
        for each in found.elections
    ]
    return (*rows, *shown(elections, "partition"))


def _field_costs(changes: Iterable[TopicChange]) -> Iterator[tuple[tuple[str, str], TopicChange]]:
    """Yield each topic's fields that are not harmless, with the change as far as it is of that field."""
    for change in changes:
        if isinstance(change, CreatePartitions):
            yield (change.topic, "partitions"), change
        for key in sorted({effect.key for effect in change.effects if effect.key is not None}):
            of_key = tuple(effect for effect in change.effects if effect.key == key)
            yield (change.topic, f"config.{key}"), replace(change, effects=of_key)


def _broken_rows(broken: Iterable[BrokenRule], arrow: str, *, is_whole: bool) -> list[Row]:
    """Return one row for all partitions of a topic that break a rule in the same way; for all of many topics alike."""
    alike: dict[tuple[Reason, str, Location], dict[tuple[str, Location], list[int]]] = {}
    rules = list(broken)
    for position, one in enumerate(rules):
        line = _line_of(one.at)
        # That a broker died is no line's doing.
        way = one.reason, one.detail, _NOWHERE if one.reason is Reason.DEAD_BROKER else line
        alike.setdefault(way, {}).setdefault((one.topic_partition.topic, line), []).append(position)
    rows: dict[int, Row] = {}
    for (reason, detail, line), topics in alike.items():
        words = (detail if detail.startswith(reason) else f"{reason}: {detail}").replace(" -> ", f" {arrow} ")
        if len(topics) > MANY and not is_whole:
            positions = [position for group in topics.values() for position in group]
            words = f"{counted(len(topics), 'topic')} ({few(topic for topic, _ in topics)}): {words}"
            at = None if line is _NOWHERE else rules[positions[0]].at
            rows[positions[0]] = _broken_row("", words, len(positions), at)
            continue
        for (topic, _), positions in topics.items():
            first = rules[positions[0]]
            subject = topic if len(positions) > 1 else str(first.topic_partition)
            rows[positions[0]] = _broken_row(subject, words, len(positions), first.at)
    return [rows[position] for position in sorted(rows)]


def _broken_row(subject: str, words: str, partitions: int, at: Location | None) -> Row:
    what = f"{words} ({partitions} partitions)" if partitions > 1 else words
    return Row("~", subject, what, "", "placement", at=at)


def _field_row(difference: Difference, arrow: str, costs: Mapping[tuple[str, str], TopicChange]) -> Row:
    topic, field = difference.topic, difference.field
    old, new = (config_value(field, value) for value in (difference.old, difference.new))
    sign = "+" if difference.old is None else "-" if difference.new is None else "~"
    what, change = f"{visible(field)} {old} {arrow} {new}", costs.get((topic, field))
    if change is None:
        return Row(sign, topic, what, "", "topic", at=difference.at)
    kind = _kind_of(class_of(change), "topic")
    return Row(sign, topic, what, takes(change), kind, at=difference.at, change=change)


def _group(why: "Why", topic: str) -> tuple[int, str, Location]:
    """Return what moves are told together by; that a broker died is no line's doing."""
    subject = "" if why.reason in _CLUSTER_WIDE else topic
    return _ORDER[why.reason], subject, _line_of(None if why.reason is Reason.DEAD_BROKER else why.at)


def _move_groups(plan: Plan, *, is_whole: bool) -> "Mapping[tuple[int, str, Location], MoveGroup]":
    """Return the groups of moves that share a row; topics that one line moves for one reason do where they are many."""
    from reconciler.model.move_groups import grouped  # loads numpy, which differences have no use for

    groups = grouped(plan.every_move(), _group)
    topics = Counter((rank, line) for rank, topic, line in groups if topic)

    def of_many(why: "Why", topic: str) -> tuple[int, str, Location]:
        rank, subject, line = _group(why, topic)
        return rank, "" if topics[rank, line] > MANY else subject, line

    return groups if is_whole or max(topics.values(), default=0) <= MANY else grouped(plan.every_move(), of_many)


def _line_of(at: Location | None) -> Location:
    """Return the place without its column: a saved plan has none, and a reader sees one line."""
    return Location(at.file, at.line) if at is not None else _NOWHERE


def _move_row(subject: str, group: "MoveGroup", emptied: frozenset[int], arrow: str, *, is_rollback: bool) -> Row:
    reason, at = group.why
    what = _why(reason, group, emptied, arrow)
    if is_rollback:
        what = f"back: {counted(group.partitions, 'partition')} to where the plan found them"
    if not subject and reason not in _CLUSTER_WIDE:
        what = f"{counted(group.topics, 'topic')}: {what}"
    place = None if reason is Reason.DEAD_BROKER else at
    return Row("~", subject, what, _effect(group), _kind(group), group.bytes, place, group.is_size_known)


def _dir_rows(plan: Plan) -> Iterator[Row]:
    """Yield a row for each pair of log dirs with moves between them; one for all where there are very many pairs."""
    by_place: dict[tuple[str, Location], list[DirMove]] = {}
    for move in (move for stage in plan.stages if isinstance(stage, LogDirsStage) for move in stage.moves):
        by_place.setdefault((move.reason, _line_of(move.at)), []).append(move)
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
