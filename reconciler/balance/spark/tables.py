"""The balance's tables on disk: what the report shows, and all topics, for other tools."""

from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.folders import replaced_folder
from reconciler.balance.spark.jobs_balance import Balance
from reconciler.balance.spark.local_files import write_parquet
from reconciler.balance.spark.replica_load import KEYS, NO_BROKER, NO_TEXT

FIGURES, EVENNESS = "figures", "evenness"
_SKEW_KEYS = ("side", "cluster", "measure", "statistic")


def write_tables(balance: Balance, out: Path, mark: str) -> None:
    """Write `figures` (every level, every topic) and `evenness` as Parquet, sorted by their keys.

    The folder is replaced as a whole, and the file `mark` in it says what wrote it. What does not apply, or is not
    known, is null.
    """
    figures = balance.figures.withColumns(
        {
            "broker": F.nullif("broker", F.lit(NO_BROKER)),
            **{name: F.nullif(name, F.lit(NO_TEXT)) for name in ("rack", "log_dir", "topic")},
        }
    )
    evenness = balance.skews.withColumn("statistic", F.nullif("statistic", F.lit(NO_TEXT)))
    with replaced_folder(out, mark) as folder:
        for name, table, keys in ((FIGURES, figures, KEYS), (EVENNESS, evenness, _SKEW_KEYS)):
            whole = table.repartition(1).sortWithinPartitions(*keys)
            write_parquet(whole, folder / name)
        (folder / mark).write_text("written by reconciler balance\n", encoding="utf-8")
