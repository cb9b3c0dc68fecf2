"""Declares the options of a Spark job, which `loads` and `balance` share."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TypeVar

import click
from click.core import ParameterSource

from reconciler.command.values import DURATION

Result = TypeVar("Result")
DAYS_HELP = "With --lake: of its last so many days."
MOST_DAYS = 31


def is_bucket_given() -> bool:
    """Return whether --bucket was named; a lake has its own length."""
    return click.get_current_context().get_parameter_source("bucket") is not ParameterSource.DEFAULT


def spark_job(bucket_help: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a verb the options of a job; it is called with `job`, made of them and of its paths `samples` and `more`."""

    def decorate(command: Callable[..., Result]) -> Callable[..., Result]:
        @click.option("--bucket", type=DURATION, default="60s", show_default=True, show_envvar=True, help=bucket_help)
        @click.option(
            "--master", metavar="URL", show_envvar=True, help="Spark master [default: spark-submit's, else local[*]]."
        )
        @click.option("--driver-memory", metavar="SIZE", show_envvar=True, help="Memory of Spark's driver, such as 4g.")
        @wraps(command)
        def with_job(
            *arguments: object,
            samples: tuple[str, ...],
            more: tuple[str, ...],
            bucket: timedelta,
            master: str | None,
            driver_memory: str | None,
            **options: object,
        ) -> Result:
            from reconciler.balance.workflow.loads import SparkJob

            if more and not samples:
                raise click.UsageError(f"{more[0]} is no option; paths follow --samples.")
            if bucket < timedelta(seconds=1):
                raise click.UsageError("--bucket must be at least 1s.")
            seconds, has_progress = int(bucket.total_seconds()), sys.stderr.isatty()
            job = SparkJob(datetime.now(UTC), (*samples, *more), seconds, master, driver_memory, has_progress)
            return command(*arguments, job=job, **options)

        return with_job

    return decorate
