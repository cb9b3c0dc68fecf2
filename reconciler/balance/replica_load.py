"""Which replica stands where, and what each broker, rack, log dir, topic and cluster holds: counts and sizes.

In these tables a text that does not apply, or is not known, is empty and such a broker is -1, so that keys are never
null; the report turns them back.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import IntegerType, StringType

from reconciler.model.balance_report import Level

PARTITION = ("cluster", "topic", "partition")
PLACE = ("broker", "rack", "log_dir", "topic")
KEYS = ("side", "cluster", "level", *PLACE)
BEFORE, AFTER = "before", "after"
COUNTS = ("replicas", "leaders", "preferred_leaders", "preferred_led", "size_bytes", "unknown_sizes")
NO_TEXT = ""
NO_BROKER = -1
_NOT_NAMED: dict[str, int | str] = {"broker": NO_BROKER, "rack": NO_TEXT, "log_dir": NO_TEXT, "topic": NO_TEXT}
_LEVELS = {
    Level.CLUSTER: (),
    Level.RACK: ("rack",),
    Level.BROKER: ("broker",),
    Level.LOG_DIR: ("broker", "log_dir"),
}


def replicas(partitions: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return one row for each replica.

    Columns: side, cluster, topic, partition, broker, rack, log_dir, size_bytes, is_leader, is_preferred, followers: how
    many others fetch from a leader of that partition.
    """
    racks = brokers.select("cluster", "broker", F.coalesce("rack", F.lit(NO_TEXT)).alias("rack"))
    each = F.arrays_zip("replicas", "sizes", "log_dirs")
    followers = F.size("replicas") - 1
    stands = partitions.select("side", *PARTITION, "leader", followers.alias("followers"), F.posexplode(each))
    broker = F.col("col.replicas")
    return stands.select(
        "side",
        *PARTITION,
        broker.alias("broker"),
        F.coalesce("col.log_dirs", F.lit(NO_TEXT)).alias("log_dir"),
        F.col("col.sizes").alias("size_bytes"),
        broker.eqNullSafe(F.col("leader")).alias("is_leader"),
        (F.col("pos") == 0).alias("is_preferred"),
        "followers",
    ).join(F.broadcast(racks), on=["cluster", "broker"], how="inner")


def empty_places(sides: DataFrame, brokers: DataFrame, log_dirs: DataFrame) -> DataFrame:
    """Return every broker and every log dir of each side (`side, cluster`), so that one that holds nothing shows too.

    Columns: side, cluster, broker, rack, log_dir (empty for the broker itself).
    """
    racks = brokers.select("cluster", "broker", F.coalesce("rack", F.lit(NO_TEXT)).alias("rack"))
    places = log_dirs.select("cluster", "broker", "log_dir").join(racks, on=["cluster", "broker"], how="inner")
    named = racks.withColumn("log_dir", F.lit(NO_TEXT)).unionByName(places)
    return named.join(sides, on="cluster", how="inner").select("side", "cluster", "broker", "rack", "log_dir")


def counts(replicas: DataFrame, places: DataFrame) -> DataFrame:
    """Return what is held at each level, 0 at the places that hold nothing.

    Columns: the keys, then replicas, leaders, preferred_leaders, preferred_led, size_bytes, unknown_sizes.
    """
    names = COUNTS
    one = (
        F.count(F.lit(1)).alias("replicas"),
        F.count_if("is_leader").alias("leaders"),
        F.count_if("is_preferred").alias("preferred_leaders"),
        F.count_if(F.col("is_preferred") & F.col("is_leader")).alias("preferred_led"),
        F.sum("size_bytes").alias("size_bytes"),
        F.count_if(F.col("size_bytes").isNull()).alias("unknown_sizes"),
    )
    held = replicas.groupBy("side", "cluster", "broker", "rack", "log_dir").agg(*one)
    nothing = places.select("*", *(F.lit(0).cast("long").alias(name) for name in names))
    by_place = held.unionByName(nothing).transform(at_every_level, names)
    by_topic = replicas.groupBy("side", "cluster", "topic").agg(*one).transform(at_topic_level, names)
    summed = by_place.unionByName(by_topic).groupBy(*KEYS).agg(*(F.sum(name).alias(name) for name in names))
    is_size_known = (F.col("unknown_sizes") < F.col("replicas")) | (F.col("replicas") == 0)
    return summed.withColumn("size_bytes", F.when(is_size_known, F.col("size_bytes")))


def at_every_level(places: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Return each row (side, cluster, broker, rack, log_dir and these columns) once for each level it belongs to.

    A replica whose log dir is not known belongs to none.
    """
    levels = F.explode(F.array(*(_level(level, kept) for level, kept in _LEVELS.items())))
    named = places.select("side", "cluster", levels.alias("at"), *names)
    return named.select("side", "cluster", "at.*", *names).where(
        (F.col("level") != Level.LOG_DIR.value) | (F.col("log_dir") != NO_TEXT)
    )


def at_topic_level(topics: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Return each row (side, cluster, topic and these columns) with the keys of a topic."""
    at = _level(Level.TOPIC, ("topic",)).alias("at")
    return topics.select("side", "cluster", at, *names).select("side", "cluster", "at.*", *names)


def _level(level: Level, kept: tuple[str, ...]) -> Column:
    kinds = {"broker": IntegerType()}
    names = [
        (F.col(name) if name in kept else F.lit(_NOT_NAMED[name])).cast(kinds.get(name, StringType())) for name in PLACE
    ]
    return F.struct(
        F.lit(level.value).alias("level"), *(each.alias(name) for each, name in zip(names, PLACE, strict=True))
    )
