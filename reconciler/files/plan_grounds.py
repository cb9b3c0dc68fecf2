"""The tables that explain a plan's moves, as its file holds them: short lists, each on one line, defaults left out."""

from typing import Any

from reconciler.files.checked import Fields, Malformed, are_integers, shown
from reconciler.model.desired import BrokerState, Spread
from reconciler.model.grounds import BrokerGround, Grounds, OtherMove, PlacementGround, Swap, TopicGround
from reconciler.model.topic_partition import TopicPartition


def grounds_to_json(grounds: Grounds) -> dict[str, Any]:
    """Return the tables as JSON."""
    return {
        "brokers": {str(broker_id): _broker(broker) for broker_id, broker in grounds.brokers.items()},
        "placements": [_placement(placement) for placement in grounds.placements],
        "topics": [[name, topic.partitions, _number(topic.placement)] for name, topic in grounds.topics.items()],
        "instead": [
            [*swap, other.topic_partition.topic, other.topic_partition.partition, other.bytes]
            for swap, other in grounds.instead.items()
        ],
    }


def grounds_of(fields: Fields) -> Grounds:
    """Return the tables that a plan's file holds, empty ones where it has none."""
    tables = fields.member("grounds")
    brokers = tables.member("brokers")
    placements = tables.each("placements", _placement_of)
    return Grounds(
        brokers={number: _broker_of(brokers.member(key)) for number, key in brokers.numbered()},
        placements=placements,
        topics=dict(_topic_of(tables, index, row, len(placements)) for index, row in enumerate(tables.items("topics"))),
        instead=dict(_instead_of(tables, index, row) for index, row in enumerate(tables.items("instead"))),
    )


def _broker(broker: BrokerGround) -> dict[str, Any]:
    fields: dict[str, Any] = {"rack": broker.rack} if broker.rack else {}
    if broker.state is not BrokerState.ACTIVE:
        fields["state"] = broker.state.value
    if broker.capacity != 1:
        fields["capacity"] = broker.capacity
    if broker.is_cordoned:
        fields["cordoned"] = True
    return fields if broker.is_alive else {**fields, "alive": False}


def _broker_of(fields: Fields) -> BrokerGround:
    return BrokerGround(
        rack=fields.optional_text("rack") or "",
        state=BrokerState(_one_of(fields, "state", [state.value for state in BrokerState]) or BrokerState.ACTIVE),
        capacity=fields.integer("capacity", 1) if "capacity" in fields.value else 1,
        is_alive=fields.flag("alive", default=True),
        is_cordoned=fields.flag("cordoned", default=False),
    )


def _placement(placement: PlacementGround) -> dict[str, Any]:
    lists = {
        "racksOnly": placement.racks_only,
        "racksLeader": placement.racks_leader,
        "brokersOnly": placement.brokers_only,
        "brokersExcept": placement.brokers_except or None,
    }
    fields: dict[str, Any] = {key: list(named) for key, named in lists.items() if named is not None}
    if placement.spread is not None:
        fields["spread"] = placement.spread.value
    return {**fields, "assigned": True} if placement.is_assigned else fields


def _placement_of(fields: Fields) -> PlacementGround:
    spread = _one_of(fields, "spread", [spread.value for spread in Spread])
    given = fields.value
    return PlacementGround(
        spread=Spread(spread) if spread else None,
        racks_only=fields.text_list("racksOnly") if "racksOnly" in given else None,
        racks_leader=fields.text_list("racksLeader") if "racksLeader" in given else None,
        brokers_only=fields.integers("brokersOnly") if "brokersOnly" in given else None,
        brokers_except=fields.integers("brokersExcept"),
        is_assigned=fields.flag("assigned", default=False),
    )


def _one_of(fields: Fields, key: str, known: list[str]) -> str | None:
    text = fields.optional_text(key)
    if text is not None and text not in known:
        raise Malformed(fields.where(key), f"must be one of {', '.join(known)}, not {shown(text)}")
    return text


def _number(placement: int | None) -> int:
    return -1 if placement is None else placement


def _topic_of(tables: Fields, index: int, row: object, placements: int) -> tuple[str, TopicGround]:
    match row:
        case [str(name), int(partitions), int(number)] if are_integers([partitions]) and -1 <= number < placements:
            return name, TopicGround(partitions, None if number < 0 else number)
        case _:
            where = f"{tables.where('topics')}/{index}"
            raise Malformed(where, f"must be a topic, its partitions and the number of a placement, not {shown(row)}")


def _instead_of(tables: Fields, index: int, row: object) -> tuple[Swap, OtherMove]:
    match row:
        case [int(giver), int(taker), str(topic), int(partition), int(size)] if are_integers(
            [giver, taker, partition, size]
        ):
            return Swap(giver, taker), OtherMove(TopicPartition(topic, partition), size)
        case _:
            where = f"{tables.where('instead')}/{index}"
            raise Malformed(where, f"must be two brokers, a topic, a partition and bytes, not {shown(row)}")
