"""Deletes groups without members, and their offsets; shown first, deleted only when asked to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from reconciler.admin.port import Admin, Answer
from reconciler.groups.model.state import GroupDeletion
from reconciler.groups.workflow.described import groups_admin, no_such_groups, visible_groups
from reconciler.groups.workflow.reset_offsets import TRIES, UNSURE, is_active, told_active
from reconciler.model.codec import HIDDEN, REQUIRED, Key
from reconciler.model.problem import ClusterUnavailable, MissingRight, OutcomeUnknown, Refused
from reconciler.workflow.inputs import Inputs

DELETED_WITH_MEMBERS = "KR918"
GONE = "GROUP_ID_NOT_FOUND"
REASONS = {"NON_EMPTY_GROUP": "the group has members again"}


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """Each group's deletion, planned or done; `active` says of groups with members why nothing may be deleted."""

    groups: Annotated[tuple[GroupDeletion, ...], "The groups."]
    active: Annotated[tuple[str, ...], HIDDEN] = ()
    is_done: Annotated[bool, Key("executed"), REQUIRED, "Groups were deleted; false is a look ahead."] = False

    @property
    def is_partial(self) -> bool:
        """Whether Kafka refused a part of what was asked for."""
        return any(each.refused is not None for each in self.groups)


def delete_groups(inputs: Inputs, group_ids: Sequence[str], *, is_executed: bool) -> DeleteOutcome:
    """Return the deletion as it would be or, if executed, as it went; nothing is deleted while any has members.

    Raises InvalidInput that names every group which does not exist.
    """
    with groups_admin(inputs) as admin:
        known = admin.groups(group_ids)
        missing = [group_id for group_id in group_ids if group_id not in known]
        if missing:
            raise no_such_groups(missing, visible_groups(admin)[0])
        groups = [known[group_id] for group_id in group_ids]
        planned = tuple(GroupDeletion(group) for group in groups)
        active = tuple(told_active(group) for group in groups if is_active(group))
        if not is_executed or active:
            return DeleteOutcome(planned, active)
        return DeleteOutcome(_delete(admin, planned), is_done=True)


def refusal(outcome: DeleteOutcome) -> Refused | None:
    """Return the refusal of deleting groups that have members, None where there are none."""
    if not outcome.active:
        return None
    told = f"{'; '.join(outcome.active)}: stop the members first. Nothing was deleted."
    return Refused(told, code=DELETED_WITH_MEMBERS)


def _delete(admin: Admin, planned: Sequence[GroupDeletion]) -> tuple[GroupDeletion, ...]:
    """Delete; after an answer that leaves open what happened, look which groups are still there, and repeat those."""
    answers: dict[str, Answer] = {}
    left = [each.group.group_id for each in planned]
    for _ in range(TRIES):
        try:
            answers |= admin.delete_groups(left)
        except OutcomeUnknown as error:
            answers |= dict.fromkeys(left, Answer("REQUEST_TIMED_OUT", str(error)))
        except (ClusterUnavailable, MissingRight) as error:
            answers |= dict.fromkeys(left, Answer("CLUSTER_UNAVAILABLE", str(error)))
        unsure = [group_id for group_id in left if answers[group_id].error in UNSURE]
        if not unsure:
            break
        there = admin.groups(unsure)
        answers |= {group_id: Answer() for group_id in unsure if group_id not in there}
        left = sorted(there)
        if not left:
            break
    return tuple(replace(each, refused=_reason(answers[each.group.group_id])) for each in planned)


def _reason(told: Answer) -> str | None:
    if told.is_ok or told.error == GONE:
        return None
    if told.error in REASONS:
        return f"{REASONS[told.error]} ({told.error})"
    return told.message or told.error
