"""The assignors by the names that a user gives."""

from reconciler.groups.assignors.cooperative_sticky import CooperativeStickyAssignor
from reconciler.groups.assignors.range import RangeAssignor
from reconciler.groups.assignors.roundrobin import RoundRobinAssignor
from reconciler.groups.assignors.server_range import ServerRangeAssignor
from reconciler.groups.assignors.server_uniform import ServerUniformAssignor
from reconciler.groups.assignors.sticky import StickyAssignor
from reconciler.model.assignment import Assignor
from reconciler.model.problem import ReconcilerError

CLIENT_SIDE: tuple[Assignor, ...] = (
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    CooperativeStickyAssignor(),
)

SERVER_SIDE: tuple[Assignor, ...] = (ServerRangeAssignor(), ServerUniformAssignor())

ASSIGNORS: dict[str, Assignor] = {assignor.name: assignor for assignor in (*CLIENT_SIDE, *SERVER_SIDE)}
"""Every assignor that ships, by name, in the order in which they are listed."""


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
