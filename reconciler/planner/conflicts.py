"""Why a partition cannot be placed: the smallest set of rules that cannot hold together, each with its line."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from reconciler.diff.rules import NO_RACK, TopicRules
from reconciler.model.change import BrokenRule
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Spread
from reconciler.model.problem import Location, Problem
from reconciler.planner.demand import Slot

SHOWN = 10


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule in words; `bars` says which brokers it keeps out, the other two are demands on the whole set."""

    words: str
    cure: str
    bars: Callable[[int], bool] = lambda _: False
    is_strict: bool = False
    leader_racks: frozenset[str] | None = None


def placement_conflicts(desired: Desired, observed: Cluster, slots: Iterable[Slot]) -> Iterator[Problem]:
    """Yield a problem for each topic whose partitions cannot all be placed, naming the first such partition.

    Topics that the same lines put into the same conflict share one problem.
    """
    alike: dict[tuple[str, Location | None], list[Slot]] = {}
    for slot in unplaceable(desired, observed, slots):
        words, at = _explained(desired, observed, slot)
        alike.setdefault((words, at), []).append(slot)
    for (words, at), found in alike.items():
        yield Problem("KR301", f"{found[0].topic_partition} cannot be placed: {words}{_others(found[1:])}", at)


def unplaceable(desired: Desired, observed: Cluster, slots: Iterable[Slot]) -> Iterator[Slot]:
    """Yield, of each topic whose partitions cannot all be placed, the first that cannot."""
    told: set[str] = set()
    known: dict[object, bool] = {}
    for slot in slots:
        name = slot.topic_partition.topic
        if name in told:
            continue
        kept = frozenset(slot.replicas) & slot.rules.keepable if slot.rules.keepable != slot.rules.receivable else None
        # Topics with the same placement share the set of brokers itself.
        key = (id(slot.rules.receivable), slot.need, slot.fixed, slot.is_new, kept)
        if key not in known:
            known[key] = _fits(desired, observed, slot)
        if not known[key]:
            told.add(name)
            yield slot


def frozen_conflicts(rules: Mapping[str, TopicRules], broken: Iterable[BrokenRule]) -> Iterator[Problem]:
    """Yield a problem for each topic that must not move, but has to."""
    told: set[str] = set()
    for finding in broken:
        rule = rules[finding.topic_partition.topic]
        if rule.is_frozen and rule.declared is not None and rule.topic not in told:
            told.add(rule.topic)
            protect = rule.declared.where("protect")
            message = (
                f"{finding.topic_partition} may not move: protect names move{_at(protect)}, but {finding.detail}"
                f"{_at(finding.at)}. Drop one of the two."
            )
            yield Problem("KR302", message, protect)


def _fits(desired: Desired, observed: Cluster, slot: Slot) -> bool:
    rules = _rules(desired, observed, slot)
    return _can_place(observed, slot, rules) and (not slot.fixed or slot.need > 0 or not _wrong_fixed(slot, rules))


def _others(slots: Sequence[Slot]) -> str:
    """Return, as a sentence of its own, which other topics are in the same conflict."""
    names = [slot.topic_partition.topic for slot in slots]
    if not names:
        return ""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f" The same holds for {', '.join(names[:SHOWN])}{more}."


def _explained(desired: Desired, observed: Cluster, slot: Slot) -> tuple[str, Location | None]:
    """Return the smallest conflict in words, and the line to look at first."""
    declared = slot.rules.declared
    rules = _rules(desired, observed, slot)
    if slot.fixed and slot.need == 0 and declared is not None:
        at = declared.where("placement.assignment")
        causes = _wrong_fixed(slot, rules)
        told = "; ".join(cause.words for cause in causes)
        return f"assignment names {_listed(slot.fixed)}{_at(at)}, but {told}. Change one of them.", at
    causes = _smallest_conflict(observed, slot, rules)
    at = declared.where("replicationFactor") if declared else None
    wanted = len(slot.fixed) + slot.need
    factor = f"replicationFactor is {wanted}{_at(at)}" if at else f"it has {wanted} replicas"
    words = ", ".join(cause.words for cause in causes) or f"only {len(observed.brokers)} brokers are registered"
    cures = "; or ".join(cause.cure for cause in causes) or "add brokers"
    message = f"{factor}, {words}. Lower replicationFactor; or {cures}."
    return message, at or (declared.where("") if declared else None)


def _smallest_conflict(observed: Cluster, slot: Slot, rules: Sequence[_Rule]) -> Sequence[_Rule]:
    for size in range(len(rules) + 1):
        for chosen in combinations(rules, size):
            if not _can_place(observed, slot, chosen):
                return chosen
    return ()


def _can_place(observed: Cluster, slot: Slot, rules: Sequence[_Rule]) -> bool:
    """Whether enough brokers remain, in the racks that the rules want, when just these rules hold."""
    if slot.need == 0:
        return True
    barred = {broker_id for broker_id in observed.brokers for rule in rules if rule.bars(broker_id)}
    room = Counter(
        observed.brokers[broker_id].rack or NO_RACK
        for broker_id in observed.brokers
        if broker_id not in barred and broker_id not in slot.fixed
    )
    if sum(room.values()) < slot.need:
        return False
    wanted = next((rule.leader_racks for rule in rules if rule.leader_racks is not None), None)
    if wanted is not None and not any(room[rack] for rack in wanted):
        return False
    if not any(rule.is_strict for rule in rules):
        return True
    low, high = slot.rules.rack_bounds(slot.need)
    return all(room[rack] >= low for rack in slot.rules.racks) and (
        sum(min(high, room[rack]) for rack in room) >= slot.need
    )


def _wrong_fixed(slot: Slot, rules: Sequence[_Rule]) -> Sequence[_Rule]:
    """Return the rules that an explicit assignment breaks."""
    wrong = [rule for rule in rules if any(rule.bars(replica) for replica in slot.fixed)]
    if slot.rules.spread is Spread.STRICT and slot.rules.rack_excess(slot.fixed):
        wrong += [rule for rule in rules if rule.is_strict]
    leaders = next((rule for rule in rules if rule.leader_racks is not None), None)
    if leaders is not None and slot.rules.rack_of.get(slot.fixed[0], NO_RACK) not in (leaders.leader_racks or ()):
        wrong.append(leaders)
    return wrong


def _rules(desired: Desired, observed: Cluster, slot: Slot) -> list[_Rule]:
    rules = [*_broker_rules(desired, observed, slot)]
    if slot.rules.declared is not None:
        rules += _topic_rules(slot.rules, slot.rules.declared)
    return rules


def _broker_rules(desired: Desired, observed: Cluster, slot: Slot) -> Iterator[_Rule]:
    registered = [*observed.brokers, *(replica for replica in slot.fixed if replica not in observed.brokers)]
    words = {
        BrokerState.DRAINING: ("declared draining", "keep one of them active"),
        BrokerState.ABSENT: ("declared absent", "declare one of them active"),
        BrokerState.CORDONED: ("cordoned", "uncordon one of them"),
    }
    for state, (word, cure) in words.items():
        found = [b for b in registered if desired.cluster.broker(b).state is state and not _stays(slot, b, state)]
        if found:
            at = desired.cluster.broker(found[0]).at
            yield _Rule(f"{_listed(found)} {_verb(found)} {word}{_at(at)}", cure, frozenset(found).__contains__)
    dead = [broker_id for broker_id in registered if not observed.is_alive(broker_id)]
    if dead:
        yield _Rule(f"{_listed(dead)} {_verb(dead)} not alive", "start one of them", frozenset(dead).__contains__)


def _stays(slot: Slot, broker_id: int, state: BrokerState) -> bool:
    return state is BrokerState.CORDONED and broker_id in slot.replicas


def _topic_rules(rules: TopicRules, declared: DesiredTopic) -> Iterator[_Rule]:
    placement = declared.placement
    if placement.brokers_only is not None:
        only = placement.brokers_only
        where = _at(declared.where("placement.brokers.only"))
        yield _Rule(f"brokers.only names {_numbers(only)}{where}", "name more brokers", lambda b: b not in only)
    if placement.brokers_except:
        where = _at(declared.where("placement.brokers.except"))
        words = f"brokers.except names {_numbers(placement.brokers_except)}{where}"
        yield _Rule(words, "except fewer brokers", placement.brokers_except.__contains__)
    if placement.racks_only is not None:
        racks = placement.racks_only
        where = _at(declared.where("placement.racks.only"))
        words = f"racks.only names {', '.join(sorted(racks))}{where}"
        yield _Rule(words, "name more racks", lambda b: rules.rack_of.get(b, NO_RACK) not in racks)
    if placement.racks_spread is Spread.STRICT:
        where = _at(declared.where("placement.racks.spread"))
        words = f"racks.spread is strict over racks {', '.join(rack or 'none' for rack in rules.racks)}{where}"
        yield _Rule(words, "let racks.spread be prefer", is_strict=True)
    if placement.racks_leader is not None:
        where = _at(declared.where("placement.racks.leader"))
        words = f"racks.leader names {', '.join(sorted(placement.racks_leader))}{where}"
        yield _Rule(words, "name more leader racks", leader_racks=placement.racks_leader)


def _at(place: Location | None) -> str:
    return f" ({place})" if place else ""


def _listed(broker_ids: Sequence[int]) -> str:
    return f"broker{'s' if len(broker_ids) > 1 else ''} {_numbers(broker_ids)}"


def _numbers(broker_ids: Iterable[int]) -> str:
    return ", ".join(str(broker_id) for broker_id in sorted(broker_ids))


def _verb(broker_ids: Sequence[int]) -> str:
    return "is" if len(broker_ids) == 1 else "are"
