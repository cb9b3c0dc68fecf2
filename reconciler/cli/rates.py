"""A rate on the command line, with its unit, as the YAML writes it."""

import click


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
