"""Makes the forecast of each disk from its history: a row a disk comes to the driver, and goes back to the figures."""

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.arrow_tables import DOUBLE, INT, LONG, TEXT, YES_NO, arrow_table
from reconciler.balance.model.balance_report import Level
from reconciler.balance.model.disk_forecast import DiskHistory, foretold
from reconciler.balance.spark.figures import DAYS_UNTIL_FULL, SIZES_AHEAD
from reconciler.balance.spark.replica_load import KEYS
from reconciler.balance.spark.spellings import in_spark

_DISKS = (Level.LOG_DIR.value, Level.BROKER.value)
_NO_CHANGES = (None,) * len(SIZES_AHEAD)
_COLUMNS = {
    **{key: INT if key == "broker" else TEXT for key in KEYS},
    **dict.fromkeys(DAYS_UNTIL_FULL, DOUBLE),
    **dict.fromkeys(SIZES_AHEAD, LONG),
    "is_foretold": YES_NO,
}


def disk_forecasts(histories: DataFrame, figures: DataFrame) -> DataFrame:
    """Return the forecast of each log dir, broker, rack and cluster that has a history.

    Columns: the keys, DAYS_UNTIL_FULL, SIZES_AHEAD (less the size of today), is_foretold (true). Days are told of log
    dirs and brokers alone: the rest follows from them. `figures` tell what is free.
    """
    sizes = figures.where(F.col("level").isin(*_DISKS)).select(*KEYS, "free_bytes").collect()
    free = {_key(row): row.free_bytes for row in sizes}
    rows = sorted(_forecasts(histories.collect(), free))
    return in_spark(figures.sparkSession, arrow_table(_COLUMNS, rows))


def _forecasts(found: list[Row], free: Mapping[tuple[object, ...], int | None]) -> Iterator[tuple[object, ...]]:
    for row in found:
        key = _key(row)
        told = foretold(_history(row), free.get(key))
        changes = tuple(figure for change in told.changes for figure in change)
        yield *key, told.days, told.earliest, told.latest, *(changes or _NO_CHANGES), True


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in KEYS)


def _history(row: Row) -> DiskHistory:
    """Return the history; where only what is ahead is known, an empty one."""
    if "hours" not in row:
        return DiskHistory(ahead=tuple(row.ahead))
    names = ("hours", "grown_first", "grown_now", "standing_now", "grown_chance", "standing_chance")
    return DiskHistory(
        ahead=tuple(row.ahead),
        by_slot=tuple((slot.grown, slot.standing) for slot in row.by_slot),
        **{name: row[name] for name in names},
    )
