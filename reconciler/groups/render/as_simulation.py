"""Simulated groups as text for a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.groups.model.simulation import Comparison, Outcome
from reconciler.groups.render import simulation_tables
from reconciler.model.words import counted
from reconciler.render.escape import visible
from reconciler.render.tables import text_table


def comparisons(compared: Sequence[Comparison]) -> str:
    """Return each group: what changes, how even it is under each assignor, each member, and what is not sure."""
    return "\n".join("\n".join(_comparison(each)) + "\n" for each in compared)


def scenario(
    title: str,
    changes: Sequence[Sequence[str]],
    outcomes: Mapping[str, Sequence[Outcome]],
    doubts: Sequence[str],
) -> str:
    """Return a scenario step by step; with one assignor, also who owns what. `changes`: each step's, in words."""
    lines = [visible(title)]
    for number, told in enumerate(changes):
        lines.append(f"step {number + 1}{': ' if told else ''}{visible(', '.join(told))}")
        lines += text_table(simulation_tables.steps(outcomes, number))
        if len(outcomes) == 1:
            lines += text_table(simulation_tables.owned(next(iter(outcomes.values()))[number].assignment))
    lines += [f"note: {visible(doubt)}" for doubt in doubts]
    return "\n".join(lines) + "\n"


def shared_doubts(compared: Comparison) -> list[str]:
    """Return what Kafka may decide otherwise: each sentence once, with the assignors that it is about."""
    found: dict[str, list[str]] = {}
    for sharing in compared.after:
        for doubt in sharing.doubts:
            found.setdefault(doubt, []).append(sharing.assignor)
    return [f"{', '.join(names)}: {doubt}" for doubt, names in found.items()]


def title(compared: Comparison) -> str:
    """Return the group in one line: `group billing: Stable, range, 3 members`."""
    members = counted(len(compared.now.assignment), "member")
    return f"group {compared.group_id}: {', '.join(filter(None, (compared.state, compared.own, members)))}"


def change_line(compared: Comparison) -> str:
    """Return what changes in one line."""
    return "; ".join(compared.changes) or "no change: what its next rebalance would give"


def _comparison(compared: Comparison) -> Iterator[str]:
    yield visible(title(compared))
    yield f"  {visible(change_line(compared))}"
    yield ""
    yield from text_table(simulation_tables.overview(compared))
    yield ""
    yield from text_table(simulation_tables.members(compared))
    if len(compared.after) == 1:
        changing = simulation_tables.handed_over(compared, compared.after[0])
        yield ""
        yield from text_table(changing) if changing.rows else ["  nobody gets or gives up a partition"]
    yield from (f"  note: {visible(note)}" for note in (*compared.notes, *shared_doubts(compared)))
