"""Recognises the measure of a series by its name: of exporters that are known, and of a user's own rules.

Exporters and their rule files spell one metric in many ways, so names are compared without case and separators, with
the label `name` behind them. The names of recorded rules are their author's: they are read word by word.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.model.exported import TOPIC_RATE
from reconciler.balance.spark.schemas import RATES

SIZE, END_OFFSET = "size_bytes", "end_offset"
# kafka.log:type=Log,name=Size, of each replica's broker.
_LOG = r"^kafkalog(?:log)?(?:value)?(size|logendoffset)(?:value)?$"
# kafka-exporter's, and KMinion's, whose prefix is a setting.
_OFFSET = r"^kafkatopicpartitioncurrentoffset$|^[a-z0-9]*kafkatopicpartitionhighwatermark$"
_RATE_OF = {"bytesin": "bytes_in", "bytesout": "bytes_out", "messagesin": "messages_in"}
_SECOND = "s|sec|second|seconds"
_WORDS = {
    "bytes_in": rf"bytes_?in(?:_?per_?(?:{_SECOND}))?",
    "bytes_out": rf"bytes_?out(?:_?per_?(?:{_SECOND}))?",
    "messages_in": rf"(?:messages|records)_?in(?:_?per_?(?:{_SECOND}))?",
    SIZE: "log_?size|size_?bytes|partition_?size",
    END_OFFSET: "log_?end_?offset|end_?offset|high_?water_?mark|partition_current_offset",
}
# Copies between brokers, what was refused, what consumers have read, and growth over a window that no name tells.
_OTHERS = (
    "replication|reassignment|reassigned|rejected|failed|throttled?|consumer|consumergroup|group|lag|increase|delta"
)
_A_SECOND = rf"i?rate|i?rate_?\d+[smhd]?|per_?(?:{_SECOND})|\w+_?per_?(?:{_SECOND})|deriv|deriv_?\d+[smhd]?"
_COUNTED = "total|count"


def measured(series: DataFrame, name: Column, label: Column, given: str) -> DataFrame:
    """Add what series of that name, with its label `name` or None, measure: a `log`, a `rate`, or neither.

    Without a name it is what was `given`. `is_counter`: whether the rate is counted up to. Each step is a column of its
    own: in one expression they would be more than Java compiles.
    """
    plain = F.lower(F.regexp_replace(F.concat(name, F.coalesce(label, F.lit(""))), "[^A-Za-z0-9]", ""))
    words = F.lower(F.regexp_replace(name, "[^A-Za-z0-9]+", "_"))
    return (
        series.withColumns({"plain": F.coalesce(plain, F.lit("")), "words": F.coalesce(words, F.lit(""))})
        .withColumns({"is_nameless": name.isNull(), **_known(F.col("plain")), **_own(F.col("words"))})
        .withColumns({"log": _log(given), "rate": _rate(given), "is_counter": _is_counter()})
        .drop("plain", "words", "is_nameless", "known", "form", "persec", "own", "is_a_second", "is_counted")
    )


def is_used() -> Column:
    """Return whether what was `measured` tells of a topic: a rate, or the log of a partition."""
    is_log = F.col("log").isNotNull() & F.col("partition").isNotNull()
    return F.col("topic").isNotNull() & (is_log | F.col("rate").isNotNull())


def _known(plain: Column) -> dict[str, Column]:
    """Return what exporters' names say: the measure, and how its rate is spelt."""
    of_log = F.regexp_extract(plain, _LOG, 1)
    of_rate = F.regexp_extract(plain, TOPIC_RATE, 2)
    known = F.when(plain.rlike(_OFFSET) | (of_log == "logendoffset"), END_OFFSET).when(of_log == "size", SIZE)
    for spelt, rate in _RATE_OF.items():
        known = known.when(of_rate == spelt, rate)
    form = F.concat(F.regexp_extract(plain, TOPIC_RATE, 1), F.regexp_extract(plain, TOPIC_RATE, 4))
    return {"known": known, "form": form, "persec": F.regexp_extract(plain, TOPIC_RATE, 3)}


def _own(words: Column) -> dict[str, Column]:
    """Return what the words of a user's own name say."""
    found = F.when(_has(words, _OTHERS), F.lit(None).cast("string"))
    for measure, spelt in _WORDS.items():
        found = found.when(_has(words, spelt), measure)
    return {"own": found, "is_a_second": _has(words, _A_SECOND), "is_counted": _has(words, _COUNTED)}


def _log(given: str) -> Column:
    known, own = F.col("known"), F.col("own")
    is_plain = ~own.isin(*RATES) & ~F.col("is_a_second") & ~F.col("is_counted")
    return (
        F.when(F.col("is_nameless"), F.lit(None if given in RATES else given or None).cast("string"))
        .when(known.isNotNull(), F.when(~known.isin(*RATES), known))
        .when(is_plain, own)
    )


def _rate(given: str) -> Column:
    """Return the rate; that of an end offset is one of messages."""
    known, own = F.col("known"), F.col("own")
    is_rate = own.isin(*RATES) & (F.col("is_a_second") | F.col("is_counted"))
    return (
        F.when(F.col("is_nameless"), F.lit(given if given in RATES else None).cast("string"))
        .when(known.isNotNull(), F.when(known.isin(*RATES), known))
        .when(is_rate, own)
        .when((own == END_OFFSET) & F.col("is_a_second"), "messages_in")
    )


def _is_counter() -> Column:
    """Return whether that counts from a broker's start on: as Confluent's rules name it, a bare `persec` does too."""
    is_bare = (F.col("form") == "") & (F.col("persec") != "")
    of_known = F.col("form").rlike("total|count") | is_bare
    return F.when(F.col("known").isNotNull(), of_known).otherwise(F.col("is_counted") & ~F.col("is_a_second"))


def _has(words: Column, spelt: str) -> Column:
    return words.rlike(f"(?:^|_)(?:{spelt})(?:_|$)")
