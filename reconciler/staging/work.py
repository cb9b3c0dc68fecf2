"""Counts for packing, broker by broker, the work that waits and what one stage has taken on."""

from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.model.desired import MovePolicy
from reconciler.staging.step import Step


class Work:
    """What is still to do on each broker: bytes in and out, replicas to arrive, to leave, and steps to serve."""

    def __init__(self, steps: Iterable[Step]) -> None:
        """Take all steps."""
        self.bytes_in: Counter[int] = Counter()
        self.bytes_out: Counter[int] = Counter()
        self.arriving: Counter[int] = Counter()
        self.leaving: Counter[int] = Counter()
        self.serving: Counter[int] = Counter()
        self.steps = 0
        self._copying = 0
        for step in steps:
            self._count(step, 1)

    def finish(self, step: Step) -> None:
        """Take off a step that was placed."""
        self._count(step, -1)

    def stages(self, policy: MovePolicy) -> int:
        """Return how many stages the limits on replicas and partitions make necessary."""
        # No packing needs fewer: one broker alone, or all copies together, fill so many stages.
        most = max(max(self.arriving.values(), default=0), max(self.leaving.values(), default=0))
        return max(1, -(-most // policy.per_broker), -(-self._copying // policy.per_stage))

    def busiest(self, *, is_intake_only: bool) -> tuple[int, int, bool]:
        """Return the most bytes that wait for one broker, that broker, and whether they go out of it."""
        # In and out have a throttle each (KIP-73), so they go on side by side, and the longer one decides.
        taking = max(((size, broker_id, False) for broker_id, size in self.bytes_in.items()), default=(0, 0, False))
        if is_intake_only:
            return taking
        giving = max(((size, broker_id, True) for broker_id, size in self.bytes_out.items()), default=(0, 0, True))
        return max(taking, giving)

    def _count(self, step: Step, sign: int) -> None:
        self.steps += sign
        for broker_id in step.removed:
            self.leaving[broker_id] += sign
        if not step.added:
            return
        self._copying += sign
        for broker_id in step.added:
            self.bytes_in[broker_id] += sign * step.load
            self.arriving[broker_id] += sign
        if step.source is not None:
            # The leader sends every new replica a copy of its own.
            self.bytes_out[step.source] += sign * step.move.bytes
            self.serving[step.source] += sign


class Weights:
    """Weighs what waited for each broker when a stage began: the most of bytes, and of replicas at their mean size."""

    def __init__(self, work: Work) -> None:
        """Weigh the work that waits now."""
        # Limits count replicas, length counts bytes. At the mean size both have one unit, so the tighter one decides.
        mean = max(1, sum(work.bytes_in.values()) // max(1, sum(work.arriving.values())))
        self._in = {broker_id: max(n * mean, work.bytes_in[broker_id]) for broker_id, n in work.arriving.items()}
        self._left = {broker_id: n * mean for broker_id, n in work.leaving.items()}
        self._out = work.bytes_out.copy()

    def of(self, step: Step) -> int:
        """Return the weight of the busiest broker that the step touches."""
        weight = self._out[step.source] if step.added and step.source is not None else 0
        for broker_id in step.added:
            weight = max(weight, self._in[broker_id])
        for broker_id in step.removed:
            weight = max(weight, self._left[broker_id])
        return weight


Caps = tuple[Mapping[int, int], Mapping[int, int]]
"""The most replicas that may arrive at, and leave, each broker in one stage."""


def caps(work: Work, per_broker: int, stages: int) -> Caps:
    """Return each broker's even share of its replicas over so many stages, never more than the limit."""
    arriving, leaving = (
        # Even shares leave no broker with all of its replicas for the last stage, which others could not fill then.
        {broker_id: min(per_broker, -(-count // stages)) for broker_id, count in counts.items()}
        for counts in (work.arriving, work.leaving)
    )
    return arriving, leaving


class Load:
    """What one stage asks of each broker so far. `budget`: the bytes in a row that make up its length."""

    def __init__(self) -> None:
        """Begin empty, with no length yet."""
        self.placed: list[int] = []
        self.longest = 0
        self.budget: int | None = None
        self._arriving: Counter[int] = Counter()
        self._leaving: Counter[int] = Counter()
        self._bytes_in: Counter[int] = Counter()
        self._bytes_out: Counter[int] = Counter()

    def has_room_for(self, step: Step, most: Caps) -> bool:
        """Whether each of the step's brokers may have one more replica arrive or leave."""
        most_arriving, most_leaving = most
        for broker_id in step.added:
            if self._arriving[broker_id] >= most_arriving[broker_id]:
                return False
        return all(self._leaving[broker_id] < most_leaving[broker_id] for broker_id in step.removed)

    def is_short_with(self, step: Step) -> bool:
        """Whether the stage keeps within its budget when it takes the step."""
        budget = self.budget
        if budget is None or not step.added:
            return True
        if step.source is not None and self._bytes_out[step.source] + step.move.bytes > budget:
            return False
        return all(self._bytes_in[broker_id] + step.load <= budget for broker_id in step.added)

    def place(self, index: int, step: Step) -> None:
        """Take the step on."""
        self.placed.append(index)
        for broker_id in step.removed:
            self._leaving[broker_id] += 1
        if not step.added:
            return
        for broker_id in step.added:
            self._arriving[broker_id] += 1
            self._bytes_in[broker_id] += step.load
            self.longest = max(self.longest, self._bytes_in[broker_id])
        if step.source is not None:
            self._bytes_out[step.source] += step.move.bytes
            self.longest = max(self.longest, self._bytes_out[step.source])
