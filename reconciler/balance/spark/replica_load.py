"""Tells which replica stands where, what each broker, rack, log dir, topic and cluster holds, and what a plan moves.

In these tables a text that does not apply, or is not known, is empty and such a broker is -1, so that keys are never
null; the report turns them back.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import Level

PARTITION = ("cluster", "topic", "partition")
PLACE = ("broker", "rack", "log_dir", "topic")
KEYS = ("side", "cluster", "level", *PLACE)
BEFORE, AFTER = "before", "after"
NO_TEXT = ""
NO_BROKER = -1
IN_RACK = "in_rack"  # the rack of a broker and of its log dirs, whose rows are not named by it
COUNTS = ("replicas", "leaders", "preferred_leaders", "preferred_led", "size_bytes", "unknown_sizes")
MOVED = ("arriving_replicas", "arriving_bytes", "leaving_replicas", "leaving_bytes")
_DISKS = ("total_bytes", "unknown_totals", "usable_bytes", "unknown_usable")
_NOT_NAMED: dict[str, int | str] = {"broker": NO_BROKER, "rack": NO_TEXT, "log_dir": NO_TEXT, "topic": NO_TEXT}


def replicas(partitions: DataFrame) -> DataFrame:
    """Return one row for each replica.

    Columns: side, cluster, topic, partition, broker, its two `carriers` (place and topic), size_bytes, is_size_told,
    is_leader, followers: how many others fetch from a leader of that partition.
    """
    count = F.size("replicas")
    each = F.arrays_zip("replicas", "sizes", F.slice("carriers", F.lit(1), count).alias("places"))
    topic = F.element_at("carriers", -1).alias("of_topic")
    stands = partitions.select("side", *PARTITION, "leader", (count - 1).alias("followers"), topic, F.explode(each))
    broker = F.col("col.replicas")
    return stands.select(
        "side",
        *PARTITION,
        broker.alias("broker"),
        F.array("col.places", "of_topic").alias("carriers"),
        F.col("col.sizes").alias("size_bytes"),
        F.col("col.sizes").isNotNull().alias("is_size_told"),
        broker.eqNullSafe(F.col("leader")).alias("is_leader"),
        "followers",
    )


def known_carriers(carriers: DataFrame) -> DataFrame:
    """Return what each carrier (`files.carrier_table`) counts for: one row for each level that it belongs to.

    Columns: carrier, IN_RACK, key (a hash of the level's keys), and the keys.
    """
    levels = carriers.withColumn(IN_RACK, F.col("rack")).transform(at_every_level, ("carrier", IN_RACK))
    return levels.select("carrier", IN_RACK, F.xxhash64(*KEYS).alias("key"), *KEYS)


def at_levels(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Return the rows of carriers once for each level that these belong to."""
    return rows.join(F.broadcast(known), on="carrier", how="inner")


def by_carrier(replicas: DataFrame, *sums: Column) -> DataFrame:
    """Return these sums over the replicas of each carrier."""
    return replicas.withColumn("carrier", F.explode("carriers")).groupBy("carrier").agg(*sums)


def counts(carriers: DataFrame, places: DataFrame, found: DataFrame | None = None) -> DataFrame:
    """Return what is held at each level, 0 at the places that hold nothing, and what their disks are.

    `carriers` tell what they hold; `found` are sizes that they do not know (`found_sizes`). Columns: the keys, IN_RACK,
    then COUNTS, total_bytes and usable_bytes (now; null where not known). A size is null where that of no replica is
    known.
    """
    names = (*COUNTS, *_DISKS)
    is_disk = F.col("level") != Level.TOPIC.value
    is_size_known = (F.col("unknown_sizes") < F.col("replicas")) | (F.col("replicas") == 0)
    no_disk = {name: F.lit(0).cast("long") for name in _DISKS}
    held = carriers.where(F.col("replicas") > 0).withColumns(no_disk).select("side", "cluster", *PLACE, *names)
    if found is not None:
        few = carriers.select("carrier", "side", "cluster", *PLACE).join(F.broadcast(found), "carrier", "inner")
        held = held.unionByName(few.drop("carrier"), allowMissingColumns=True)
    placed = held.unionByName(_nothing(places)).withColumn(IN_RACK, F.col("rack"))
    return (
        placed.transform(at_every_level, (IN_RACK, *names))
        .groupBy(*KEYS)
        .agg(F.max(IN_RACK).alias(IN_RACK), *(F.sum(name).alias(name) for name in names))
        .select(
            *KEYS,
            IN_RACK,
            *(name for name in COUNTS if name != "size_bytes"),
            F.when(is_size_known, F.col("size_bytes")).alias("size_bytes"),
            F.when(is_disk & (F.col("unknown_totals") == 0), F.col("total_bytes")).alias("total_bytes"),
            F.when(is_disk & (F.col("unknown_usable") == 0), F.col("usable_bytes")).alias("usable_bytes"),
        )
    )


def with_sizes(replicas: DataFrame, sizes: DataFrame) -> DataFrame:
    """Return the replicas, those of unknown size with their partition's `last_size`."""
    sized = replicas.join(sizes, on=list(PARTITION), how="left")
    return sized.withColumn("size_bytes", F.coalesce("size_bytes", "last_size"))


def found_sizes(sized: DataFrame) -> DataFrame:
    """Return what carriers hold of sizes that the cluster did not tell, and how many fewer are unknown by these."""
    found = sized.where(~F.col("is_size_told") & F.col("size_bytes").isNotNull())
    return by_carrier(found, F.sum("size_bytes").alias("size_bytes"), (-F.count(F.lit(1))).alias("unknown_sizes"))


def at_every_level(rows: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Return each row (side, cluster, PLACE and these columns) once for each level that it belongs to.

    Those are cluster, rack, broker and log dir, and the topic where it names one; what stands in no known log dir
    belongs to none, and a row without a broker only to its topic.
    """
    cluster, rack, broker = _level(Level.CLUSTER), _level(Level.RACK, "rack"), _level(Level.BROKER, "broker")
    placed = F.array(cluster, rack, broker)
    in_log_dir = F.when(F.col("log_dir") != NO_TEXT, F.array(_level(Level.LOG_DIR, "broker", "log_dir")))
    of_topic = F.when(F.col("topic") != NO_TEXT, F.array(_level(Level.TOPIC, "topic")))
    none = F.slice(F.array(cluster), 1, 0)
    levels = F.concat(
        F.when(F.col("broker") != NO_BROKER, F.concat(placed, F.coalesce(in_log_dir, none))).otherwise(none),
        F.coalesce(of_topic, none),
    )
    return rows.select("side", "cluster", F.inline(levels), *names)


def _nothing(places: DataFrame) -> DataFrame:
    """Return the places with a count of 0, and what their disks are."""
    return places.select(
        "side",
        "cluster",
        "broker",
        F.coalesce("rack", F.lit(NO_TEXT)).alias("rack"),
        F.coalesce("log_dir", F.lit(NO_TEXT)).alias("log_dir"),
        F.lit(NO_TEXT).alias("topic"),
        *(F.lit(0).cast("long").alias(name) for name in COUNTS),
        "total_bytes",
        F.col("total_bytes").isNull().cast("long").alias("unknown_totals"),
        "usable_bytes",
        F.col("usable_bytes").isNull().cast("long").alias("unknown_usable"),
    )


def _level(level: Level, *kept: str) -> Column:
    named = ((F.col(name) if name in kept else F.lit(_NOT_NAMED[name])).alias(name) for name in PLACE)
    return F.struct(F.lit(level.value).alias("level"), *named)


def moved(replicas: DataFrame) -> DataFrame:
    """Return what arrives at and leaves each broker, and each cluster in all: partitions that stand on both sides.

    Columns: cluster, level, broker, then arriving_replicas, arriving_bytes, leaving_replicas, leaving_bytes. An unknown
    size counts as 0 bytes.
    """
    stands = F.when(F.col("side") == BEFORE, F.struct("size_bytes"))
    reached = F.when(F.col("side") == AFTER, F.struct("size_bytes"))
    each = replicas.groupBy(*PARTITION, "broker").agg(F.max(stands).alias("was"), F.max(reached).alias("now"))
    sides = replicas.groupBy(*PARTITION).agg(F.count_distinct("side").alias("sides"))
    lasting = sides.where(F.col("sides") > 1).select(*PARTITION)
    changed = each.where(F.col("was").isNull() | F.col("now").isNull()).join(lasting, on=list(PARTITION), how="inner")
    at = F.explode(F.array(_at(Level.BROKER, F.col("broker")), _at(Level.CLUSTER, F.lit(NO_BROKER)))).alias("at")
    arrives, leaves = F.col("was").isNull(), F.col("now").isNull()
    return (
        changed.select("cluster", at, "was", "now")
        .groupBy("cluster", "at.level", "at.broker")
        .agg(
            F.count_if(arrives).alias("arriving_replicas"),
            F.coalesce(F.sum(F.when(arrives, F.col("now.size_bytes"))), F.lit(0)).alias("arriving_bytes"),
            F.count_if(leaves).alias("leaving_replicas"),
            F.coalesce(F.sum(F.when(leaves, F.col("was.size_bytes"))), F.lit(0)).alias("leaving_bytes"),
        )
    )


def _at(level: Level, broker: Column) -> Column:
    return F.struct(F.lit(level.value).alias("level"), broker.cast("int").alias("broker"))
