"""Reads the values of options: lengths of time and rates with their units, and which plan was reviewed.

Values have the units that the YAML has; a bare number is refused.
"""

import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click

from reconciler.model.budget import Budget
from reconciler.model.loads import Statistic

Command = TypeVar("Command", bound=Callable[..., object])
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d{1,9})([smhd])")
STATISTICS = click.Choice([statistic.value for statistic in Statistic])
STATISTIC_HELP = "Which rate counts: that of the cluster's busiest time, or the mean."
NO_LOG_DIR = "warning: no log dir is named: no new replica goes to a broker known to have several (KR827)"
"""What `--log-dirs` of show and of apply both say."""
INSIDE_THROTTLE = (
    "Some stages move replicas between the log dirs of one broker: give kafka-reassign-partitions"
    " --replica-alter-log-dirs-throttle for these, in bytes per second."
)


class Duration(click.ParamType[timedelta]):
    """`90s`, `30m`, `4h`, `2d`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the length of time; a bare number is refused."""
        found = _DURATION.fullmatch(str(value))
        if found is None:
            self.fail(
                f"{value!r} is no length of time: write a number and a unit, such as 90s, 30m, 4h, 2d.", param, ctx
            )
        return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


DURATION = Duration()


class Rate(click.ParamType[int]):
    """`50MiB/s`, as whole bytes per second."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes per second; a bare number and a rate of nothing are refused."""
        from reconciler.files.units import parse_rate

        try:
            found = value if isinstance(value, int) else parse_rate(str(value))
        except ValueError:
            found = 0
        if found < 1:
            self.fail(f"{value!r} is no rate: write a number and a unit, such as 50MiB/s, 800kB/s.", param, ctx)
        return found


RATE = Rate()


class Share(click.ParamType[float]):
    """`80%`, as a part of 1."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share; a bare number is refused, and so is more than all, or nothing."""
        from reconciler.files.units import parse_percent

        try:
            found = value if isinstance(value, float) else float(parse_percent(str(value)))
        except ValueError:
            found = 0.0
        if not 0 < found <= 1:
            self.fail(f"{value!r} is no share: write percents, such as 80%.", param, ctx)
        return found


SHARE = Share()


class BudgetOf(click.ParamType[Budget]):
    """`2TiB`, or `6h`: what may be copied, or how long it may take."""

    name = "budget"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Budget:
        """Return the budget; a bare number and a time of nothing are refused."""
        from reconciler.files.units import parse_bytes

        if isinstance(value, Budget):
            return value
        found = _DURATION.fullmatch(str(value))
        if found is not None and int(found[1]):
            return Budget(seconds=int(found[1]) * _SECONDS[found[2]])
        try:
            return Budget(bytes=parse_bytes(str(value)))
        except ValueError:
            self.fail(f"{value!r} is no budget: write bytes or a time with a unit, such as 2TiB, 6h.", param, ctx)


BUDGET = BudgetOf()


class _Digest(click.ParamType[str]):
    name = "digest"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the digest; the start of one is refused: others can make a plan whose digest begins so."""
        if _DIGEST.fullmatch(str(value)) is None:
            self.fail(f"{value!r} is no digest: write all of it, sha256: and 64 digits, as show prints it.", param, ctx)
        return str(value)


class _Demand(click.Option):
    """An option whose variable counts even where it is empty: what was to be checked must not pass unchecked."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        del ctx
        return os.environ.get(str(self.envvar))


def digest_option(verb: str) -> Callable[[Command], Command]:
    """Give a verb the option that says which plan was reviewed."""
    return click.option(
        "--digest",
        metavar="SHA256",
        type=_Digest(),
        help="Refuse a plan of any other digest than the one reviewed, sha256:...",
        cls=_Demand,
        envvar=f"RECONCILER_{verb.upper()}_DIGEST",
        show_envvar=True,
    )
