"""Whether a result hangs on the order of the members, which in Kafka is that of a hash map, and no client's to know."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from reconciler.groups.model.scenario import Member, Scenario
from reconciler.groups.model.simulation import Outcome
from reconciler.groups.simulate.simulation import simulate
from reconciler.model.assignment import Assignor

SERVER_UNIFORM = "server-uniform"
TOPIC_ORDER_UNKNOWN = "topics go by the hash of their ids, which are not known here: who gets which may differ"

_Order = Callable[[Sequence[Member]], list[Member]]
# So much is simulated again at most: members and partitions, summed over steps and orders.
_BUDGET = 300_000


def sensitive_from_step(scenario: Scenario, assignor: Assignor, outcomes: Sequence[Outcome]) -> int | None:
    """Return the first step, counted from 0, that comes out otherwise where the members arrive in another order.

    None where none of the orders tried changed anything: up to six, fewer for a large group, at least one.
    """
    found = [
        number
        for other in _other_orders(scenario)
        for number, (told, again) in enumerate(zip(outcomes, simulate(other, assignor), strict=True))
        if told.rounds != again.rounds
    ]
    return min(found, default=None)


def is_topic_order_unknown(scenario: Scenario, assignor: Assignor) -> bool:
    """Whether several topics go by their ids, as inside server-uniform, and an id is missing."""
    if assignor.name != SERVER_UNIFORM:
        return False
    lists = [scenario.topics_at(number) for number in range(len(scenario.steps))]
    return any(len(topics) > 1 and any(topic.topic_id is None for topic in topics.values()) for topics in lists)


def _other_orders(scenario: Scenario) -> Iterator[Scenario]:
    weight = sum(
        len(step.members) + sum(topic.partitions for topic in scenario.topics_at(number).values())
        for number, step in enumerate(scenario.steps)
    )
    seen = [scenario]
    for order in _ORDERS[: max(1, _BUDGET // max(weight, 1))]:
        other = replace(
            scenario, steps=tuple(replace(step, members=tuple(order(step.members))) for step in scenario.steps)
        )
        if other not in seen:
            seen.append(other)
            yield other


def _by_id(members: Sequence[Member]) -> list[Member]:
    return sorted(members, key=lambda member: member.member_id)


_ORDERS: tuple[_Order, ...] = (
    lambda members: [*reversed(members)],
    _by_id,
    lambda members: [*members[len(members) // 2 :], *members[: len(members) // 2]],
    lambda members: [*members[1::2], *members[::2]],
    lambda members: [*reversed(_by_id(members))],
    lambda members: [*members[1:], *members[:1]],
)
