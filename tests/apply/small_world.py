"""What happens to a simulated cluster while a run works on it."""

from collections.abc import Callable

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment


class At:
    """Does something when the cluster is asked for `name` for the n-th time: another administrator, or a fault."""

    def __init__(self, name: str, count: int, action: Callable[[], object]) -> None:
        self.name = name
        self.count = count
        self.action = action

    def __call__(self, name: str, moment: Moment) -> Answer | None:
        if name == self.name and moment is Moment.BEFORE:
            self.count -= 1
            if self.count == 0:
                self.action()
        return None
