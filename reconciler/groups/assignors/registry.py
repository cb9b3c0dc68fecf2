"""Lists the assignors that ship, and finds one by the name that a user gives."""

from reconciler.groups.assignors.range_roundrobin import RangeAssignor, RoundRobinAssignor, ServerRangeAssignor
from reconciler.groups.assignors.server_uniform import ServerUniformAssignor
from reconciler.groups.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from reconciler.model.assignment import Assignor
from reconciler.model.problem import ReconcilerError

ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor
    for assignor in (
        RangeAssignor(),
        RoundRobinAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
        ServerRangeAssignor(),
        ServerUniformAssignor(),
    )
}
"""Every assignor that ships, by name: first those of clients, then those of the coordinator."""


class UnknownAssignor(ReconcilerError):
    """No assignor has this name."""

    code = "KR901"


def assignor_named(name: str) -> Assignor:
    """Return the assignor of that name, or raise UnknownAssignor, which lists the names there are."""
    found = ASSIGNORS.get(name)
    if found is None:
        raise UnknownAssignor(
            f"there is no assignor {name}; take one of {', '.join(ASSIGNORS)}, "
            "or name a Python class of your own as package.module:Class"
        )
    return found
