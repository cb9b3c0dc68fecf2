"""Says what must hold in every state, of every request, and where a run ends; shares no code with what runs plans."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from exhaustive.adapter import Done, ModelAdmin
from exhaustive.cases import Case, Replicas
from exhaustive.environment import DEATH, FAULT, FREE, KILL, OTHERS, SHRINK, STALE
from exhaustive.state import State, World
from helpers.plans.end_state import throttles

from reconciler.model.change import ConfigChange
from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES, Partition
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

DONE = "done"
CANCELLED = "cancelled"
NO_ANSWER = "KR600"
"""Before a run has begun: it could not look at what a killed one has left."""
STALLED = "KR702"
"""Copies may take as long as they like, and nothing else need have happened."""
BLAMES: Mapping[str, tuple[str, ...]] = {
    "KR420": (DEATH,),
    "KR421": (OTHERS,),
    "KR422": (DEATH, SHRINK),
    "KR502": (OTHERS,),
    "KR504": (OTHERS,),
    "KR600": (FAULT,),
    "KR601": (FAULT,),
    "KR701": (OTHERS,),
    "KR703": (DEATH,),
    "KR704": (FAULT, OTHERS, STALE),
    "KR705": (FAULT,),
    "KR706": (DEATH, SHRINK),
    "KR713": (KILL,),
    "KR714": (DEATH, SHRINK, OTHERS),
    "KR730": (KILL,),
    "KR736": (DEATH, FAULT),
}
"""What must have happened for a run to end with that code, one of them at least."""


class Violation(BaseException):
    """Something that must hold does not: unlike other exceptions, a run does not clean up after it."""


class Rules:
    """All that must hold for the run of one plan."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.items: dict[tuple[str, str], set[str]] = {}
        """The list items that the plan may add."""
        self.rates: dict[int, set[str]] = {}
        self.elected: set[TopicPartition] = set()
        self.throttled: set[int] = set()
        """The numbers of the stages with a throttle."""
        for stage in case.plan.stages:
            assert isinstance(stage, ReassignStage)
            self.elected |= {one.topic_partition for one in stage.elections}
            if stage.throttle_bytes_per_second is not None:
                self.throttled.add(stage.number)
                for move in stage.moves:
                    self._allow(move.topic_partition, move.from_replicas, move.to_replicas, stage)

    def _allow(self, key: TopicPartition, before: Replicas, after: Replicas, stage: ReassignStage) -> None:
        new = [broker for broker in after if broker not in before]
        leader, follower = TOPIC_THROTTLES
        for broker in before if new else ():
            self.items.setdefault((key.topic, leader), set()).add(f"{key.partition}:{broker}")
        for broker in new:
            self.items.setdefault((key.topic, follower), set()).add(f"{key.partition}:{broker}")
        for broker in (*before, *new) if new else ():
            self.rates.setdefault(broker, set()).add(str(stage.throttle_bytes_per_second))

    # Of requests

    def reassign(self, admin: ModelAdmin, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        """Look at targets before they have any effect."""
        world = admin.now_world
        for key, target in targets.items():
            if key not in self.case.chains:
                raise Violation(f"{key} is not in the plan, but is submitted to {target}")
            seen = admin.listed.get(key)
            if target is None:
                if seen is not None and seen.target_replicas not in self.case.lists(key):
                    raise Violation(f"cancels {key}, which somebody else moves to {seen.target_replicas}")
                continue
            if seen is not None:
                raise Violation(f"submits {key} to {target} over its reassignment to {seen.target_replicas}")
            self._submitted(key, tuple(target), admin, world)

    def _submitted(self, key: TopicPartition, target: Replicas, admin: ModelAdmin, world: World) -> None:
        lists, partition = self.case.lists(key), world.cluster.partition(key)
        assert partition is not None
        if target not in lists:
            raise Violation(f"{key} is submitted to {target}, which is not in the plan: {lists}")
        if key in world.touched:
            return
        if (str(key), target) in world.answered and partition.replicas == target:
            raise Violation(f"submits {key} to {target} again, where it is, though the controller has taken it")
        if not partition.is_reassigning and partition.replicas in lists[lists.index(target) + 1 :]:
            raise Violation(f"{key} goes back to {target} from {partition.replicas}, where its move has ended")
        if len(target) < min(len(partition.target_replicas), len(lists[0]), len(lists[-1])):
            raise Violation(f"{key} goes from {partition.target_replicas} to {target}: fewer than wanted")
        dead = admin.dead.intersection(target)
        if dead - set(partition.replicas):
            raise Violation(f"{key} goes to {target}, of which {sorted(dead)} are dead: it would not end")
        live_before = len(set(partition.replicas) - admin.dead)
        if len(target) - len(dead) < min(self._min_isr(key, len(target), world), live_before):
            raise Violation(f"{key} goes to {target}, of which {sorted(dead)} are dead: fewer than min ISR")
        numbers = [number for number, _, after in self.case.chains[key] if after == target]
        is_back = set(partition.replicas) == set(target) and target == lists[0]
        if numbers and not is_back:
            self._in_order(key, numbers[-1], world)
            self._is_throttled(key, numbers[-1], partition, target, admin)

    def _min_isr(self, key: TopicPartition, factor: int, world: World) -> int:
        return min(int(world.cluster.topics[key.topic].configs.get("min.insync.replicas", "1")), factor)

    def _in_order(self, key: TopicPartition, number: int, world: World) -> None:
        """A move begins once those of earlier stages have ended."""
        for other, chain in self.case.chains.items():
            due = [after for stage, _, after in chain if stage < number]
            later = [after for stage, _, after in chain if stage >= number]
            found = world.cluster.partition(other)
            if not due or found is None or other in world.touched or _is_cancelled(found, chain):
                continue
            if found.target_replicas not in [due[-1], *later]:
                raise Violation(f"{key} is submitted in stage {number}, but {other} is on {found.target_replicas}")
            if found.is_reassigning and found.target_replicas in due:
                raise Violation(f"{key} is submitted in stage {number}, but {other} is still on its way")

    def _is_throttled(
        self, key: TopicPartition, number: int, partition: Partition, target: Replicas, admin: ModelAdmin
    ) -> None:
        """A copy of ours has its throttle on before it begins, at each broker that was seen to live."""
        added = [broker for broker in target if broker not in partition.replicas]
        world = admin.now_world
        unseen = {f"broker {broker}" for broker in admin.dead}
        world = replace(world, excused=world.excused & unseen)
        missing = self._missing_throttles(key, number, partition.replicas, added, world)
        if missing:
            raise Violation(f"{key} goes to {target} without its throttle: {missing}")

    def _missing_throttles(
        self, key: TopicPartition, number: int, sources: Collection[int], added: Collection[int], world: World
    ) -> list[str]:
        if number not in self.throttled or not added:
            return []
        leader, follower = TOPIC_THROTTLES
        configs, missing = world.cluster.topics[key.topic].configs, []
        for name, broker in [*((leader, one) for one in sources), *((follower, one) for one in added)]:
            value = configs.get(name, "")
            is_listed = value == "*" or f"{key.partition}:{broker}" in value.split(",")
            if not is_listed and f"topic {key.topic} {name}" not in world.changed:
                missing.append(f"{name} lacks {key.partition}:{broker}")
        for broker in {*sources, *added}:
            for name in BROKER_THROTTLES:
                is_set = name in world.cluster.brokers[broker].configs or not world.cluster.is_alive(broker)
                if (
                    not is_set
                    and not _is_excused(f"broker {broker}", world)
                    and f"broker {broker} {name}" not in world.changed
                ):
                    missing.append(f"broker {broker} has no {name}")
        return missing

    def elect(self, admin: ModelAdmin, keys: Collection[TopicPartition]) -> None:
        """Look at elections."""
        del admin
        strangers = sorted(set(keys) - self.elected - set(self.case.chains))
        if strangers:
            raise Violation(f"elects leaders of {strangers}, which the plan does not touch")

    def topic_configs(self, admin: ModelAdmin, changes: Mapping[str, Sequence[ConfigChange]]) -> None:
        """Look at changes of topic configs."""
        del admin
        for name, keys in changes.items():
            strange = [one.key for one in keys if (name, one.key) not in self.items]
            if strange:
                raise Violation(f"topic {name}: {strange} are changed, and the plan does not throttle them")

    def broker_configs(self, admin: ModelAdmin, broker_id: int, changes: Sequence[ConfigChange]) -> None:
        """Look at changes of a broker's configs."""
        del admin
        strange = [one.key for one in changes if one.key not in BROKER_THROTTLES or broker_id not in self.rates]
        if strange:
            raise Violation(f"broker {broker_id}: {strange} are changed, and the plan does not throttle it")

    # Of states

    def state(self, state: State) -> None:
        """Look at a state."""
        world = state.world
        self._factors(world)
        self._in_flight(world)
        self._throttle_entries(world)
        if state.process is not None or not state.ended:
            self._still_throttled(world)

    def _ours(self, world: World) -> list[tuple[TopicPartition, Partition]]:
        """Return what is in flight of the plan."""
        found = [(key, world.cluster.partition(key)) for key in self.case.chains if key not in world.touched]
        return [(key, one) for key, one in found if one is not None and one.is_reassigning]

    def _factors(self, world: World) -> None:
        for key in self.case.chains:
            lists, one = self.case.lists(key), world.cluster.partition(key)
            least = min(len(lists[0]), len(lists[-1]))
            if one is not None and key not in world.touched and len(one.target_replicas) < least:
                raise Violation(f"{key} is on {one.target_replicas}: fewer than {least}")

    def _in_flight(self, world: World) -> None:
        most = self.case.plan.per_broker or 0
        received: Counter[int] = Counter()
        served: Counter[int] = Counter()
        for _, one in self._ours(world):
            received.update(one.adding_replicas)
            if one.leader is not None:
                served[one.leader] += len(one.adding_replicas)
        over = {broker: count for broker, count in received.items() if count > most}
        if over:
            raise Violation(f"brokers receive {over} replicas at once, perBroker is {most}")
        # Who leads may change under a copy: then nobody can count what one serves.
        over = {broker: count for broker, count in served.items() if count > most}
        if over and not {DEATH, SHRINK, OTHERS, STALE}.intersection(world.spent):
            raise Violation(f"brokers serve {over} replicas at once, perBroker is {most}")

    def _throttle_entries(self, world: World) -> None:
        """What stands there is what was there without us, and what the plan adds to it."""
        there = throttles(world.cluster)
        for where in sorted({*there, *world.theirs}):
            if where in world.contested or there.get(where) == world.theirs.get(where):
                continue
            theirs, value = world.theirs.get(where), there.get(where)
            kind, name, key = where.split(" ")
            if kind == "broker":
                if value not in self.rates.get(int(name), set()):
                    raise Violation(f"{where} is {value}, without us it would be {theirs}")
                continue
            kept, found = set((theirs or "").split(",")) - {""}, set((value or "").split(",")) - {""}
            if kept - found or found - kept - self.items.get((name, key), set()):
                raise Violation(f"{where} is {value!r}, without us it would be {theirs!r}")

    def _still_throttled(self, world: World) -> None:
        """A copy of ours is throttled as long as it goes on, and no run has told that it is not."""
        for key, one in self._ours(world):
            for number, before, after in self.case.chains[key]:
                added = [broker for broker in one.adding_replicas if broker in after and broker not in one.isr]
                if one.target_replicas == after and not _is_excused(str(key), world):
                    missing = self._missing_throttles(key, number, before, added, world)
                    if missing:
                        raise Violation(f"{key} is copied without its throttle: {missing}")

    # Of ends

    def end(self, done: Done, *, is_calm: bool, has_begun: bool) -> None:
        """Look at how a run, or a cancel, ended; where all `is_calm`, copies came to their end."""
        state, told = done.state, done.told
        world, code = state.world, state.ended
        blamed = {DEATH, SHRINK, OTHERS, FREE} if code == STALLED else set(BLAMES.get(code, ()))
        happened = {*world.spent, *([] if is_calm else [FREE])}
        if code not in {DONE, CANCELLED} and not blamed & happened:
            raise Violation(f"the run ends with {code}, and nothing that happened explains it ({world.spent}): {told}")
        if code == DONE:
            self._as_planned(world)
        flying = [key for key, _ in self._ours(world)]
        done.state = State(replace(world, excused=world.excused.union(map(str, flying))), state.process, code)
        unnamed = [str(key) for key in flying if not (world.spent and _is_named(key, told))]
        if (has_begun and unnamed) or (flying and code == DONE):
            raise Violation(f"the run ends with {code}, and {flying} go on: {told!r} does not say so")
        if has_begun:
            self._orders(world, told)
        if code != NO_ANSWER or has_begun:
            self._put_back(state, told)

    def killed(self, done: Done) -> None:
        """Look at what a killed process leaves: one that could not take a move back may not have come to tell of it."""
        world = done.state.world
        stuck = [
            str(key)
            for key, one in self._ours(world)
            for _, before, after in self.case.chains[key]
            if after == one.target_replicas and not (set(one.isr) >= set(before) and _are_alive(before, world))
        ]
        done.state = State(replace(world, excused=world.excused.union(stuck)))

    def _put_back(self, state: State, told: str) -> None:
        """Throttles are as they would be without us, or named."""
        world, code = state.world, state.ended
        there = throttles(world.cluster)
        for where in sorted({*there, *world.theirs}):
            kind, name, _ = where.split(" ")
            is_named = f"{kind} {name} keeps" in told or "left moves in flight under its throttles" in told
            if there.get(where) != world.theirs.get(where) and where not in world.contested and not is_named:
                raise Violation(
                    f"the run ends with {code}, and {where} is {there.get(where)!r}, "
                    f"without us it would be {world.theirs.get(where)!r}"
                )

    def _orders(self, world: World, told: str) -> None:
        """What is at rest is on one of its lists, in order; or something happened, and it is named."""
        for key in self.case.chains:
            one, lists = world.cluster.partition(key), self.case.lists(key)
            is_at_rest = one is not None and not one.is_reassigning and key not in world.touched
            if (
                one is not None
                and is_at_rest
                and one.replicas not in lists
                and not (world.spent and _is_named(key, told))
            ):
                raise Violation(f"{key} is left on {one.replicas}, which is none of {lists}: {told!r} does not say so")

    def _as_planned(self, world: World) -> None:
        for key in self.case.chains:
            one, wanted = world.cluster.partition(key), self.case.lists(key)[-1]
            if one is None or key in world.touched:
                continue
            if one.replicas != wanted:
                raise Violation(f"the run is done, and {key} is on {one.replicas}, not on {wanted}")
        if {DEATH, SHRINK, OTHERS, STALE}.intersection(world.spent):
            return
        for stage in self.case.plan.stages:
            assert isinstance(stage, ReassignStage)
            for election in stage.elections:
                one = world.cluster.partition(election.topic_partition)
                is_last = one is not None and one.replicas[0] == election.leader
                if one is not None and is_last and one.leader != election.leader:
                    raise Violation(f"the run is done, and {election.topic_partition} is led by {one.leader}")

    def second(self, done: Done) -> None:
        """Look at an apply of a plan that was run to its end, with nothing happening since."""
        world = done.state.world
        if done.asked or (done.state.ended != DONE and not world.touched):
            raise Violation(f"a second apply ends with {done.state.ended}, and asked for {done.asked}: {done.told}")
        there = throttles(world.cluster)
        wrong = [where for where in sorted({*there, *world.theirs}) if there.get(where) != world.theirs.get(where)]
        wrong = [where for where in wrong if where not in world.contested]
        if wrong:
            raise Violation(f"all is well, and {wrong} are not as they would be without us")


def _is_named(key: TopicPartition, told: str) -> bool:
    """Whether a text says what became of a partition that is not as the plan has it."""
    lines = told.splitlines()
    return any(line.startswith(f"{key}: ") or "may still be in flight" in line for line in lines)


def _are_alive(brokers: Replicas, world: World) -> bool:
    return all(map(world.cluster.is_alive, brokers))


def _is_excused(name: str, world: World) -> bool:
    return not world.excused.isdisjoint({name, f"{name}, seen"})


def _is_cancelled(partition: Partition, chain: Sequence[tuple[int, Replicas, Replicas]]) -> bool:
    """Whether a partition is as Kafka's own cancel of one of its moves leaves it: in the new order, without the new."""
    return not partition.is_reassigning and any(
        partition.replicas == (*(one for one in after if one in before), *sorted(set(before) - set(after)))
        for _, before, after in chain
    )
