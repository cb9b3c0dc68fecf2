"""`groups reset-offsets`: where each partition would go on, shown first, and committed only when asked to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from reconciler.admin.port import EARLIEST, LATEST, Admin, Answer
from reconciler.groups.model.state import GroupReset
from reconciler.groups.offsets import Log, Target, ToOffsets, TopicScope, ToTime, reset, scope
from reconciler.groups.workflow.described import (
    groups_admin,
    hidden_topics,
    no_such_groups,
    visible_groups,
    visible_topics,
)
from reconciler.model.cluster import CLASSIC, CONSUMER, Group
from reconciler.model.codec import HIDDEN, REQUIRED, Key
from reconciler.model.problem import (
    ClusterUnavailable,
    InvalidInput,
    MissingRight,
    OutcomeUnknown,
    Problem,
    Refused,
    ReportedProblem,
    Severity,
)
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some
from reconciler.workflow.inputs import Inputs

HAS_MEMBERS = "KR913"
OTHER_KIND = "KR914"
NEW_GROUP = "KR915"
NOT_IN_FILE = "KR916"
NOTHING_TO_RESET = "KR917"
LEFT_OUT = "KR919"
MOST_NAMED = 5
TRIES = 3
PAUSE_SECONDS = 1.0
# After these the write may have happened: the group is looked at before anything is repeated.
UNSURE = frozenset({"COORDINATOR_NOT_AVAILABLE", "REQUEST_TIMED_OUT", "UNKNOWN_SERVER_ERROR"})
# A coordinator learns of a new partition a moment later than other brokers may.
NOT_YET = "UNKNOWN_TOPIC_OR_PARTITION"
REASONS = {
    "UNKNOWN_MEMBER_ID": "the group has members again",
    "ILLEGAL_GENERATION": "the group has members again",
    NOT_YET: "the partition is gone",
}


@dataclass(frozen=True, slots=True)
class FromFile:
    """Offsets from a CSV file."""

    path: str


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """What to reset and where to: `scopes` None means all that each group has committed.

    A timedelta goes back so long from now; a file says itself which partitions it is about.
    """

    target: Target | timedelta | FromFile
    group_ids: tuple[str, ...] = ()
    is_all_groups: bool = False
    scopes: tuple[TopicScope, ...] | None = None


@dataclass(frozen=True, slots=True)
class ResetOutcome:
    """Each group's reset, planned or done; `active` says of groups with members why nothing may be written.

    `is_one_named` says that the reset was asked of one group, by its name.
    """

    groups: Annotated[tuple[GroupReset, ...], "The groups."]
    warnings: Annotated[tuple[Problem, ...], HIDDEN] = ()
    active: Annotated[tuple[str, ...], HIDDEN] = ()
    is_done: Annotated[bool, Key("executed"), REQUIRED, "Offsets were committed; false is a look ahead."] = False
    is_one_named: Annotated[bool, HIDDEN] = False

    @property
    def reported_warnings(
        self,
    ) -> Annotated[tuple[ReportedProblem, ...], Key("warnings"), "What could not be seen, and what it means."]:
        """The warnings as JSON tells them."""
        return tuple(map(ReportedProblem.of, self.warnings))

    @property
    def is_partial(self) -> bool:
        """Whether Kafka refused a part of what was asked for."""
        return any(each.refused for each in self.groups)


@dataclass(slots=True)
class _Found:
    """What is gathered on the way, group after group."""

    groups: list[GroupReset] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    active: list[str] = field(default_factory=list)


def reset_offsets(inputs: Inputs, request: ResetRequest, *, is_executed: bool) -> ResetOutcome:
    """Return the reset as it would be or, if executed, as it went; nothing is written while any group has members.

    Raises InvalidInput for what cannot be reset, every problem at once where that can be told.
    """
    with groups_admin(inputs) as admin:
        planned = plan_reset(admin, request)
        if not is_executed or planned.active:
            return planned
        return replace(planned, groups=tuple(commit(admin, each) for each in planned.groups), is_done=True)


def refusal(outcome: ResetOutcome) -> Refused | None:
    """Return the refusal of a reset of groups that have members, None where there are none."""
    if not outcome.active:
        return None
    return Refused(
        f"{'; '.join(outcome.active)}: stop the members first, Kafka takes no offsets from outside "
        "while there are some. Nothing was written.",
        code=HAS_MEMBERS,
    )


def export_offsets(outcome: ResetOutcome, path: str) -> None:
    """Write the new offsets as CSV."""
    from reconciler.groups.files.offsets_csv import write_offsets

    write_offsets(path, _by_group(outcome), has_groups=not outcome.is_one_named)


def offsets_csv(outcome: ResetOutcome) -> str:
    """Return the new offsets as CSV."""
    from reconciler.groups.files.offsets_csv import offsets_text

    return offsets_text(_by_group(outcome), has_groups=not outcome.is_one_named)


def plan_reset(admin: Admin, request: ResetRequest) -> ResetOutcome:
    """Return what the reset would do."""
    known = admin.groups(None if request.is_all_groups else request.group_ids)
    group_ids = tuple(_resettable(known)) if request.is_all_groups else request.group_ids
    if not group_ids:
        raise InvalidInput([Problem(NOTHING_TO_RESET, "there is no group to reset")])
    _refuse_other_kinds([known[group_id] for group_id in group_ids if group_id in known])
    found = _Found()
    targets = _targets(admin, request, group_ids, found.warnings)
    for group_id in group_ids:
        group = known.get(group_id)
        if group is None:
            found.warnings.append(_beginning(admin, group_id, request.scopes, request.target))
        elif is_active(group):
            found.active.append(told_active(group))
        _plan(admin, group or Group(group_id), targets[group_id], request.scopes, found)
    if not any(each.changes for each in found.groups):
        raise InvalidInput([Problem(NOTHING_TO_RESET, "no group has committed anything: name topics with --topic")])
    return ResetOutcome(
        tuple(found.groups),
        tuple(dict.fromkeys(found.warnings)),
        tuple(found.active),
        is_one_named=_is_one_named(request),
    )


def commit(admin: Admin, planned: GroupReset) -> GroupReset:
    """Commit a group's new offsets, and return it with what Kafka refused.

    After an answer that leaves open what happened, the group is looked at, and only what is missing is sent again.
    """
    again = {*UNSURE, NOT_YET}
    left = {change.topic_partition: change.new for change in planned.changes}
    refused: dict[TopicPartition, str] = {}
    for turn in range(TRIES):
        if turn:
            admin.clock.sleep(PAUSE_SECONDS)
        try:
            answers = admin.commit_offsets(planned.group_id, left)
        except OutcomeUnknown as error:
            answers = dict.fromkeys(left, Answer("REQUEST_TIMED_OUT", str(error)))
        except (ClusterUnavailable, MissingRight) as error:
            return replace(planned, refused=refused | dict.fromkeys(left, str(error)))
        refused |= {key: _reason(told) for key, told in answers.items() if not told.is_ok and told.error not in again}
        unsure = {key: told for key, told in answers.items() if told.error in again}
        missing = _still_missing(admin, planned.group_id, {key: left[key] for key in unsure}) if unsure else {}
        if not missing:
            break
        left = missing
        if turn == TRIES - 1:
            refused |= {key: _reason(unsure[key]) for key in missing}
    return replace(planned, refused=dict(sorted(refused.items())))


def is_active(group: Group) -> bool:
    """Whether a group has members, or is about to."""
    return bool(group.members) or group.state not in {"Empty", "Dead", ""}


def told_active(group: Group) -> str:
    """Return which group has members, and how many."""
    count = len(group.members)
    members = "1 member" if count == 1 else f"{count} members"
    return f"group {group.group_id} is {group.state or 'active'} with {members}"


def _plan(admin: Admin, group: Group, target: Target, scopes: Sequence[TopicScope] | None, found: _Found) -> None:
    """Add one group's reset, and what is to be said of it."""
    if isinstance(target, ToOffsets):
        scopes = _scopes_of(target.offsets)
    names = {key.topic for key in group.committed} if scopes is None else {each.topic for each in scopes}
    topics, hidden = visible_topics(admin, names)
    if hidden and scopes is not None:
        raise MissingRight(hidden_topics(hidden).message)
    if hidden:
        found.warnings.append(hidden_topics(hidden))
        gone = set(hidden)
        group = replace(group, offsets={name: kept for name, kept in group.offsets.items() if name not in gone})
    keys, warnings = scope(group, scopes, topics)
    planned = reset(group, keys, target, _log(admin, keys, target))
    found.groups.append(GroupReset(group.group_id, planned.changes))
    found.warnings += [*warnings, *(_of_group(problem, group.group_id) for problem in planned.warnings)]


def _log(admin: Admin, keys: Collection[TopicPartition], target: Target) -> Log:
    return Log(
        _known(admin.log_offsets(keys, EARLIEST)),
        _known(admin.log_offsets(keys, LATEST)),
        # Below zero stand Kafka's own marks, such as LATEST; no record is older than zero.
        admin.log_offsets(keys, max(0, target.milliseconds)) if isinstance(target, ToTime) else {},
    )


def _known(offsets: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
    return {key: offset for key, offset in offsets.items() if offset is not None}


def _targets(
    admin: Admin, request: ResetRequest, group_ids: Sequence[str], warnings: list[Problem]
) -> dict[str, Target]:
    match request.target:
        case timedelta() as back:
            since = admin.clock.now() - datetime.fromtimestamp(0, UTC) - back
            return dict.fromkeys(group_ids, ToTime(since // timedelta(milliseconds=1)))
        case FromFile(path):
            return _from_file(path, request, group_ids, warnings)
        case target:
            return dict.fromkeys(group_ids, target)


def _from_file(
    path: str, request: ResetRequest, group_ids: Sequence[str], warnings: list[Problem]
) -> dict[str, Target]:
    from reconciler.groups.files.offsets_csv import read_offsets

    offsets = read_offsets(path, group_ids[0] if _is_one_named(request) else None)
    missing = [group_id for group_id in group_ids if group_id not in offsets]
    if missing:
        raise InvalidInput([Problem(NOT_IN_FILE, f"{path} holds no offsets of group {each}") for each in missing])
    others = sorted(offsets.keys() - set(group_ids))
    if request.is_all_groups and others:
        warnings.append(_left_out(path, others))
    return {group_id: ToOffsets(offsets[group_id]) for group_id in group_ids}


def _left_out(path: str, group_ids: Sequence[str]) -> Problem:
    message = (
        f"{path} holds offsets of group {named_some(group_ids)}: left out, because --all-groups means those that "
        "have committed some; name it with --group to begin it with these"
    )
    return Problem(LEFT_OUT, message, severity=Severity.WARNING)


def _is_one_named(request: ResetRequest) -> bool:
    return not request.is_all_groups and len(request.group_ids) == 1


def _scopes_of(offsets: Mapping[TopicPartition, int]) -> tuple[TopicScope, ...]:
    topics = sorted({key.topic for key in offsets})
    return tuple(
        TopicScope(topic, tuple(sorted(key.partition for key in offsets if key.topic == topic))) for topic in topics
    )


def _resettable(known: Mapping[str, Group]) -> list[str]:
    return sorted(group_id for group_id, group in known.items() if group.kind in {CLASSIC, CONSUMER} and group.offsets)


def _refuse_other_kinds(groups: Sequence[Group]) -> None:
    problems = [
        Problem(OTHER_KIND, f"group {group.group_id} is a {group.kind} group: Kafka has a tool of its own for these")
        for group in groups
        if group.kind not in {CLASSIC, CONSUMER}
    ]
    if problems:
        raise InvalidInput(problems)


def _beginning(
    admin: Admin, group_id: str, scopes: Sequence[TopicScope] | None, target: Target | timedelta | FromFile
) -> Problem:
    """Return the warning that a group begins with a reset; InvalidInput where it has nothing that could be reset."""
    if scopes is None and not isinstance(target, FromFile):
        raise no_such_groups([group_id], visible_groups(admin)[0])
    message = f"there is no group {group_id} yet: it begins with these offsets"
    return Problem(NEW_GROUP, message, severity=Severity.WARNING)


def _still_missing(admin: Admin, group_id: str, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Look at the group: return those of the offsets that are not committed."""
    group = admin.groups([group_id]).get(group_id)
    committed = group.committed if group is not None else {}
    return {key: offset for key, offset in wanted.items() if committed.get(key) != offset}


def _reason(told: Answer) -> str:
    if told.error in REASONS:
        return f"{REASONS[told.error]} ({told.error})"
    return told.message or str(told.error)


def _of_group(problem: Problem, group_id: str) -> Problem:
    return replace(problem, message=f"group {group_id}: {problem.message}")


def _by_group(outcome: ResetOutcome) -> dict[str, dict[TopicPartition, int]]:
    return {each.group_id: {change.topic_partition: change.new for change in each.changes} for each in outcome.groups}
