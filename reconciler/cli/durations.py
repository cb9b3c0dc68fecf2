"""A length of time on the command line, with its unit, as the YAML writes it."""

import re
from datetime import timedelta

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PATTERN = re.compile(r"(\d{1,9})([smhd])")


class Duration(click.ParamType[timedelta]):
    """`90s`, `30m`, `4h`, `2d`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the length of time; a bare number is refused."""
        found = _PATTERN.fullmatch(str(value))
        if found is None:
            self.fail(
                f"{value!r} is no length of time: write a number and a unit, such as 90s, 30m, 4h, 2d.", param, ctx
            )
        return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


DURATION = Duration()
