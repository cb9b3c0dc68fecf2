"""Tells what a series measures by its name: of exporters that are known, of JMX beans, and of a user's own rules.

Exporters and their rule files spell one metric in many ways, so names are compared without case and separators, with
the label `name` behind them. The names of recorded rules are their author's: they are read word by word.
"""

from dataclasses import dataclass

from pyspark.sql import Column
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


@dataclass(frozen=True, slots=True)
class Measured:
    """What series measure, as columns: `log`, a size or an offset, or `rate`; None each for a series of neither."""

    log: Column
    rate: Column
    is_counter: Column


def measured(name: Column, label: Column, given: str) -> Measured:
    """Return what a series of that name measures, with its label `name` or None; without a name, what was `given`."""
    plain = F.coalesce(
        F.lower(F.regexp_replace(F.concat(name, F.coalesce(label, F.lit(""))), "[^A-Za-z0-9]", "")), F.lit("")
    )
    nameless = F.nullif(F.lit(given), F.lit(""))
    is_log = plain.rlike(_LOG) | plain.rlike(_OFFSET)
    is_rate = plain.rlike(TOPIC_RATE)
    log = F.when(plain.rlike(_OFFSET), END_OFFSET).when(
        is_log, F.when(F.regexp_extract(plain, _LOG, 1) == "size", SIZE).otherwise(END_OFFSET)
    )
    rate = F.create_map(*(F.lit(each) for pair in _RATE_OF.items() for each in pair))[
        F.regexp_extract(plain, TOPIC_RATE, 2)
    ]
    own = _by_words(F.lower(F.regexp_replace(name, "[^A-Za-z0-9]+", "_")))
    return Measured(
        F.when(name.isNull(), F.when(~nameless.isin(*RATES), nameless)).when(is_log, log).when(~is_rate, own.log),
        F.when(name.isNull(), F.when(nameless.isin(*RATES), nameless)).when(is_rate, rate).when(~is_log, own.rate),
        F.when(is_rate, _is_counter(plain)).otherwise(F.coalesce(own.is_counter, F.lit(col=False))),
    )


def _is_counter(plain: Column) -> Column:
    """Return whether that counts from a broker's start on: as Confluent's rules name it, a bare `persec` does too."""
    form = F.concat(F.regexp_extract(plain, TOPIC_RATE, 1), F.regexp_extract(plain, TOPIC_RATE, 4))
    return form.rlike("total|count") | ((form == "") & (F.regexp_extract(plain, TOPIC_RATE, 3) != ""))


def _by_words(words: Column) -> Measured:
    """Return what the words of a user's own name say; a rate of end offsets is one of messages."""
    is_other = _has(words, _OTHERS)
    is_a_second = _has(words, _A_SECOND)
    is_counted = _has(words, _COUNTED) & ~is_a_second
    found = F.when(is_other, F.lit(None).cast("string"))
    for measure, spelt in _WORDS.items():
        found = found.when(_has(words, spelt), measure)
    is_rate = found.isin(*RATES)
    return Measured(
        F.when(~is_rate & ~is_a_second & ~is_counted, found),
        F.when(is_rate & (is_a_second | is_counted), found).when((found == END_OFFSET) & is_a_second, "messages_in"),
        is_counted,
    )


def _has(words: Column, spelt: str) -> Column:
    return words.rlike(f"(?:^|_)(?:{spelt})(?:_|$)")
