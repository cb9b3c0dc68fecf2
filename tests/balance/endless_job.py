"""The program, whose Spark never comes to an end with the loads: `python -m balance.endless_job ARGUMENTS`.

All else is its own: how it starts Spark, where it writes, what it does at a signal. Meanwhile a thread drops objects of
Java one after the other, so that py4j's own thread, which tells Java of them, always waits for an answer.
"""

from contextlib import suppress
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING

from reconciler.balance.spark import loads_job
from reconciler.cli.main import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _endless(spark: "SparkSession") -> "DataFrame":
    return spark.range(10**18).where("hash(id) = id AND id > 10")


def _no_partitions(spark: "SparkSession", *_: object) -> "tuple[SparkSession, tuple[DataFrame, ...]]":
    return spark, (_endless(spark).persist(),)


def _drop_objects(spark: "SparkSession") -> None:
    with suppress(Exception):  # Java has ended
        while True:
            spark._jvm.java.lang.Object()  # type: ignore[union-attr]


def _never_measured(spark: "SparkSession", *_: object) -> SimpleNamespace:
    Thread(target=_drop_objects, args=(spark,), daemon=True).start()
    return SimpleNamespace(loads=_endless(spark), found=_endless(spark), clusters=_endless(spark))


def main() -> None:
    """Be the program."""
    loads_job._partitions = _no_partitions  # type: ignore[assignment]
    loads_job.measured = _never_measured  # type: ignore[assignment,attr-defined]
    run()


if __name__ == "__main__":
    main()
