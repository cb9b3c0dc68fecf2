"""The JSON of a plan's file -> the plan, each field checked."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from reconciler.files.checked import Fields, Malformed, shown
from reconciler.files.plan_effects import effects_of
from reconciler.files.plan_extras import place_of, remedies_of, what_if_of
from reconciler.files.plan_grounds import grounds_of
from reconciler.files.plan_log_dirs import log_dirs_of, predicted_log_dirs_of
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import BrokerShare, Plan, PriceLevel, Proof, Restore, Rollback, Source, TieredBytes
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

T = TypeVar("T")
_REASONS = {reason.value: reason for reason in Reason}


def plan_from_json(document: object) -> Plan:
    """Return the plan that this JSON object describes; raise Malformed at the first wrong field."""
    fields = Fields(document, "")
    cluster, source, run = fields.member("cluster"), fields.member("source"), fields.member("run")
    balance = fields.member("balance")
    topic_changes = fields.each("topicChanges", _topic_change)
    return Plan(
        cluster_name=_folder_name(cluster, "name"),
        cluster_id=cluster.text("clusterId"),
        source=Source(
            desired_digest=source.text("desiredDigest"),
            observed_at=source.optional_text("observedAt"),
            commit=source.optional_text("commit"),
            only=source.text_list("only"),
            rolls_back=source.optional_text("rollsBack"),
        ),
        id=fields.text("id"),
        brokers_alive=fields.member("requires").integers("brokersAlive"),
        topic_ids=fields.member("requires").texts("topicIds"),
        topic_changes=topic_changes,
        stages=_stages(fields, len(topic_changes)),
        rollback=_rollback(fields.member("rollback")),
        proof=_proof(fields.member("proof")),
        balance_before=_shares(balance.member("before")),
        balance_after=_shares(balance.member("after")),
        warnings=fields.each("warnings", _warning),
        violations=fields.each("violations", _violation),
        disk_capacity=_by_number(fields.member("diskCapacity"), Fields.integer),
        disk_peak=_by_number(fields.member("diskPeak"), Fields.integer),
        election_batch=run.integer("electionBatch", 1),
        timeout_seconds=run.integer("timeoutSeconds", 1),
        cordoned=run.integers("cordon"),
        least_seconds=fields.member("summary").optional_integer("leastSeconds"),
        log_dirs=log_dirs_of(fields),
        predicted_log_dirs=predicted_log_dirs_of(fields),
        remedies=remedies_of(fields),
        what_if=what_if_of(fields),
        grounds=grounds_of(fields),
    )


def _folder_name(fields: Fields, key: str) -> str:
    """Return a name that the files of a run may lie under: one folder, never a way out of another."""
    name = fields.text(key)
    if name in {"", ".", ".."} or not name.isprintable() or any(each in name for each in "/\\:"):
        raise Malformed(fields.where(key), "must be the name of a cluster, which is that of one folder")
    return name


def _stages(fields: Fields, topic_changes: int) -> tuple[Stage, ...]:
    stages = fields.each("stages", _stage)
    for index, stage in enumerate(stages):
        at = f"{fields.where('stages')}/{index}"
        if stage.number != index + 1:
            raise Malformed(f"{at}/number", f"must be {index + 1}: stages are numbered in order")
        if isinstance(stage, TopicsStage) and any(position >= topic_changes for position in stage.changes):
            message = f"must hold positions in topicChanges, which has {topic_changes}"
            raise Malformed(f"{at}/topicChanges", message)
    return stages


def _stage(fields: Fields) -> Stage:
    number, kind = fields.integer("number", 1), fields.text("kind")
    if kind == "topics":
        return TopicsStage(number, fields.integers("topicChanges"))
    if kind == "elect":
        return ElectStage(number, fields.each("elections", _election))
    if kind == "reassign":
        return ReassignStage(
            number,
            fields.each("moves", _move),
            fields.optional_integer("throttleBytesPerSecond", 1),
            fields.integer("estimatedSeconds"),
        )
    raise Malformed(fields.where("kind"), f"must be reassign, elect or topics, not {shown(kind)}")


def _move(fields: Fields) -> Move:
    reason = _REASONS.get(fields.text("reason"))
    if reason is None:
        raise Malformed(fields.where("reason"), f"must be one of {', '.join(sorted(_REASONS))}")
    return Move(
        topic_partition=_topic_partition(fields),
        from_replicas=_replicas(fields, "from"),
        to_replicas=_replicas(fields, "to"),
        bytes=fields.integer("bytes"),
        reason=reason,
        at=place_of(fields),
        is_size_known=fields.flag("sizeKnown", default=True),
    )


def _topic_partition(fields: Fields) -> TopicPartition:
    return TopicPartition(fields.text("topic"), fields.integer("partition"))


def _replicas(fields: Fields, key: str) -> tuple[int, ...]:
    replicas = fields.integers(key)
    if not replicas:
        raise Malformed(fields.where(key), "must name at least one broker")
    return replicas


def _election(fields: Fields) -> Election:
    return Election(_topic_partition(fields), fields.integer("leader"))


def _topic_change(fields: Fields) -> TopicChange:
    kind = fields.text("kind")
    read = _TOPIC_CHANGES.get(kind)
    if read is None:
        raise Malformed(fields.where("kind"), f"must be one of {', '.join(_TOPIC_CHANGES)}, not {shown(kind)}")
    return read(fields)


def _create_topic(fields: Fields) -> CreateTopic:
    return CreateTopic(
        topic=fields.text("topic"),
        partitions=fields.integer("partitions", 1),
        replication_factor=fields.integer("replicationFactor", 1),
        configs=fields.texts("configs"),
        assignment=_by_number(fields.member("assignment"), _replicas),
        at=place_of(fields),
        effects=effects_of(fields),
    )


def _create_partitions(fields: Fields) -> CreatePartitions:
    return CreatePartitions(
        topic=fields.text("topic"),
        from_count=fields.integer("fromCount"),
        to_count=fields.integer("toCount"),
        assignment=_by_number(fields.member("assignment"), _replicas),
        at=place_of(fields),
        effects=effects_of(fields),
    )


def _alter_configs(fields: Fields) -> AlterConfigs:
    before = fields.member("before")
    return AlterConfigs(
        topic=fields.text("topic"),
        set=fields.texts("set"),
        delete=fields.text_list("delete"),
        before={key: before.optional_text(key) for key in sorted(before.value)},
        at=place_of(fields),
        effects=effects_of(fields),
    )


def _delete_topic(fields: Fields) -> DeleteTopic:
    return DeleteTopic(
        fields.text("topic"),
        fields.optional_text("topicId"),
        place_of(fields),
        effects_of(fields),
        is_declared=fields.flag("declared", default=False),
    )


_TOPIC_CHANGES: Mapping[str, Callable[[Fields], TopicChange]] = {
    "createTopic": _create_topic,
    "createPartitions": _create_partitions,
    "alterConfigs": _alter_configs,
    "deleteTopic": _delete_topic,
}


def _rollback(fields: Fields) -> Rollback:
    throttles = fields.member("throttles")
    topics = throttles.member("topics")
    return Rollback(
        assignments=fields.each("assignments", _restore),
        topic_throttles={topic: topics.texts(topic) for topic in sorted(topics.value)},
        broker_throttles=_by_number(throttles.member("brokers"), Fields.texts),
    )


def _restore(fields: Fields) -> Restore:
    leader = fields.optional_integer("leader")
    return Restore(_topic_partition(fields), _replicas(fields, "replicas"), leader)


def _proof(fields: Fields) -> Proof:
    value, lower_bound = fields.integer("value"), fields.integer("lowerBound")
    if lower_bound > value:
        raise Malformed(fields.where("lowerBound"), f"must not be above the value, {value}: no plan beats its bound")
    return Proof(
        objective=fields.text("objective"),
        value=value,
        lower_bound=lower_bound,
        prices=_by_number(fields.member("prices"), _price),
        levels=fields.each("levels", _level),
        tiered=_tiered(fields),
    )


def _tiered(fields: Fields) -> TieredBytes | None:
    word = fields.optional_text("tieredBytes")
    known = {each.value: each for each in TieredBytes}
    if word is not None and word not in known:
        raise Malformed(fields.where("tieredBytes"), f"must be one of {', '.join(known)}")
    return known[word] if word is not None else None


def _level(fields: Fields) -> PriceLevel:
    return PriceLevel(
        objective=fields.text("objective"),
        value=_price(fields, "value"),
        lower_bound=_price(fields, "lowerBound"),
        prices=_by_number(fields.member("prices"), _price),
        topic_prices=_prices_by_name(fields.member("topicPrices")),
        load_prices=_prices_by_name(fields.member("loadPrices")),
        shift=fields.optional_integer("shift", 1) or 0,
    )


def _prices_by_name(fields: Fields) -> dict[str, dict[int, int]]:
    return {name: _by_number(fields.member(name), _price) for name in fields.value}


def _price(fields: Fields, key: str) -> int:
    price = fields.value.get(key)
    if type(price) is not int:
        raise Malformed(fields.where(key), f"must be a whole number, not {shown(price)}")
    return price


def _shares(fields: Fields) -> dict[int, BrokerShare]:
    return _by_number(fields, lambda shares, key: _share(shares.member(key)))


def _share(fields: Fields) -> BrokerShare:
    return BrokerShare(
        fields.integer("replicas"),
        fields.integer("leaders"),
        fields.optional_integer("bytes"),
        fields.optional_integer("bytesInPerSecond"),
        fields.optional_integer("bytesOutPerSecond"),
    )


def _by_number(fields: Fields, read: Callable[[Fields, str], T]) -> dict[int, T]:
    return {number: read(fields, key) for number, key in fields.numbered()}


def _warning(fields: Fields) -> Problem:
    return Problem(fields.text("code"), fields.text("message"), place_of(fields), Severity.WARNING)


def _violation(fields: Fields) -> Problem:
    return Problem(fields.text("code"), fields.text("message"), place_of(fields), Severity.VIOLATION)
