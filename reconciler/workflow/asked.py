"""What Kafka says to the topic changes of a plan, asked as it is made: what it would refuse is an error."""

from collections.abc import Sequence
from dataclasses import replace

from reconciler.apply.refusals import Refusal, not_asked, said_to
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    ClusterUnavailable,
    InvalidInput,
    MissingRight,
    Problem,
    Severity,
    WouldBeRefused,
)
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin

UNASKED = "KR865"


def asked(plan: Plan, inputs: Inputs, desired: Desired, observed: Cluster) -> Plan:
    """Return the plan, with a warning where Kafka could not be asked; raises InvalidInput for what it would refuse."""
    if not plan.topic_changes:
        return plan
    if inputs.state:
        return _with_warnings(plan, [not_asked(plan.topic_changes, "the state is a snapshot")])
    try:
        with cluster_admin(inputs, desired) as admin:
            said = said_to(plan, plan.topic_changes, admin)
    except (ClusterUnavailable, MissingRight) as error:
        return _with_warnings(plan, [not_asked(plan.topic_changes, str(error))])
    if said.refused:
        raise InvalidInput(_problem(one, desired, observed) for one in said.refused)
    return _with_warnings(plan, said.unasked)


def _with_warnings(plan: Plan, unasked: Sequence[str]) -> Plan:
    if not unasked:
        return plan
    from reconciler.files.plan_file import with_id

    found = [
        Problem(UNASKED, f"{told}; apply asks before its first change", None, Severity.WARNING) for told in unasked
    ]
    return with_id(replace(plan, warnings=(*plan.warnings, *found)))


def _problem(refusal: Refusal, desired: Desired, observed: Cluster) -> Problem:
    """Return the refusal where the first config that Kafka names is written, else where the change comes from."""
    change = refusal.change
    declared = desired.topics.get(change.topic)
    if declared is None and change.topic in observed.topics:
        declared = topic_rules(desired, observed)[change.topic].declared
    places = [declared.where(f"config.{key}") for key in refusal.keys] if declared is not None else []
    text = f"{refusal}; write what this cluster takes"
    return Problem(WouldBeRefused.code, text, next(iter(places), None) or change.at)
