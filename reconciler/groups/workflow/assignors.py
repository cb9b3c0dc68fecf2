"""Finds the assignors that a user names: those that ship, and classes of their own.

A class of one's own is named `package.module:Class`. It is looked for where Python finds modules and in the current
folder, is made without arguments, and needs what `reconciler.model.assignment.Assignor` asks for:

    class Sticks:
        name = "sticks"

        def assign(self, members, topics):
            return {member.member_id: {"orders": (0, 1)} for member in members}

`members` come in the order in which they joined, each with `member_id`, `subscription`, `instance_id`, `rack`, `owned`,
`generation`, `user_data`, `client_id` and `host`; `topics` maps a name to a topic with `partitions`, `topic_id` and
`racks`. What it returns maps a member id to topics and their partitions; who gets nothing may be left out.

`user_data` are the bytes that the member's own class sent with its subscription (Kafka's `subscriptionUserData`): a
weight, a host, a rack, in that class's own form. Of a live group they are there if the group runs an assignor that
Kafka does not ship; a scenario file gives them as base64, `userData`. `assign` may return a pair: the assignment, and
a mapping from member id to bytes, the user data of that assignment.

    def on_assignment(self, received):
        self.last[received.member_id] = received.partitions

`on_assignment`, where a class has it, is called after each rebalance for every member, with its `member_id`,
`partitions`, `user_data`, `generation`, `group_id` and `instance_id`. In Kafka each member has an object of its own;
here one stands for all of them, made anew for each group or scenario, and for each other order of the members in which
that is simulated again to see what depends on it.

`is_cooperative = True` says that members keep what they own during a rebalance: it must then leave to a second one what
another still owns (KIP-429). `is_server_side = True` says that it is asked as a group's coordinator asks (KIP-848): by
the target assignment, not by what members claim to own.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from reconciler.groups.assignors.registry import ASSIGNORS, assignor_named
from reconciler.model.assignment import Assignment, Assignor, Received, SubscribedTopic, Subscriber
from reconciler.model.problem import ReconcilerError

FORM = "package.module:Class"
ON_ASSIGNMENT = "on_assignment"


class UnusableAssignor(ReconcilerError):
    """A class of a user's own cannot be found, made or used."""

    code = "KR921"


@dataclass(frozen=True, slots=True)
class OwnAssignor:
    """A user's assignor; whatever it prints goes to stderr, since stdout holds only what was asked for."""

    inner: Assignor
    text: str
    name: str
    is_cooperative: bool
    is_server_side: bool

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what the user's class returns, as it is."""
        with redirect_stdout(sys.stderr):
            return self.inner.assign(members, topics)

    def on_assignment(self, received: Received) -> None:
        """Tell the user's class, if it wants to know, what one member received."""
        hook = getattr(self.inner, ON_ASSIGNMENT, None)
        if hook is not None:
            with redirect_stdout(sys.stderr):
                hook(received)

    def anew(self) -> "OwnAssignor":
        """Return the same with a new object of the user's class, which remembers nothing."""
        return replace(self, inner=_made(self.text, type(self.inner)))


def assignors_named(names: Sequence[str]) -> tuple[Assignor, ...]:
    """Return the assignors of these names, each once; all that ship where none is named.

    Raises UnknownAssignor for a name that none has, UnusableAssignor for a class that cannot be used, or whose name
    another of them has.
    """
    found: dict[str, Assignor] = {}
    for text in dict.fromkeys(names):
        assignor = own_assignor(text) if ":" in text else assignor_named(text)
        if assignor.name in found:
            raise UnusableAssignor(f"assignor {text}: another one named is called {assignor.name} too; rename one")
        found[assignor.name] = assignor
    return tuple(found.values()) or tuple(ASSIGNORS.values())


def own_assignor(text: str) -> Assignor:
    """Return an assignor of the class that `package.module:Class` names; UnusableAssignor says what it lacks."""
    module_name, _, class_name = text.partition(":")
    parts = [*module_name.split("."), *class_name.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise UnusableAssignor(f"assignor {text}: write a class of your own as {FORM}")
    module = _module(text, module_name)
    made = _made(text, _class(text, module, class_name))
    return OwnAssignor(
        made,
        text,
        _name(text, made),
        getattr(made, "is_cooperative", False) is True,
        getattr(made, "is_server_side", False) is True,
    )


def _module(text: str, name: str) -> ModuleType:
    here = str(Path.cwd())
    if not {here, ""} & set(sys.path):
        # At the end: a file here must never hide a module that the program itself still has to load.
        sys.path.append(here)
    try:
        with _told(f"assignor {text}: importing {name} fails"):
            return importlib.import_module(name)
    except UnusableAssignor as error:
        missing = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
        if missing is None or not f"{name}.".startswith(f"{missing}."):
            raise
        raise UnusableAssignor(
            f"assignor {text}: there is no module {missing} in {here}, nor where Python looks for modules; "
            "run it from the folder that holds it, or name that folder in PYTHONPATH"
        ) from error


def _class(text: str, module: ModuleType, name: str) -> type:
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type):
        return found
    if found is not None:
        raise UnusableAssignor(f"assignor {text}: {name} is no class but {type(found).__name__}; name its class")
    there = [each for each, value in vars(module).items() if isinstance(value, type) and hasattr(value, "assign")]
    near = get_close_matches(name, there, n=1)
    hint = f"did you mean {near[0]}?" if near else f"classes there with assign(): {', '.join(sorted(there)) or 'none'}"
    raise UnusableAssignor(f"assignor {text}: {module.__name__} has no class {name}; {hint}")


def _made(text: str, of: type) -> Assignor:
    with _told(f"assignor {text}: {of.__name__}() fails, and it is made without arguments"):
        made: Assignor = of()
    assign = getattr(made, "assign", None)
    if not callable(assign):
        raise UnusableAssignor(f"assignor {text}: {of.__name__} has no method assign(members, topics)")
    try:
        inspect.signature(assign).bind([], {})
    except (TypeError, ValueError) as error:
        raise UnusableAssignor(f"assignor {text}: assign must take members and topics: {error}") from error
    hook = getattr(made, ON_ASSIGNMENT, None)
    try:
        if hook is not None:
            inspect.signature(hook).bind(None)
    except (TypeError, ValueError) as error:
        raise UnusableAssignor(f"assignor {text}: on_assignment must take what was received: {error}") from error
    return made


def _name(text: str, made: object) -> str:
    with _told(f"assignor {text}: its name fails"):
        name = getattr(made, "name", None)
    if not isinstance(name, str) or not name:
        given = (
            "has none" if name is None else "has a method: make it a property" if callable(name) else f"has {name!r}"
        )
        raise UnusableAssignor(f"assignor {text}: it needs a name, a text, under which it is shown; it {given}")
    if name in ASSIGNORS:
        raise UnusableAssignor(f"assignor {text}: it is called {name}, which is Kafka's own; give it another name")
    return name


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell in one line what a user's code raised; what it prints goes to stderr."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:  # a user's own code can raise anything; it is theirs to read
        first = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UnusableAssignor(f"{what}: {first}") from error
