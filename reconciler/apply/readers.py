"""Whether a live group reads a topic that is to be deleted though no document names it: seen just before it goes."""

from collections.abc import Iterable, Sequence

from reconciler.apply.observed import Observed
from reconciler.apply.session import Session
from reconciler.apply.topic_changes import ChangeState, standing
from reconciler.model.change import DeleteTopic
from reconciler.model.problem import STILL_READ, Refused
from reconciler.model.stage import Stage, TopicsStage
from reconciler.model.wording import named_some


def check_readers(session: Session, stages: Iterable[Stage], observed: Observed) -> None:
    """Refuse to delete topics that a live group reads, but for those whose own document says `state: absent`."""
    due = _undeclared(session, stages, observed)
    if not due:
        return
    groups = session.patiently(session.admin.groups)
    read = [f"{topic} (by {group.group_id})" for topic in due for group in groups.values() if group.is_reading(topic)]
    if read:
        text = f"topics that the plan deletes, and that are not declared, are read by live groups: {named_some(read)}"
        raise Refused(f"{text}; declare them, or write state: absent for each, and make a new plan", code=STILL_READ)


def _undeclared(session: Session, stages: Iterable[Stage], observed: Observed) -> Sequence[str]:
    course = session.itinerary
    positions = [position for stage in stages if isinstance(stage, TopicsStage) for position in stage.changes]
    changes = (course.plan.topic_changes[position] for position in positions)
    deletions = (change for change in changes if isinstance(change, DeleteTopic) and not change.is_declared)
    return sorted(each.topic for each in deletions if standing(each, observed, course).state is ChangeState.TO_DO)
