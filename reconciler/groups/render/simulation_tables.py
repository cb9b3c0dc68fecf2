"""What simulated groups come to, as tables that text and Markdown share."""

from collections.abc import Iterable, Mapping, Sequence

from reconciler.groups.model.simulation import Comparison, Outcome, Sharing, spread
from reconciler.model.assignment import Assignment
from reconciler.model.words import number, rate
from reconciler.render.tables import Table

MOST_MEMBERS = 50
_NOTHING = ""


def overview(compared: Comparison) -> Table:
    """Return one row for now and one for each assignor: how even, how much moves, who idles."""
    sharings = [compared.now, *compared.after]
    has_loads = compared.now.bytes_per_second is not None
    loads = ("bytes/s per member", "most/mean") if has_loads else ()
    head = ("", "partitions per member", "most/mean", "idle", "moved", "rebalances", *loads)
    return Table(head, tuple(_overview_row(compared, sharing, has_loads=has_loads) for sharing in sharings))


def members(compared: Comparison) -> Table:
    """Return one row a member: its partitions now and under each assignor, with its load where loads are known."""
    sharings = [compared.now, *compared.after]
    ids = _member_ids(sharings)
    head = ("member", *(sharing.assignor for sharing in sharings))
    rows = [
        (compared.labels.get(member_id, member_id), *(_share(sharing, member_id) for sharing in sharings))
        for member_id in ids[:MOST_MEMBERS]
    ]
    return Table(head, (*rows, *_left_out(len(ids), len(head))))


def handed_over(compared: Comparison, after: Sharing) -> Table:
    """Return one row a member whose partitions change under that assignor: what it gets and what it gives up."""
    ids = _member_ids([compared.now, after])
    rows = []
    for member_id in ids:
        old, new = _keys(compared.now.assignment, member_id), _keys(after.assignment, member_id)
        if old != new:
            label = compared.labels.get(member_id, member_id)
            rows.append((label, partition_list(new - old), partition_list(old - new)))
    head = ("member", "gets", "gives up")
    return Table(head, (*rows[:MOST_MEMBERS], *_left_out(len(rows), len(head))), left=3)


def steps(outcomes: Mapping[str, Sequence[Outcome]], number_: int) -> Table:
    """Return one row an assignor: what that step, counted from 0, comes to."""
    head = ("", "partitions per member", "pair score", "moved", "rebalances")
    rows = []
    for name, told in outcomes.items():
        outcome = told[number_]
        counts = [sum(map(len, topics.values())) for topics in outcome.assignment.values()]
        moved = outcome.stats.moved_from_survivors
        rows.append(
            (
                name,
                spread(counts),
                number(outcome.stats.pair_score),
                _NOTHING if moved is None else number(moved),
                str(len(outcome.rounds)),
            )
        )
    return Table(head, tuple(rows))


def owned(assignment: Assignment) -> Table:
    """Return one row a member: what it owns."""
    rows = [(member_id, partition_list(_keys(assignment, member_id))) for member_id in assignment]
    return Table(("member", "owns"), (*rows[:MOST_MEMBERS], *_left_out(len(rows), 2)), left=2)


def partition_list(keys: Iterable[tuple[str, int]]) -> str:
    """Return partitions by topic, runs joined: `orders 0-3,7; clicks 2`; `nothing` for none."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(keys):
        topics.setdefault(topic, []).append(partition)
    return "; ".join(f"{topic} {_runs(partitions)}" for topic, partitions in topics.items()) or "nothing"


def _overview_row(compared: Comparison, sharing: Sharing, *, has_loads: bool) -> tuple[str, ...]:
    is_own = sharing.assignor == compared.own
    is_now = sharing is compared.now
    cells = (
        f"{sharing.assignor} (the group's own)" if is_own else sharing.assignor,
        spread(sharing.counts.values()),
        _ratio(sharing.count_imbalance),
        number(len(sharing.idle)),
        _NOTHING if is_now else number(len(sharing.moved)),
        _NOTHING if is_now else str(sharing.rebalances),
    )
    if not has_loads:
        return cells
    return (*cells, _rates(sharing.bytes_per_second or {}), _ratio(sharing.load_imbalance))


def _rates(loads: Mapping[str, int]) -> str:
    if not loads:
        return _NOTHING
    low, high = rate(min(loads.values())), rate(max(loads.values()))
    return low if low == high else f"{low} to {high}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(sharing: Sharing, member_id: str) -> str:
    if member_id not in sharing.assignment:
        return "-"
    count = number(sharing.counts[member_id])
    if sharing.bytes_per_second is None:
        return count
    return f"{count}, {rate(sharing.bytes_per_second[member_id])}"


def _member_ids(sharings: Iterable[Sharing]) -> list[str]:
    """Return every member there is or will be, in the order in which they come."""
    return list(dict.fromkeys(member_id for sharing in sharings for member_id in sharing.assignment))


def _left_out(count: int, columns: int) -> list[tuple[str, ...]]:
    if count <= MOST_MEMBERS:
        return []
    return [(f"… and {number(count - MOST_MEMBERS)} more; -o json has all", *[_NOTHING] * (columns - 1))]


def _keys(assignment: Assignment, member_id: str) -> set[tuple[str, int]]:
    topics = assignment.get(member_id, {})
    return {(topic, partition) for topic, partitions in topics.items() for partition in partitions}


def _runs(partitions: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for partition in partitions:
        if runs and runs[-1][-1] + 1 == partition:
            runs[-1][1:] = [partition]
        else:
            runs.append([partition])
    return ",".join("-".join(map(str, run)) for run in runs)
