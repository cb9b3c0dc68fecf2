"""topicctl's topic files: `meta` and `spec`, with placement strategies of which some have a counterpart here."""

from reconciler.files.foreign.topics import MAX_FACTOR, Part, is_replica_list, keep
from reconciler.files.units import MILLISECONDS
from reconciler.model.desired import DesiredTopic, Placement, Spread

RETENTION = "retention.ms"
_META = frozenset({"name", "cluster", "region", "environment", "description", "labels", "consumers"})
_SPEC = frozenset({"partitions", "replicationFactor", "retentionMinutes", "settings", "placement", "migration"})
_KINDS = frozenset({"any", "balanced-leaders", "in-rack", "cross-rack", "static", "static-in-rack"})


def read_topicctl(document: Part) -> None:
    """Add the topic of one document."""
    meta, spec = document.part("meta"), document.part("spec")
    name = meta.text("name")
    if name is None:
        meta.wrong("name", "is missing")
        return
    meta.refuse_unknown(_META)
    spec.refuse_unknown(_SPEC)
    if "migration" in spec.entries:
        spec.warn("migration", "is not mapped: a cluster has one pace, moves.throttle in cluster.yaml")
    config = spec.configs("settings")
    minutes = spec.count("retentionMinutes")
    if minutes is not None:
        if RETENTION in config:
            spec.wrong("retentionMinutes", f"and settings.{RETENTION} say the same: keep one")
        config[RETENTION] = str(minutes * MILLISECONDS["m"])
    partitions, factor = spec.count("partitions"), spec.count("replicationFactor", MAX_FACTOR)
    topic = DesiredTopic(
        name,
        partitions=partitions,
        replication_factor=factor,
        config=dict(sorted(config.items())),
        placement=_placement(spec.part("placement"), partitions, factor),
        labels=meta.labels("labels"),
    )
    keep(document.reading, topic, document, meta.text("cluster"), _notes(meta))


def _notes(meta: Part) -> tuple[str, ...]:
    lines = (meta.text("description") or "").strip().splitlines()
    consumers = [str(each) for each in meta.items("consumers")]
    return (*(line.strip() for line in lines), *([f"Consumers: {', '.join(consumers)}."] if consumers else []))


def _placement(written: Part, partitions: int | None, factor: int | None) -> Placement:
    """Return the strategy's counterpart; where there is none, or only a weaker one, say so."""
    strategy = written.text("strategy") or "any"
    match strategy:
        case "cross-rack":
            return Placement(racks_spread=Spread.STRICT)
        case "static":
            return Placement(assignment=_assignment(written, partitions, factor))
        case "static-in-rack":
            return _in_racks(written, partitions)
        case "in-rack":
            message = "in-rack (all replicas in the leader's rack) has no counterpart: racks.spread is ignore instead"
            written.warn("strategy", message)
            return Placement(racks_spread=Spread.IGNORE)
        case "balanced-leaders":
            message = "balanced-leaders has no counterpart for one topic: ask for balance.leaders, or balance.topics"
            written.warn("strategy", f"{message}, in cluster.yaml")
        case unknown if unknown not in _KINDS:
            written.wrong("strategy", f"is {unknown[:40]!r}; topicctl knows {', '.join(sorted(_KINDS))}")
    return Placement()


def _assignment(written: Part, partitions: int | None, factor: int | None) -> tuple[tuple[int, ...], ...] | None:
    lists = written.items("staticAssignments")
    if not lists or not all(is_replica_list(each) for each in lists):
        wrong = "must be one list of different broker ids a partition"
    elif partitions is not None and len(lists) != partitions:
        wrong = f"has {len(lists)} lists for {partitions} partitions"
    elif any(len(each) != (factor or len(lists[0])) for each in lists):
        wrong = f"must name {factor or 'the same number of'} brokers for each partition"
    else:
        return tuple(map(tuple, lists))
    written.wrong("staticAssignments", wrong)
    return None


def _in_racks(written: Part, partitions: int | None) -> Placement:
    racks = written.items("staticRackAssignments")
    if not racks or not all(isinstance(rack, str) and rack for rack in racks):
        written.wrong("staticRackAssignments", "must be one rack a partition")
        return Placement()
    if partitions is not None and len(racks) != partitions:
        written.wrong("staticRackAssignments", f"has {len(racks)} racks for {partitions} partitions")
        return Placement()
    only = frozenset(racks)
    if len(only) > 1:
        message = "static-in-rack with several racks has no counterpart: partitions of one topic share one rule here"
        written.warn("strategy", f"{message}; racks.spread is ignore, racks.only names all {len(only)} racks")
    return Placement(racks_spread=Spread.IGNORE, racks_only=only)
