"""Declares the options of a Spark job, which `loads` and `balance` share."""

import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from reconciler.command.terminal import hide, tell
from reconciler.command.values import DURATION
from reconciler.command.verbs import option

if TYPE_CHECKING:
    from reconciler.balance.spark.work import Work
    from reconciler.model.problem import Problem

Result = TypeVar("Result")
MEASURES = ("bytes_in", "bytes_out", "messages_in", "size_bytes", "end_offset")
MEASURE_HELP = (
    "What series of Prometheus measure that have no name, as rate() answers: bytes_in, bytes_out, messages_in, "
    "size_bytes or end_offset [default: the one that the file's name holds]."
)
MASTER_HELP = "Spark master, or sc://HOST:PORT of a Spark Connect server [default: spark-submit's, else local[*]]."
CONF_HELP = "Setting of Spark, beside ours; those that figures depend on are refused."


class Measure(click.ParamType[str]):
    """A figure of a sample, by the name of its column."""

    name = "measure"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; for an unknown one, name the nearest."""
        from difflib import get_close_matches

        if value not in MEASURES:
            near = get_close_matches(str(value).lower(), MEASURES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(MEASURES)}."
            self.fail(f"{value!r} is no figure of samples: {hint}", param, ctx)
        return str(value)


def spark_job(bucket_help: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a verb the options of a job; it is called with `job`, made of them and of its paths `samples` and `more`."""

    def decorate(command: Callable[..., Result]) -> Callable[..., Result]:
        @click.option("--bucket", type=DURATION, default="60s", show_default=True, show_envvar=True, help=bucket_help)
        @click.option("--measure", type=Measure(), metavar="NAME", show_envvar=True, help=MEASURE_HELP)
        @click.option("--master", metavar="URL", show_envvar=True, help=MASTER_HELP)
        @click.option("--driver-memory", metavar="SIZE", show_envvar=True, help="Memory of Spark's driver, such as 4g.")
        @option("--conf", metavar="KEY=VALUE", multiple=True, callback=_conf, help=CONF_HELP)
        @wraps(command)
        def with_job(
            *arguments: object,
            samples: tuple[str, ...],
            more: tuple[str, ...],
            bucket: timedelta,
            measure: str | None,
            master: str | None,
            driver_memory: str | None,
            conf: tuple[str, ...],
            **options: object,
        ) -> Result:
            from reconciler.balance.spark.settings import SparkChoice, is_submitted
            from reconciler.balance.workflow.loads import SparkJob

            if more and not samples:
                raise click.UsageError(f"{more[0]} is no option; paths follow --samples.")
            if bucket < timedelta(seconds=1):
                raise click.UsageError("--bucket must be at least 1s.")
            seconds, has_progress = int(bucket.total_seconds()), sys.stderr.isatty()
            # spark-submit puts stderr into stdout, where a report may be.
            tell_work = None if is_submitted(os.environ) else _tell_work
            spark = SparkChoice(master, driver_memory, has_progress, _added(conf), tell_work, _tell_problem)
            job = SparkJob(datetime.now(UTC), (*samples, *more), seconds, spark, measure)
            return command(*arguments, job=job, **options)

        return with_job

    return decorate


def _conf(_context: click.Context, _option: click.Parameter, written: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what has no key; it is not repeated, since it may be a secret."""
    for number, each in enumerate(written, 1):
        if not each.partition("=")[0].strip() or "=" not in each:
            raise click.BadParameter(f"number {number} is not KEY=VALUE, such as spark.executor.memory=4g.")
    return written


def _added(written: tuple[str, ...]) -> Mapping[str, str]:
    from reconciler.balance.spark.settings import conf_of, secrets_of

    hide(secrets_of(written))
    return conf_of(written)


def _tell_problem(problem: "Problem") -> None:
    from reconciler.render.as_text import problem_line

    tell(problem_line(problem))


def _tell_work(work: "Work") -> None:
    from reconciler.model.words import counted, number, size

    seconds = number(round(work.cpu_seconds))
    tell(f"Spark: {counted(work.jobs, 'job')}, {size(work.shuffled_bytes)} shuffled, {seconds} CPU s in tasks.")
