"""Finds slow brokers by Cruise Control's method: log flushes that take long, also for each byte that comes in.

The method is that of `SlowBrokerFinder` of linkedin/cruise-control (BSD 2-Clause), written anew in Spark's columns. Two
figures of each broker are looked at: the 99.9th percentile of its log flush time, and that over all bytes it takes in.
Each is abnormal where it is above three times the 90th percentile of the broker's own history, or above three times the
median of all brokers that serve traffic then. A broker of which both are abnormal in one window of five minutes gets a
point; a window in which they are not takes one away. With 5 points it is slow (Cruise Control demotes it), with 50, the
most, it is so persistently (Cruise Control removes it).

Two things differ. The history is the day before, and needs ten windows as there: twenty windows of five minutes, Cruise
Control's, know no night. And a flush of more than 20 milliseconds may be slow, not only one of more than a second, so
that a fast disk that has become ten times slower is named too.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.spark.normalise import MICROS

WINDOW_SECONDS, HOUR_SECONDS, HISTORY_HOURS = 300, 3600, 24
HISTORY_SHARE, HISTORY_MARGIN, LEAST_HISTORY = 0.9, 3.0, 10
PEER_MARGIN, LEAST_PEERS = 3.0, 2
SLOW_SCORE, MOST_SCORE = 5, 50
LEAST_FLUSH_MS = 20.0
# A shorter flush says nothing of the disk: Cruise Control leaves it out of the history too.
LEAST_HISTORY_MS = 5.0
# With less traffic than a mebibyte a second, a time for each byte says nothing.
LEAST_BYTES = 1024 * 1024
_FIGURES = ("flush", "for_bytes")


def slow_brokers(samples: DataFrame) -> DataFrame:
    """Return each time that a broker was slow, of samples of brokers (`history_samples.broker_samples`).

    Columns: cluster, broker, since and until (seconds since 1970; until null: it lasts), score (the most it came to),
    flush, peers, bytes (means over the slow windows: milliseconds, the brokers' median, bytes a second in).
    """
    windows = samples.transform(_windows)
    peers = windows.groupBy("cluster", "window").agg(
        F.count(F.lit(1)).alias("brokers"), *(F.median(name).alias(f"{name}_peers") for name in _FIGURES)
    )
    beside = (
        windows.join(_history(windows), on=["cluster", "broker", "hour"], how="left")
        .join(peers, on=["cluster", "window"], how="inner")
        .withColumn("is_slow", _is_abnormal("flush") & _is_abnormal("for_bytes") & (F.col("flush") > LEAST_FLUSH_MS))
    )
    return beside.transform(_scored)


def _windows(samples: DataFrame) -> DataFrame:
    """Return the means of each broker's windows of five minutes in which it takes in enough."""
    second = F.floor(F.unix_micros("ts") / MICROS)
    window = second - F.pmod(second, F.lit(WINDOW_SECONDS))
    taken = F.col("bytes_in") + F.coalesce("replication_bytes_in", F.lit(0.0))
    means = samples.groupBy("cluster", "broker", window.alias("window")).agg(
        F.round(F.avg("log_flush_ms"), 6).alias("flush"), F.round(F.avg(taken), 3).alias("bytes")
    )
    return means.where(F.col("flush").isNotNull() & (F.col("bytes") >= LEAST_BYTES)).select(
        "*",
        (F.col("flush") / F.col("bytes")).alias("for_bytes"),
        F.floor(F.col("window") / HOUR_SECONDS).alias("hour"),
    )


def _history(windows: DataFrame) -> DataFrame:
    """Return of each hour the 90th percentiles of the broker's windows in the day before it."""
    values = {
        "flush": F.collect_list(F.when(F.col("flush") > LEAST_HISTORY_MS, F.col("flush"))),
        "for_bytes": F.collect_list("for_bytes"),
    }
    hours = windows.groupBy("cluster", "broker", "hour").agg(*(value.alias(name) for name, value in values.items()))
    day = Window.partitionBy("cluster", "broker").orderBy("hour").rangeBetween(-HISTORY_HOURS, -1)
    lists = [F.sort_array(F.flatten(F.collect_list(name).over(day))).alias(name) for name in _FIGURES]
    return hours.select("cluster", "broker", "hour", *lists).select(
        "cluster", "broker", "hour", *(_percentile(name).alias(f"{name}_history") for name in _FIGURES)
    )


def _percentile(name: str) -> Column:
    """Return the percentile of a sorted list, interpolated linearly; null where it has too few values."""
    place = (F.size(name) - 1) * F.lit(HISTORY_SHARE)
    below = F.floor(place).cast("int")
    low, high = F.get(F.col(name), below), F.get(F.col(name), F.least(below + 1, F.size(name) - 1))
    return F.when(F.size(name) >= LEAST_HISTORY, low + (place - below) * (high - low))


def _is_abnormal(name: str) -> Column:
    value = F.col(name)
    is_for_itself = F.coalesce(value > F.col(f"{name}_history") * HISTORY_MARGIN, F.lit(col=False))
    is_for_peers = (F.col("brokers") >= LEAST_PEERS) & (value > F.col(f"{name}_peers") * PEER_MARGIN)
    return is_for_itself | is_for_peers


def _scored(windows: DataFrame) -> DataFrame:
    """Return each time in which the points of a broker came to SLOW_SCORE, from its first window to its last one."""
    suspects = windows.groupBy("cluster", "broker").agg(F.count_if("is_slow").alias("count"))
    some = suspects.where(F.col("count") >= SLOW_SCORE).select("cluster", "broker")
    one = F.struct("window", F.col("is_slow"), "flush", F.col("flush_peers").alias("peers"), "bytes")
    lists = (
        windows.join(some, on=["cluster", "broker"], how="left_semi")
        .groupBy("cluster", "broker")
        .agg(F.sort_array(F.collect_list(one)).alias("windows"))
    )
    folded = lists.select("cluster", "broker", F.explode(F.expr(_FOLD)).alias("time"))
    return folded.select(
        "cluster",
        "broker",
        "time.since",
        "time.until",
        "time.most",
        *(F.round(F.col(f"time.{name}") / F.col("time.count"), 3).alias(name) for name in ("flush", "peers", "bytes")),
    ).withColumnRenamed("most", "score")


_FIELDS = {
    "since": "bigint", "until": "bigint", "score": "int", "most": "int", "count": "int", "flush": "double",
    "peers": "double", "bytes": "double",
}  # fmt: skip
_TIME = f"struct<{','.join(f'{name}:{kind}' for name, kind in _FIELDS.items())}>"
_NONE = f"cast(null as {_TIME})"


def _changed(**fields: str) -> str:
    """Return the time that is open, in SQL, with these fields changed."""
    each = (f"'{name}', {fields.get(name, f'told.open.{name}')}" for name in _FIELDS)
    return f"named_struct({', '.join(each)})"


def _with(time: str) -> str:
    """Return the times that are over, in SQL, and this one if it came to enough points."""
    return f"CASE WHEN told.open.most >= {SLOW_SCORE} THEN concat(told.done, array({time})) ELSE told.done END"


_MORE = f"least(coalesce(told.open.score, 0) + 1, {MOST_SCORE})"
_SLOW = _changed(
    since="coalesce(told.open.since, w.window)",
    until="cast(null as bigint)",
    score=_MORE,
    most=f"greatest(coalesce(told.open.most, 0), {_MORE})",
    count="coalesce(told.open.count, 0) + 1",
    **{name: f"coalesce(told.open.{name}, 0D) + w.{name}" for name in ("flush", "peers", "bytes")},
)
_UNTIL = "coalesce(told.open.until, w.window)"
# Points of a window follow from those of the one before: a fold over the windows in order. What is over with too few
# points is dropped; the list that grows is as long as the times in which the broker was slow.
_FOLD = f"""
aggregate(
  windows,
  named_struct('open', {_NONE}, 'done', cast(array() as array<{_TIME}>)),
  (told, w) -> CASE
    WHEN w.is_slow THEN named_struct('open', {_SLOW}, 'done', told.done)
    WHEN told.open IS NULL THEN told
    WHEN told.open.score > 1
      THEN named_struct('open', {_changed(until=_UNTIL, score="told.open.score - 1")}, 'done', told.done)
    ELSE named_struct('open', {_NONE}, 'done', {_with(_changed(until=_UNTIL, score="0"))})
  END,
  told -> {_with("told.open")}
)
"""
