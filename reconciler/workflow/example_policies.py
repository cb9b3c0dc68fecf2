"""Policies to begin with: `init` writes them beside the folder in which they would hold."""

from collections.abc import Mapping

_README = """\
# Policies
Each `policies/*.sql`, of the desired-state root or of a cluster's folder, is one query in Spark SQL over the plan. Every row
that it returns is a violation: the plan is shown, `plan` exits with 3, and `apply` refuses it. Nothing in this folder holds:
copy what you want into `policies`. Policies need `pip install 'kafka-reconciler[spark]'` and Java 17; `plan` takes some
10 seconds longer with them.

The comment that a file begins with is the rule in words, and heads each violation. The columns of a row follow, with their
names; one called `message` without. A policy can ask these tables and nothing else, not the clock, and not chance: joins, subqueries,
windows, and Spark's functions of arithmetic, texts, dates, lists, maps and aggregates. Each has 300 seconds.

| table | columns |
|---|---|
| `topics` | `topic`, `is_internal`, `is_declared`, `labels` (a map), and as the plan leaves them `partitions`, `replication_factor` (the least of its partitions'), `configs` (a map of overrides, no defaults), null for a topic that is deleted; as they are today `observed_partitions`, `observed_replication_factor`, `observed_configs`, null for a new one |
| `brokers` | `broker`, `rack`, `host`, `is_alive`, `state` and `capacity` as declared, `total_bytes` and `usable_bytes` of its log dirs (null: not known), `configs` (a map of overrides) |
| `observed_replicas`, `planned_replicas` | `topic`, `partition`, `position` (0 is the preferred leader; null while a reassignment takes it away), `broker`, `rack`, `log_dir` and `size_bytes` (null: not known), `is_leader`, `is_in_sync` |
| `moves` | `stage`, `topic`, `partition`, `from_replicas`, `to_replicas` (whole ordered lists), `bytes`, `reason`, `at` (the line that asks for it) |
| `loads` | empty without `plan --loads`; `cluster`, `topic`, `partition`, `bytes_in_avg`, `bytes_in_p95`, `bytes_in_max`, `bytes_in_peak`, the same for `bytes_out` and `messages_in`, `size_bytes`, `growth_bytes_per_day`, `coverage` |
"""  # noqa: E501 - rows of a Markdown table

_RACKS_PER_TIER = """\
-- A partition of tier gold stands in three racks, one of tier silver in two.
-- The tier is a label of the topic: metadata: {name: orders, labels: {tier: gold}}
WITH tiers AS (
  SELECT * FROM VALUES ('gold', 3), ('silver', 2) AS tiers (tier, racks)
)
SELECT topic, partition, tiers.tier, count(DISTINCT rack) AS racks
FROM planned_replicas
JOIN topics USING (topic)
JOIN tiers ON tiers.tier = labels['tier']
WHERE position IS NOT NULL
GROUP BY topic, partition, tiers.tier, tiers.racks
HAVING count(DISTINCT rack) < tiers.racks
"""

_TOPIC_SHARE = """\
-- No topic holds more than 40 % of a broker's bytes.
WITH held AS (
  SELECT broker, topic, sum(size_bytes) AS bytes FROM planned_replicas GROUP BY broker, topic
), shares AS (
  SELECT broker, topic, 100 * bytes / sum(bytes) OVER (PARTITION BY broker) AS percent FROM held WHERE bytes > 0
)
SELECT broker, topic, round(percent, 1) AS percent FROM shares WHERE percent > 40
"""

_MIN_ISR = """\
-- A topic has more replicas than min.insync.replicas.
-- Otherwise nobody can write to it with acks=all while one broker is down.
WITH wanted AS (
  SELECT *, int(coalesce(configs['min.insync.replicas'], '1')) AS min_insync_replicas FROM topics WHERE NOT is_internal
)
SELECT topic, replication_factor, min_insync_replicas FROM wanted WHERE replication_factor <= min_insync_replicas
"""

EXAMPLE_POLICIES: Mapping[str, str] = {
    "policies.example/README.md": _README,
    "policies.example/min-insync-replicas.sql": _MIN_ISR,
    "policies.example/racks-per-tier.sql": _RACKS_PER_TIER,
    "policies.example/topic-share-of-broker.sql": _TOPIC_SHARE,
}
"""Texts by file name, below a cluster's folder."""
