"""Whether this user may do all that a plan asks for: found out before the first change, every missing right at once."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reconciler.admin.port import Admin
from reconciler.apply.throttles import throttled_brokers, throttled_lists
from reconciler.model.change import AlterConfigs, CreatePartitions, DeleteTopic
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight
from reconciler.model.stage import TopicsStage
from reconciler.model.vitals import Rights

MOST_NAMED = 3


class PlanNeed(NamedTuple):
    """An operation that a plan needs on the cluster (no topics named), or on topics that exist, and what for."""

    operation: str
    topics: tuple[str, ...]
    purpose: str


def plan_needs(plan: Plan) -> tuple[PlanNeed, ...]:
    """Return the rights that running this plan takes, beside those of the first look.

    Creating topics is left out: a right on a topic that does not exist yet is not told; Kafka refuses it by name.
    """
    changes = plan.topic_changes
    throttled = {topic for topic, _ in throttled_lists(plan)}
    configured = {change.topic for change in changes if isinstance(change, AlterConfigs)}
    grown = {change.topic for change in changes if isinstance(change, CreatePartitions)}
    deleted = {change.topic for change in changes if isinstance(change, DeleteTopic)}
    needs = (
        PlanNeed("DescribeConfigs", tuple(sorted(throttled | configured)), "reading these topics' configs"),
        PlanNeed("AlterConfigs", tuple(sorted(throttled | configured)), "throttled replicas and configs"),
        PlanNeed("Alter", tuple(sorted(grown)), "new partitions"),
        PlanNeed("Delete", tuple(sorted(deleted)), "deleting them"),
    )
    return (*_on_cluster(plan), *(need for need in needs if need.topics))


def _on_cluster(plan: Plan) -> Iterator[PlanNeed]:
    if any(not isinstance(stage, TopicsStage) for stage in plan.stages):
        yield PlanNeed("Alter", (), "moves and elections")
    if throttled_brokers(plan) or plan.cordoned:
        yield PlanNeed("DescribeConfigs", (), "reading brokers' throttles and cordons")
    if throttled_brokers(plan):
        yield PlanNeed("AlterConfigs", (), "throttle rates of brokers")
    elif plan.cordoned:
        yield PlanNeed("AlterConfigs", (), "cordoning the brokers that it empties (moves.cordon)")


def check_rights(plan: Plan, admin: Admin) -> None:
    """Raise MissingRight, which names every right that this plan needs and this user lacks. Changes nothing."""
    needs = plan_needs(plan)
    if not needs:
        return
    rights = admin.rights(sorted({topic for need in needs for topic in need.topics}))
    missing = list(_missing(needs, rights))
    if missing:
        told = "\n".join(f"{need.operation} on {_where(need)}, for {need.purpose}" for need in missing)
        raise MissingRight(
            f"this user lacks {'rights' if len(missing) > 1 else 'a right'} that the plan needs, and nothing has been "
            f"changed:\n{told}\nGrant it, for example with `kafka-acls --add --allow-principal User:NAME --operation "
            f"{missing[0].operation} {_option(missing[0])}`, and apply again."
        )


def _missing(needs: Iterable[PlanNeed], rights: Rights) -> Iterator[PlanNeed]:
    for need in needs:
        if not need.topics:
            if need.operation not in rights.cluster:
                yield need
            continue
        # A topic that is neither told nor hidden does not exist: what that means is for the plan's own checks.
        lacking = [topic for topic in need.topics if need.operation not in rights.topics.get(topic, {need.operation})]
        lacking += [topic for topic in need.topics if topic in rights.hidden]
        if lacking:
            yield need._replace(topics=tuple(sorted(lacking)))


def _where(need: PlanNeed) -> str:
    if not need.topics:
        return "the cluster"
    more = f" and {len(need.topics) - MOST_NAMED} more" if len(need.topics) > MOST_NAMED else ""
    return f"topic{'s' if len(need.topics) > 1 else ''} {', '.join(need.topics[:MOST_NAMED])}{more}"


def _option(need: PlanNeed) -> str:
    if not need.topics:
        return "--cluster"
    return f"--topic {need.topics[0]}" if len(need.topics) == 1 else "--topic '*'"
