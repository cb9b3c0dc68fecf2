"""A plan, or the refusal of one, with the smallest changes that would make it fit."""

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, Desired, Off
from reconciler.model.plan import Plan
from reconciler.model.problem import PlacementInfeasible

if TYPE_CHECKING:
    from reconciler.planner.remedies import Effort


class Plans(Protocol):
    """A way to make plans, and the topics that they are confined to (None: all)."""

    def plan(self, desired: Desired, observed: Cluster) -> Plan:
        """Return the plan of these states."""

    def names(self, desired: Desired, observed: Cluster) -> frozenset[str] | None:
        """Return the topics that the plan is confined to."""


def plan_or_remedies(planner: Plans, desired: Desired, observed: Cluster, *, is_thorough: bool = False) -> Plan:
    """Return the plan; one with violations carries its remedies, and so does the PlacementInfeasible that is raised.

    The search makes few plans of its own, more where it is thorough, and none of a large cluster unless it is.
    """
    try:
        plan = planner.plan(desired, observed)
    except PlacementInfeasible as refusal:
        from reconciler.planner.remedies import States, remedies_of_conflict

        effort = _effort(desired.cluster.balance, is_thorough=is_thorough)
        names = planner.names(desired, observed)
        remedies = remedies_of_conflict(States(desired, observed), names, planner.plan, effort)
        raise PlacementInfeasible(refusal.problems, remedies) from None
    if not plan.violations:
        return plan
    from reconciler.files.plan_file import with_id
    from reconciler.planner.remedies import States, remedies_of_violations

    effort = _effort(desired.cluster.balance, is_thorough=is_thorough)
    remedies = remedies_of_violations(States(desired, observed), plan, planner.plan, effort)
    return with_id(replace(plan, remedies=remedies))


def _effort(balance: Balance, *, is_thorough: bool) -> "Effort":
    """Return how many plans the search may make; a balance of loads takes many times as long to plan."""
    from reconciler.planner.remedies import ORDINARY, THOROUGH, Effort

    effort = THOROUGH if is_thorough else ORDINARY
    if all(isinstance(each, Off) for each in (balance.disk, balance.network_in, balance.network_out)):
        return effort
    return Effort(effort.plans // 10, effort.partitions // 20)
