"""Holds every topic config of Kafka 3.9, 4.1 and 4.3: what each release takes, and what a change does.

Made by tests/model/topic_configs/make.py from the brokers' own classes and effects.toml beside it: never edit it here.
"""

from collections.abc import Mapping

from reconciler.model.config_rule import RELEASES, Kind, Rule, TopicConfig, release_of
from reconciler.model.effect import EffectClass


def default_of(key: str, kafka_version: str | None) -> str | None:
    """Return Kafka's own default of a key, None where that version has no such key."""
    rule = rule_of(key, kafka_version)
    return None if rule is None else rule.default


def rule_of(key: str, kafka_version: str | None) -> Rule | None:
    """Return what a version takes as the value of a key, None where it has no such key."""
    config = TOPIC_CONFIGS.get(key)
    return None if config is None else config.rules.get(release_of(kafka_version))


TOPIC_CONFIGS: Mapping[str, TopicConfig] = {
    "cleanup.policy": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LIST, "delete", choices=("compact", "delete"))),
        broker_key="log.cleanup.policy",
        becomes={"compact": EffectClass.DESTROYS, "delete": EffectClass.DESTROYS},
    ),
    "compression.gzip.level": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.INT, "-1", low=1, high=9, beside=-1)), broker_key="compression.gzip.level"
    ),
    "compression.lz4.level": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.INT, "9", low=1, high=17)), broker_key="compression.lz4.level"
    ),
    "compression.type": TopicConfig(
        dict.fromkeys(
            RELEASES,
            Rule(Kind.STRING, "producer", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        ),
        broker_key="compression.type",
        becomes={"zstd": EffectClass.CLIENTS},
    ),
    "compression.zstd.level": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.INT, "3", low=-131072, high=22)), broker_key="compression.zstd.level"
    ),
    "delete.retention.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "86400000", low=0)),
        broker_key="log.cleaner.delete.retention.ms",
        smaller=EffectClass.CLIENTS,
        only_where=("cleanup.policy", "compact"),
    ),
    "file.delete.delay.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "60000", low=0)), broker_key="log.segment.delete.delay.ms"
    ),
    "flush.messages": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "9223372036854775807", low=1)), broker_key="log.flush.interval.messages"
    ),
    "flush.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "9223372036854775807", low=0)), broker_key="log.flush.interval.ms"
    ),
    "follower.replication.throttled.replicas": TopicConfig(dict.fromkeys(RELEASES, Rule(Kind.LIST, ""))),
    "index.interval.bytes": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.INT, "4096", low=0)), broker_key="log.index.interval.bytes"
    ),
    "internal.segment.bytes": TopicConfig(dict.fromkeys(("4.1", "4.3"), Rule(Kind.INT, ""))),
    "leader.replication.throttled.replicas": TopicConfig(dict.fromkeys(RELEASES, Rule(Kind.LIST, ""))),
    "local.retention.bytes": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "-2", low=-2)), broker_key="log.local.retention.bytes"
    ),
    "local.retention.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "-2", low=-2)), broker_key="log.local.retention.ms"
    ),
    "max.compaction.lag.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "9223372036854775807", low=1)),
        broker_key="log.cleaner.max.compaction.lag.ms",
        smaller=EffectClass.DESTROYS,
        only_where=("cleanup.policy", "compact"),
    ),
    "max.message.bytes": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.INT, "1048588", low=0)),
        broker_key="message.max.bytes",
        smaller=EffectClass.CLIENTS,
    ),
    "message.downconversion.enable": TopicConfig(
        dict.fromkeys(("3.9",), Rule(Kind.BOOLEAN, "true")),
        broker_key="log.message.downconversion.enable",
        becomes={"false": EffectClass.CLIENTS},
    ),
    "message.format.version": TopicConfig(
        dict.fromkeys(
            ("3.9",),
            Rule(
                Kind.STRING,
                "3.0-IV1",
                choices=tuple(
                    """
    0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV0 0.10.0-IV1 0.10.1-IV0 0.10.1-IV1 0.10.1-IV2 0.10.2-IV0 0.11.0-IV0 0.11.0-IV1
    0.11.0-IV2 1.0-IV0 1.1-IV0 2.0-IV0 2.0-IV1 2.1-IV0 2.1-IV1 2.1-IV2 2.2-IV0 2.2-IV1 2.3-IV0 2.3-IV1 2.4-IV0 2.4-IV1
    2.5-IV0 2.6-IV0 2.7-IV0 2.7-IV1 2.7-IV2 2.8-IV0 2.8-IV1 3.0-IV0 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2
    3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0
    3.9-IV0 4.0-IV0 4.0-IV1
""".split()  # noqa: SIM905 - a line for each would fill a page
                ),
            ),
        ),
        broker_key="log.message.format.version",
    ),
    "message.timestamp.after.max.ms": TopicConfig(
        {
            **dict.fromkeys(("3.9",), Rule(Kind.LONG, "9223372036854775807", low=0)),
            **dict.fromkeys(("4.1", "4.3"), Rule(Kind.LONG, "3600000", low=0)),
        },
        broker_key="log.message.timestamp.after.max.ms",
        smaller=EffectClass.CLIENTS,
    ),
    "message.timestamp.before.max.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "9223372036854775807", low=0)),
        broker_key="log.message.timestamp.before.max.ms",
        smaller=EffectClass.CLIENTS,
    ),
    "message.timestamp.difference.max.ms": TopicConfig(
        dict.fromkeys(("3.9",), Rule(Kind.LONG, "9223372036854775807", low=0)),
        broker_key="log.message.timestamp.difference.max.ms",
        smaller=EffectClass.CLIENTS,
    ),
    "message.timestamp.type": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.STRING, "CreateTime", choices=("CreateTime", "LogAppendTime"))),
        broker_key="log.message.timestamp.type",
        otherwise=EffectClass.CLIENTS,
    ),
    "min.cleanable.dirty.ratio": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.DOUBLE, "0.5", low=0, high=1)), broker_key="log.cleaner.min.cleanable.ratio"
    ),
    "min.compaction.lag.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "0", low=0)),
        broker_key="log.cleaner.min.compaction.lag.ms",
        smaller=EffectClass.DESTROYS,
        only_where=("cleanup.policy", "compact"),
    ),
    "min.insync.replicas": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.INT, "1", low=1)),
        broker_key="min.insync.replicas",
        larger=EffectClass.AVAILABILITY,
    ),
    "preallocate": TopicConfig(dict.fromkeys(RELEASES, Rule(Kind.BOOLEAN, "false")), broker_key="log.preallocate"),
    "remote.log.copy.disable": TopicConfig(dict.fromkeys(RELEASES, Rule(Kind.BOOLEAN, "false"))),
    "remote.log.delete.on.disable": TopicConfig(dict.fromkeys(RELEASES, Rule(Kind.BOOLEAN, "false"))),
    "remote.storage.enable": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.BOOLEAN, "false")),
        becomes={"false": EffectClass.DESTROYS, "true": EffectClass.IRREVERSIBLE},
    ),
    "retention.bytes": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "-1")),
        broker_key="log.retention.bytes",
        smaller=EffectClass.DESTROYS,
        only_where=("cleanup.policy", "delete"),
        is_unlimited_below_zero=True,
    ),
    "retention.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "604800000", low=-1)),
        broker_key="log.retention.ms",
        smaller=EffectClass.DESTROYS,
        only_where=("cleanup.policy", "delete"),
        is_unlimited_below_zero=True,
    ),
    "segment.bytes": TopicConfig(
        {
            **dict.fromkeys(("3.9",), Rule(Kind.INT, "1073741824", low=14)),
            **dict.fromkeys(("4.1", "4.3"), Rule(Kind.INT, "1073741824", low=1048576)),
        },
        broker_key="log.segment.bytes",
    ),
    "segment.index.bytes": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.INT, "10485760", low=4)), broker_key="log.index.size.max.bytes"
    ),
    "segment.jitter.ms": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.LONG, "0", low=0)), broker_key="log.roll.jitter.ms"
    ),
    "segment.ms": TopicConfig(dict.fromkeys(RELEASES, Rule(Kind.LONG, "604800000", low=1)), broker_key="log.roll.ms"),
    "unclean.leader.election.enable": TopicConfig(
        dict.fromkeys(RELEASES, Rule(Kind.BOOLEAN, "false")),
        broker_key="unclean.leader.election.enable",
        becomes={"true": EffectClass.DESTROYS},
    ),
}
