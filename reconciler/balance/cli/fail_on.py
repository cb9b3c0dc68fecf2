"""Declares the option `--fail-on`, which `loads`, `balance` and `plan` share, and tells of gates that failed."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from reconciler.command.exits import Exit
from reconciler.command.terminal import tell
from reconciler.command.verbs import option
from reconciler.model.gates import Gate, WrongGate, parse_gate
from reconciler.model.problem import Problem

Command = TypeVar("Command", bound=Callable[..., object])


class _GateType(click.ParamType[Gate]):
    """`coverage<95%`."""

    name = "gate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Gate:
        """Return the gate; what could be meant otherwise is refused."""
        from reconciler.balance.model.load_report import Rule

        if isinstance(value, Gate):
            return value
        try:
            return parse_gate(str(value), [rule.value for rule in Rule])
        except WrongGate as wrong:
            self.fail(str(wrong), param, ctx)


def fail_on(text: str) -> Callable[[Command], Command]:
    """Give a verb the option; it is called with `fail_on`, a tuple of gates."""
    return option("--fail-on", metavar="GATE", multiple=True, type=_GateType(), help=text)


FAIL_ON_HELP = (
    "Exit with 3 where what was measured is worth less: coverage<95%, age>2h, or a rule by its name, as a share of "
    "samples (negative>1%) or a number (counterReset>0). The result is written all the same."
)


def tell_failures(problems: Sequence[Problem]) -> Exit:
    """Tell of the gates that failed, and return the exit code."""
    if not problems:
        return Exit.DONE
    from reconciler.render.as_text import problem_line

    tell("\n".join(map(problem_line, problems)), "auto")
    return Exit.REFUSED
