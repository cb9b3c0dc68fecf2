"""Makes the reports of groups: as they are, and what a reset or a deletion would do. The unknown is `-`."""

from collections.abc import Sequence

from reconciler.groups.model.state import GroupDeletion, GroupReset, GroupState, OffsetChange, PartitionLag
from reconciler.groups.render.as_simulation import partition_list
from reconciler.model.cluster import CLASSIC, Group, GroupMember
from reconciler.model.words import counted, number
from reconciler.render.report import Report, Section, Table

NONE = "-"  # in place of what is not known, which is never zero
NO_GROUPS = Report((Section("No groups."),))


def overview(seen: Sequence[GroupState]) -> Report:
    """Return one line a group: kind, state, assignor, members, coordinator, total lag."""
    head = ("group", "kind", "state", "assignor", "members", "coordinator", "lag")
    rows = tuple(
        (
            each.group.group_id,
            _kind(each.group),
            each.group.state or NONE,
            each.group.protocol or NONE,
            number(len(each.group.members)),
            _known(each.group.coordinator),
            _amount(each.total_lag),
        )
        for each in seen
    )
    return Report((Section(parts=(Table(head, rows, left=4),)),)) if seen else NO_GROUPS


def described(seen: Sequence[GroupState]) -> Report:
    """Return each group: where it is coordinated, its members with what they own, the lag of each partition."""
    sections = (Section(_title(each), (_coordinator_line(each), _members(each), _lags(each))) for each in seen)
    return Report(tuple(sections)) if seen else NO_GROUPS


def lags(seen: Sequence[GroupState]) -> Report:
    """Return the lag of each partition of each group, and its total."""
    return Report(tuple(Section(_title(each), (_lags(each),)) for each in seen)) if seen else NO_GROUPS


def resets(planned: Sequence[GroupReset], *, is_done: bool) -> Report:
    """Return what a reset changes, or has changed, partition by partition, and why Kafka refused what it did."""
    return Report(tuple(_reset(each, is_done=is_done) for each in planned))


def deletions(planned: Sequence[GroupDeletion], *, is_done: bool) -> Report:
    """Return the groups that go, or have gone, with how many commits go with them."""
    return Report((Section(parts=tuple(_deletion(each, is_done=is_done) for each in planned)),))


def _kind(group: Group) -> str:
    """Return what kind of group it is: `classic`, `consumer` (KIP-848), or what its members speak instead."""
    if group.kind == CLASSIC and group.protocol_type not in {"consumer", ""}:
        return f"{CLASSIC} ({group.protocol_type})"
    return group.kind


def _title(seen: GroupState) -> str:
    group = seen.group
    parts = [group.state, group.protocol, _kind(group), counted(len(group.members), "member")]
    parts += [f"lag {number(seen.total_lag)}"] if seen.total_lag is not None else []
    return f"group {group.group_id}: {', '.join(filter(None, parts))}"


def _coordinator_line(seen: GroupState) -> str:
    broker = seen.group.coordinator
    line = "no coordinator" if broker is None else f"coordinator: broker {broker}"
    if seen.coordinator_host:
        line += f" ({seen.coordinator_host})"
    if seen.offsets_partition is not None:
        line += _its_partition(broker, seen.offsets_leader, f"__consumer_offsets-{seen.offsets_partition}")
    return line if seen.coordinator_after is None else f"{line}; broker {seen.coordinator_after} once the plan has run"


def _its_partition(coordinator: int | None, leader: int | None, partition: str) -> str:
    if leader is None:
        return f"; {partition} has no leader"
    return f", leader of {partition}" if leader == coordinator else f"; {partition} is led by broker {leader}"


def _members(seen: GroupState) -> Table:
    members = seen.group.members
    optional = (
        ("instance", [member.instance_id for member in members]),
        ("rack", [member.rack for member in members]),
        ("pattern", [member.subscription_pattern for member in members]),
    )
    shown = [(name, values) for name, values in optional if any(values)]
    head = ("member", "client", "host", *(name for name, _ in shown), "owns")
    rows = tuple(
        (
            member.member_id,
            member.client_id or NONE,
            member.host or NONE,
            *(values[position] or NONE for _, values in shown),
            _owned(member),
        )
        for position, member in enumerate(members)
    )
    return Table(head, rows, left=len(head), empty="no members")


def _owned(member: GroupMember) -> str:
    return partition_list((topic, number) for topic, numbers in member.assignment.items() for number in numbers)


def _lags(seen: GroupState) -> Table:
    head = ("topic", "member", "partition", "committed", "end", "lag")
    rows = tuple(_lag_row(each, seen) for each in seen.lags)
    return Table(head, rows, left=2, empty="nothing owned, nothing committed")


def _lag_row(each: PartitionLag, seen: GroupState) -> tuple[str, ...]:
    topic, partition = each.topic_partition
    owner = seen.labels.get(each.member_id, each.member_id) if each.member_id is not None else NONE
    return topic, owner, str(partition), _known(each.committed), _known(each.end), _amount(each.lag)


def _reset(planned: GroupReset, *, is_done: bool) -> Section:
    changes = planned.changes
    done = [change for change in changes if change.topic_partition not in planned.refused]
    what = "committed" if is_done else "to commit"
    again = sum(change.again for change in done if change.again is not None and change.again > 0)
    skipped = -sum(change.again for change in done if change.again is not None and change.again < 0)
    parts = [f"{counted(len(done), 'offset')} {what}"]
    parts += [f"{counted(again, 'record')} to be read again"] if again else []
    parts += [f"{counted(skipped, 'record')} skipped"] if skipped else []
    parts += [f"{counted(len(planned.refused), 'partition')} refused"] if planned.refused else []
    reasons = set(planned.refused.values())
    head = ("topic", "effect", "partition", "committed", "new", "lag")
    rows = tuple(_reset_row(change, planned, has_reason=len(reasons) > 1) for change in changes)
    table = (Table(head, rows, left=2),) if rows else ()
    refused = tuple(f"refused: {reason}" for reason in reasons) if len(reasons) == 1 else ()
    return Section(f"group {planned.group_id}: {', '.join(parts)}", (*table, *refused))


def _reset_row(change: OffsetChange, planned: GroupReset, *, has_reason: bool) -> tuple[str, ...]:
    topic, partition = change.topic_partition
    refused = planned.refused.get(change.topic_partition)
    effect = _effect(change) if refused is None else f"refused: {refused}" if has_reason else "refused"
    return topic, effect, str(partition), _known(change.old), str(change.new), number(change.lag)


def _effect(change: OffsetChange) -> str:
    if change.again is None:
        return "first commit"
    if change.old == change.new:
        return "unchanged"
    if change.again == 0:
        return "no record read again" if change.new < (change.old or 0) else "no record skipped"
    return f"{number(change.again)} read again" if change.again > 0 else f"{number(-change.again)} skipped"


def _deletion(planned: GroupDeletion, *, is_done: bool) -> str:
    group = planned.group
    commits = counted(len(group.committed), "committed offset")
    if planned.refused is not None:
        return f"! {group.group_id}  not deleted: {planned.refused}"
    if is_done:
        return f"- {group.group_id}  deleted, with {commits}"
    return f"- {group.group_id}  {group.state or NONE}, {commits} to go with it"


def _known(value: int | None) -> str:
    return NONE if value is None else str(value)


def _amount(value: int | None) -> str:
    return NONE if value is None else number(value)
