"""Makes the report of two clusters side by side: their topics, what copies lack, and where groups would go on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reconciler.model.against import ComparedConfig, ComparedGroup, ComparedPartition, ComparedTopic, Comparison, Ground
from reconciler.model.words import counted, few, number
from reconciler.render.escape import MASK, code_span, config_value, sentence
from reconciler.render.report import Report, Section, Table

NONE = "-"  # in place of what is not known, or not there; never zero
MOST_ROWS, MOST_GROUPS = 50, 20
_GROUNDS = {
    Ground.COMMITTED: "commit on the target",
    Ground.CHECKPOINT: "checkpoint",
    Ground.SYNCS: "offset syncs",
    Ground.OFFSETS: "equal offsets",
}


def without_secrets(found: Comparison) -> Comparison:
    """Return the same; a config whose key names a secret is masked."""
    topics = (replace(each, configs=tuple(map(_masked, each.configs))) for each in found.topics)
    return replace(found, topics=tuple(topics))


def _masked(each: ComparedConfig) -> ComparedConfig:
    return replace(each, source=_shown(each.key, each.source), copy=_shown(each.key, each.copy))


def _shown(key: str, value: str | None) -> str | None:
    return MASK if value is not None and config_value(key, value) == MASK else value


def side_by_side(found: Comparison) -> Report:
    """Return the comparison: what differs stands first, and what is alike is counted."""
    return Report(tuple(_sections(found)))


def _sections(found: Comparison) -> Iterator[Section]:
    names = f"{found.source.cluster} -> {found.target.cluster}"
    differing = sum(each.is_different for each in found.topics)
    count = counted(differing, "topic") + (" differs" if differing == 1 else " differ")
    by = f"by {'mirror' if len(found.mirrors) == 1 else 'mirrors'} {few(found.mirrors)}"
    words = f"{counted(len(found.topics), 'topic')} {by if found.mirrors else 'by equal names'}, {count}"
    heading = (
        f"### reconciler diff · {code_span(found.target.cluster)} against {code_span(found.source.cluster)} · {count}"
    )
    yield Section(f"{names}: {words}", markdown=(heading,))
    if found.topics:
        yield Section("Topics, each value as on the source / of the copy", (_topics(found.topics),))
    configs = [(topic, config) for topic in found.topics for config in topic.configs]
    if configs:
        yield Section("Configs that differ", (_configs(configs),))
    if any(topic.partitions for topic in found.topics):
        yield _offsets(found)
    if found.groups is None:
        yield Section(f"Groups of {found.source.cluster} are not known.")
    elif not found.groups:
        yield Section(f"No group of {found.source.cluster} has committed offsets of these topics.")
    else:
        ordered = sorted(found.groups, key=lambda group: not any(each.missed for each in group.partitions))
        yield from (_group(group, found) for group in ordered[:MOST_GROUPS])
        if len(ordered) > MOST_GROUPS:
            yield Section(f"… and {counted(len(ordered) - MOST_GROUPS, 'more group')}; -o json has all")


def _cut(rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return the first rows, and how many more there are."""
    more = len(rows) - MOST_ROWS
    if more <= 0:
        return tuple(rows)
    return (*rows[:MOST_ROWS], (f"… and {number(more)} more; -o json has all", *[""] * (len(rows[0]) - 1)))


def _topics(topics: Sequence[ComparedTopic]) -> Table:
    head = ("topic", "copy", "what differs", "partitions", "replication factor", "copy lacks")
    ordered = sorted(topics, key=lambda each: not each.is_different)
    return Table(head, _cut([_topic(each) for each in ordered]), left=3)


def _topic(each: ComparedTopic) -> tuple[str, ...]:
    return (
        each.topic,
        each.copy,
        _difference(each),
        _both(each.partition_count, each.copy_partition_count),
        _both(each.replication_factor, each.copy_replication_factor),
        _total(each.partitions),
    )


def _difference(each: ComparedTopic) -> str:
    if each.partition_count is None:
        return "the topic is gone" if each.mirror is not None else "only on the target"
    if each.copy_partition_count is None:
        return "the copy is missing" if each.mirror is not None else "only on the source"
    found = []
    if each.copy_partition_count < each.partition_count or (each.mirror is None and each.is_different):
        found.append("partitions")
    if any(config.is_following for config in each.configs):
        found.append("configs that follow")
    return ", ".join(found) or "nothing"


def _both(source: int | None, copy: int | None) -> str:
    return _amount(source) if source == copy else f"{_amount(source)} / {_amount(copy)}"


def _amount(value: int | None) -> str:
    return NONE if value is None else number(value)


def _total(partitions: Iterable[ComparedPartition]) -> str:
    """Return what a copy lacks over all partitions; where one is not known, the sum would be too small."""
    found = list(partitions)
    amounts = [each.lag_at_most if each.lag is None else each.lag for each in found]
    known = [amount for amount in amounts if amount is not None]
    if not known or len(known) < len(amounts):
        return NONE
    return f"at most {number(sum(known))}" if any(each.lag is None for each in found) else number(sum(known))


def _configs(found: Sequence[tuple[ComparedTopic, ComparedConfig]]) -> Table:
    head = ("topic", "copy", "config", "on the source", "of the copy", "follows")
    rows = [
        (
            topic.topic,
            topic.copy,
            each.key,
            config_value(each.key, each.source),
            config_value(each.key, each.copy),
            "yes" if each.is_following else "no",
        )
        for topic, each in found
    ]
    return Table(head, _cut(rows), left=len(head))


def _offsets(found: Comparison) -> Section:
    """Return the partitions whose copies lack something, or may."""
    all_of = [(topic, each) for topic in found.topics for each in topic.partitions]
    lacking = [(topic, each) for topic, each in all_of if each.lag != 0]
    whole = len(all_of) - len(lacking)
    title = f"Offsets: {number(whole)} of {counted(len(all_of), 'partition')} copied to the end"
    if not lacking:
        return Section(title)
    head = ("copy", "known by", "partition", "end", "copy's end", "copy lacks")
    rows = [
        (
            topic.copy,
            _GROUNDS[each.lag_by] if each.lag_by is not None else NONE,
            str(each.partition),
            _known(each.end),
            _known(each.copy_end),
            _lag(each),
        )
        for topic, each in lacking
    ]
    reasons = [(f"{topic.copy}-{each.partition}", each.unknown) for topic, each in lacking]
    return Section(title, (Table(head, _cut(rows), left=2), *_reasons(reasons)))


def _reasons(found: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Yield each reason why something is not known once, with the partitions that it is of."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in found:
        if reason is not None:
            by_reason.setdefault(reason, []).append(name)
    yield from (f"{few(names)}: {reason}" for reason, names in by_reason.items())


def _known(value: int | None) -> str:
    return NONE if value is None else str(value)


def _lag(each: ComparedPartition) -> str:
    if each.lag_at_most is None:
        return NONE
    if each.lag is None:
        return f"at most {number(each.lag_at_most)}"
    return (
        number(each.lag) if each.lag == each.lag_at_most else f"{number(each.lag)} (at most {number(each.lag_at_most)})"
    )


def _group(group: ComparedGroup, found: Comparison) -> Section:
    state = f"{group.state or 'state unknown'} on {found.source.cluster}"
    there = f"{group.target_state or 'not there'} on {found.target.cluster}"
    twice = _sum("read twice", [each.read_twice for each in group.partitions])
    missed = _sum("missed", [each.missed for each in group.partitions])
    title = f"Group {group.group_id} ({state}, {there}), changed over now: {twice}, {missed}"
    head = ("copy", "goes on by", "partition", "committed", "goes on at", "read twice", "missed", "not copied")
    rows = [
        (
            each.copy,
            _GROUNDS[each.start_by] if each.start_by is not None else NONE,
            str(each.topic_partition.partition),
            str(each.committed),
            _known(each.start),
            _most(each.read_twice, is_exact=each.low == each.high),
            _most(each.missed, is_exact=each.low == each.high),
            _amount(each.not_copied),
        )
        for each in group.partitions
    ]
    reasons = [(f"{each.copy}-{each.topic_partition.partition}", each.unknown) for each in group.partitions]
    heading = f"#### {sentence(title)}"
    return Section(title, (Table(head, _cut(rows), left=2), *_reasons(reasons)), markdown=(heading,))


def _sum(what: str, amounts: Sequence[int | None]) -> str:
    known = [amount for amount in amounts if amount is not None]
    unknown = len(amounts) - len(known)
    more = f" (unknown of {counted(unknown, 'partition')})" if unknown else ""
    if not known:
        return f"{what} unknown"
    return f"at most {counted(sum(known), 'record')} {what}{more}" if sum(known) else f"none {what}{more}"


def _most(value: int | None, *, is_exact: bool) -> str:
    if value is None:
        return NONE
    return number(value) if is_exact or not value else f"at most {number(value)}"
