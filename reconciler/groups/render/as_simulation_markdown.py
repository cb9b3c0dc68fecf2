"""Simulated groups as Markdown, whatever others named made inert."""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.groups.model.simulation import Comparison, Outcome
from reconciler.groups.render import simulation_tables
from reconciler.groups.render.as_simulation import change_line, shared_doubts
from reconciler.model.words import counted
from reconciler.render.escape import bullets, code_span, sentence
from reconciler.render.tables import markdown_table


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
        blocks.append(markdown_table(simulation_tables.steps(outcomes, number)))
        if len(outcomes) == 1:
            blocks.append(markdown_table(simulation_tables.owned(next(iter(outcomes.values()))[number].assignment)))
    blocks += [bullets(doubts)] if doubts else []
    return "\n\n".join(blocks) + "\n"


def _comparison(compared: Comparison) -> Iterator[str]:
    members = counted(len(compared.now.assignment), "member")
    facts = ", ".join(filter(None, (compared.state, compared.own, members)))
    yield f"### reconciler groups simulate · {code_span(compared.group_id)} · {sentence(facts)}"
    yield sentence(change_line(compared))
    yield markdown_table(simulation_tables.overview(compared))
    yield markdown_table(simulation_tables.members(compared))
    if len(compared.after) == 1:
        yield markdown_table(simulation_tables.handed_over(compared, compared.after[0]))
    notes = [*compared.notes, *shared_doubts(compared)]
    if notes:
        yield bullets(notes)
