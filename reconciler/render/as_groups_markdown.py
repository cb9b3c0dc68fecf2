"""Simulated groups as Markdown, whatever others named made inert."""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.group_simulation import Comparison, Outcome
from reconciler.model.words import counted
from reconciler.render import groups_tables
from reconciler.render.as_groups import change_line, shared_doubts
from reconciler.render.escape import bullets, code_span, sentence
from reconciler.render.groups_tables import Table


def comparisons(compared: Sequence[Comparison]) -> str:
    """Return each group under a heading of its own."""
    return "\n\n".join("\n\n".join(_comparison(each)) for each in compared) + "\n"


def scenario(
    title: str,
    changes: Sequence[Sequence[str]],
    outcomes: Mapping[str, Sequence[Outcome]],
    doubts: Sequence[str],
) -> str:
    """Return a scenario, one table a step. `changes`: each step's, in words."""
    blocks = [f"### {sentence(title)}"]
    for number, told in enumerate(changes):
        blocks.append(f"**Step {number + 1}**{': ' if told else ''}{sentence(', '.join(told))}")
        blocks.append(table(groups_tables.steps(outcomes, number)))
        if len(outcomes) == 1:
            blocks.append(table(groups_tables.owned(next(iter(outcomes.values()))[number].assignment)))
    blocks += [bullets(doubts)] if doubts else []
    return "\n\n".join(blocks) + "\n"


def table(shown: Table) -> str:
    """Return the table; every cell that names something is a code span."""
    marks = ["---" if column < shown.left else "---:" for column in range(len(shown.head))]
    rows = [_row(sentence(cell) for cell in row) for row in shown.rows]
    return "\n".join([_row(sentence(cell) for cell in shown.head), _row(marks), *rows])


def _row(cells: Iterator[str] | Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _comparison(compared: Comparison) -> Iterator[str]:
    members = counted(len(compared.now.assignment), "member")
    facts = ", ".join(filter(None, (compared.state, compared.own, members)))
    yield f"### reconciler groups simulate · {code_span(compared.group_id)} · {sentence(facts)}"
    yield sentence(change_line(compared))
    yield table(groups_tables.overview(compared))
    yield table(groups_tables.members(compared))
    if len(compared.after) == 1:
        yield table(groups_tables.handed_over(compared, compared.after[0]))
    notes = [*compared.notes, *shared_doubts(compared)]
    if notes:
        yield bullets(notes)
