"""Changes of topics, and what each does to records on real brokers, written by hand for `test_topic_changes`.

The brokers have tiered storage. A topic of its own is made for each case, with `base` as its configs and RECORDS
records of 10 kB.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

RECORDS, RECORD_BYTES = 300, 10_000
YEAR, DAY = "31536000000", "86400000"
PLAIN = {"retention.ms": YEAR, "segment.bytes": "1048576"}
TIERED = {**PLAIN, "remote.storage.enable": "true", "local.retention.ms": "1000"}
COMPACTED = {**PLAIN, "cleanup.policy": "compact", "retention.ms": "1000"}
DROPPED = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}
DESTROYS, IRREVERSIBLE, AVAILABILITY, CLIENTS, HARMLESS = (
    "destroys", "irreversible", "availability", "clients", "harmless"
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A change: its class, or None where Kafka refuses it; `is_losing`: records are gone a while after it.

    `spec` is written beside `config`, whose keys files do not judge (`customConfigs`); a topic without `base` does not
    exist before.
    """

    name: str
    kind: str | None
    config: Mapping[str, str] = field(default_factory=dict)
    base: Mapping[str, str] | None = field(default_factory=lambda: PLAIN)
    spec: str = ""
    is_losing: bool = False


REFUSED = (
    Case("mistyped", None, {"retention.sm": "3000"}),
    Case("mistyped-and-grown", None, {"retention.sm": "3000"}, spec="partitions: 3"),
    Case("below-the-range", None, {"retention.ms": "-5"}),
    Case("too-small-segments", None, {"segment.bytes": "100"}),
    Case("gone-since-kafka-4", None, {"message.format.version": "2.8"}),
    Case("made-mistyped", None, {"retention.sm": "3000"}, None),
    Case("untiered", None, {"remote.storage.enable": "false"}, TIERED),
    Case("untiered-by-default", None, {"remote.storage.enable": "null"}, TIERED),
    Case("untiered-and-grown", None, {"remote.storage.enable": "false"}, TIERED, "partitions: 3"),
    Case("tiered-and-compacted", None, {"cleanup.policy": "compact"}, TIERED),
    Case("tiered-and-both", None, {"cleanup.policy": '"compact,delete"'}, TIERED),
    Case("compacted-and-tiered", None, {"remote.storage.enable": "true"}, COMPACTED),
    Case("local-above-all", None, {"local.retention.ms": "800000000000"}, TIERED),
    Case("all-below-local", None, {"retention.ms": "500"}, TIERED),
    Case("local-bytes-above-all", None, {"retention.bytes": "50", "local.retention.bytes": "100"}, TIERED),
    Case("copies-nothing", None, {"remote.log.copy.disable": "true"}, TIERED),
    Case("lags-cross", None, {"min.compaction.lag.ms": "1000", "max.compaction.lag.ms": "500"}),
    Case(
        "lags-cross-and-grown", None, {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}, spec="partitions: 2"
    ),
    Case("made-compacted-and-tiered", None, {"remote.storage.enable": "true", "cleanup.policy": "compact"}, None),
    Case("made-with-crossed-lags", None, {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}, None),
)
LOSSY = (
    Case("tier-dropped", DESTROYS, DROPPED, TIERED, is_losing=True),
    Case(
        "tier-dropped-by-default",
        DESTROYS,
        {"remote.storage.enable": "null", "remote.log.delete.on.disable": "true"},
        TIERED,
        is_losing=True,
    ),
    Case("tier-shorter", DESTROYS, {"retention.ms": "1000"}, TIERED, is_losing=True),
    Case("tier-smaller", DESTROYS, {"retention.bytes": "1048576"}, TIERED, is_losing=True),
    Case("shorter", DESTROYS, {"retention.ms": "1000"}, is_losing=True),
    Case("smaller", DESTROYS, {"retention.bytes": "1048576"}, is_losing=True),
    Case("shorter-and-grown", DESTROYS, {"retention.ms": "1000"}, spec="partitions: 2", is_losing=True),
    Case("an-hour", DESTROYS, {"retention.ms": "1h"}),
    Case("a-day", DESTROYS, {"retention.ms": DAY}),
    Case("a-week-by-default", DESTROYS, {"retention.ms": "null"}),
    Case("bounded", DESTROYS, {"retention.bytes": "1GiB"}),
    Case("compacted", DESTROYS, {"cleanup.policy": "compact"}),
    Case("compacted-too", DESTROYS, {"cleanup.policy": '"compact,delete"'}),
    Case("no-longer-compacted", DESTROYS, {"cleanup.policy": "delete"}, COMPACTED),
    Case("gone", DESTROYS, spec="state: absent", is_losing=True),
)
OTHERS = (
    Case("grown", IRREVERSIBLE, spec="partitions: 3"),
    Case("grown-and-longer", IRREVERSIBLE, {"retention.ms": "-1"}, spec="partitions: 2"),
    Case("two-in-sync", AVAILABILITY, {"min.insync.replicas": "2"}),
    Case("small-messages", CLIENTS, {"max.message.bytes": "1000"}),
    Case("stamped-by-brokers", CLIENTS, {"message.timestamp.type": "LogAppendTime"}),
    Case("longer", HARMLESS, {"retention.ms": "-1"}),
    Case("twice-as-long", HARMLESS, {"retention.ms": "63072000000"}),
    Case("larger-segments", HARMLESS, {"segment.bytes": "2MiB"}),
    Case("segments-of-a-day", HARMLESS, {"segment.ms": DAY}),
    Case("flushed", HARMLESS, {"flush.messages": "1000"}),
    Case("larger-messages", HARMLESS, {"max.message.bytes": "2000000"}),
    Case("finer-index", HARMLESS, {"index.interval.bytes": "2048"}),
    Case("slow-to-delete-files", HARMLESS, {"file.delete.delay.ms": "90000"}),
    Case("local-longer", HARMLESS, {"local.retention.ms": "60000"}, TIERED),
    # Kafka turns it off again only by deleting what is in the tier.
    Case("tiered", IRREVERSIBLE, {"remote.storage.enable": "true", "local.retention.ms": "1000"}),
    Case("made", HARMLESS, {"retention.ms": "1000"}, None),
    Case("made-tiered", HARMLESS, {"remote.storage.enable": "true"}, None),
)
CASES = (*REFUSED, *LOSSY, *OTHERS)
FEW = tuple(
    case
    for case in CASES
    if case.name in {"untiered", "mistyped-and-grown", "made-mistyped", "tier-dropped", "grown", "longer"}
)
