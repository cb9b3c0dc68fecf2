"""How long a stage takes: its busiest broker's bytes over the rate."""

from collections import Counter
from collections.abc import Iterable

from reconciler.model.move import Move

# Without a throttle nobody knows the rate: about what one gigabit of network carries.
ASSUMED_BYTES_PER_SECOND = 100 * 1024 * 1024


def busiest_bytes(copies: Iterable[tuple[Move, int | None]]) -> int:
    """Return the most bytes that one broker takes in or gives out, for moves with the leader that serves each."""
    arriving: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    for move, source in copies:
        added = move.added
        for broker_id in added:
            arriving[broker_id] += move.bytes // len(added)
        if source is not None and added:
            leaving[source] += move.bytes
    return max(max(arriving.values(), default=0), max(leaving.values(), default=0))


def seconds(size: int, throttle_bytes_per_second: int | None) -> int:
    """Return the whole seconds that so many bytes take on one broker, in one direction."""
    return -(-size // (throttle_bytes_per_second or ASSUMED_BYTES_PER_SECOND))


def stage_seconds(busiest: int, throttle_bytes_per_second: int | None, *, is_copying: bool) -> int:
    """Return a stage's estimate: at least a second where anything is copied, none for orders alone."""
    return max(1, seconds(busiest, throttle_bytes_per_second)) if is_copying else 0
