"""Makes the reports of simulated groups: real groups after a change, and scenarios step by step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.groups.model.simulation import Comparison, Outcome, Sharing, partition_counts, spread
from reconciler.model.assignment import Assignment
from reconciler.model.words import counted, number, rate
from reconciler.render.escape import code_span, sentence
from reconciler.render.report import Points, Report, Section, Table

MOST_MEMBERS = 50  # rows of a table: of a larger group nobody reads each member, and -o json has all
_NOTHING = ""


def comparisons(compared: Sequence[Comparison]) -> Report:
    """Return each group: what changes, how even it is under each assignor, each member, and what is not sure."""
    return Report(tuple(section for each in compared for section in _compared(each)))


def _compared(compared: Comparison) -> Iterator[Section]:
    facts = _facts(compared)
    heading = f"### reconciler groups simulate · {code_span(compared.group_id)} · {sentence(facts)}"
    yield Section(f"group {compared.group_id}: {facts}", (_changes(compared),), (heading,))
    tables = [_overview(compared), _members(compared)]
    tables += [_handed_over(compared, compared.after[0])] if len(compared.after) == 1 else []
    *others, last = tables
    yield from (Section(parts=(table,)) for table in others)
    yield Section(parts=(last, Points(notes=_notes(compared))))


def scenario(
    title: str, changes: Sequence[Sequence[str]], outcomes: Mapping[str, Sequence[Outcome]], doubts: Sequence[str]
) -> Report:
    """Return a scenario step by step; with one assignor, also who owns what. `changes`: each step's, in words."""
    told = [f": {', '.join(change)}" if change else "" for change in changes]
    steps = (
        Section(f"step {at + 1}{words}", tuple(_tables_of_step(outcomes, at)), (f"**Step {at + 1}**{sentence(words)}",))
        for at, words in enumerate(told)
    )
    head = Section(title, markdown=(f"### {sentence(title)}",))
    return Report((head, *steps, Section(parts=(Points(notes=tuple(doubts)),))), is_dense=True)


def partition_list(keys: Iterable[tuple[str, int]]) -> str:
    """Return partitions by topic, runs joined: `orders 0-3,7; clicks 2`; `nothing` for none."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(keys):
        topics.setdefault(topic, []).append(partition)
    return "; ".join(f"{topic} {_runs(partitions)}" for topic, partitions in topics.items()) or "nothing"


def _facts(compared: Comparison) -> str:
    """Return the group in a few words: `Stable, range, 3 members`."""
    members = counted(len(compared.now.assignment), "member")
    return ", ".join(filter(None, (compared.state, compared.own, members)))


def _changes(compared: Comparison) -> str:
    return "; ".join(compared.changes) or "no change: what its next rebalance would give"


def _notes(compared: Comparison) -> tuple[str, ...]:
    """Return the notes, and what Kafka may decide otherwise: each sentence once, with the assignors it is about."""
    found: dict[str, list[str]] = {}
    for sharing in compared.after:
        for doubt in sharing.doubts:
            found.setdefault(doubt, []).append(sharing.assignor)
    return (*compared.notes, *(f"{', '.join(names)}: {doubt}" for doubt, names in found.items()))


def _overview(compared: Comparison) -> Table:
    """Return one row for now and one for each assignor: how even, how much moves, who idles."""
    sharings = [compared.now, *compared.after]
    has_loads = compared.now.bytes_per_second is not None
    loads = ("bytes/s per member", "most/mean") if has_loads else ()
    head = ("", "partitions per member", "most/mean", "idle", "moved", "rebalances", *loads)
    return Table(head, tuple(_overview_row(compared, sharing, has_loads=has_loads) for sharing in sharings))


def _members(compared: Comparison) -> Table:
    """Return one row a member: its partitions now and under each assignor, with its load where loads are known."""
    sharings = [compared.now, *compared.after]
    ids = _member_ids(sharings)
    head = ("member", *(sharing.assignor for sharing in sharings))
    rows = [
        (compared.labels.get(member_id, member_id), *(_share(sharing, member_id) for sharing in sharings))
        for member_id in ids
    ]
    return Table(head, _cut(rows, len(head)))


def _handed_over(compared: Comparison, after: Sharing) -> Table:
    """Return one row a member whose partitions change under that assignor: what it gets and what it gives up."""
    ids = _member_ids([compared.now, after])
    rows = []
    for member_id in ids:
        old, new = _keys(compared.now.assignment, member_id), _keys(after.assignment, member_id)
        if old != new:
            label = compared.labels.get(member_id, member_id)
            rows.append((label, partition_list(new - old), partition_list(old - new)))
    head = ("member", "gets", "gives up")
    return Table(head, _cut(rows, len(head)), left=3, empty="nobody gets or gives up a partition")


def _tables_of_step(outcomes: Mapping[str, Sequence[Outcome]], step: int) -> Iterator[Table]:
    """Yield one row an assignor: what that step, counted from 0, comes to; with one assignor also who owns what."""
    rows = []
    for name, told in outcomes.items():
        outcome = told[step]
        moved = outcome.stats.moved_from_survivors
        rows.append(
            (
                name,
                spread(partition_counts(outcome.assignment).values()),
                number(outcome.stats.pair_score),
                _NOTHING if moved is None else number(moved),
                str(len(outcome.rounds)),
            )
        )
    yield Table(("", "partitions per member", "pair score", "moved", "rebalances"), tuple(rows))
    if len(outcomes) == 1:
        assignment = next(iter(outcomes.values()))[step].assignment
        shares = [(member_id, partition_list(_keys(assignment, member_id))) for member_id in assignment]
        yield Table(("member", "owns"), _cut(shares, 2), left=2)


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


def _cut(rows: Sequence[tuple[str, ...]], columns: int) -> tuple[tuple[str, ...], ...]:
    """Return the first rows, and how many more there are."""
    more = len(rows) - MOST_MEMBERS
    if more <= 0:
        return tuple(rows)
    return (*rows[:MOST_MEMBERS], (f"… and {number(more)} more; -o json has all", *[_NOTHING] * (columns - 1)))


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
