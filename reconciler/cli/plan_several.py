"""Runs `plan` for several clusters: shows and saves their plans in the order in which they are safe to apply."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.command.exits import Exit
from reconciler.command.options import Asked
from reconciler.command.several import of_each, tell_failed
from reconciler.command.terminal import tell
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.workflow.plan import Planned
    from reconciler.workflow.plan_several import Several


def show_several(
    asked: Asked, make: Callable[[Inputs], "Planned"], exit_code: Callable[["Planned"], Exit], *, out: str | None
) -> int:
    """Show the plan of each cluster, save it as `OUT/NAME.json`, and return the worst exit code."""
    from reconciler.files.plan_file import write_plan
    from reconciler.render import as_json, as_markdown, as_several
    from reconciler.render.as_text import problems
    from reconciler.workflow.plan_several import in_order

    inputs = asked.inputs
    found = of_each(asked, make)
    several = in_order(inputs, found.made, found.failed)
    summary = found.summary(lambda one: (as_markdown.in_short(one.plan), exit_code(one)))
    for name, made in several.planned.items() if out is not None else ():
        write_plan(made.plan, Path(str(out)) / f"{name}.json")
    asked.write(
        text=lambda: asked.folded(
            as_several.text(_text(several, inputs.root, has_stages=asked.verbosity > 0), summary)
        ),
        json=lambda: as_json.document(replace(several.report, summary=summary)),
        markdown=lambda: "\n".join([*_markdown(several), as_several.table(summary).markdown()]),
    )
    asked.tell(problems(several.warnings, root=inputs.root))
    if out is not None and several.planned:
        saved = ", ".join(str(Path(out) / f"{name}.json") for name in several.planned)
        tell(f"Saved to {saved}. Nothing has been changed.")
    return tell_failed(asked, several.failed, map(exit_code, several.planned.values()))


def _text(several: "Several", root: str, *, has_stages: bool) -> list[str]:
    from reconciler.render.as_text import Matched, planned
    from reconciler.render.escape import visible

    shown = []
    for name, made in several.planned.items():
        matched = Matched(made.topics, made.partitions, made.undeclared)
        shown.append(f"{visible(name)}\n{planned(made.plan, matched, root=root, has_stages=has_stages)}")
    return [*shown, *_order(several)]


def _markdown(several: "Several") -> list[str]:
    from reconciler.render import as_markdown

    shown = [as_markdown.plan(made.plan) for made in several.planned.values()]
    return [*shown, *_order(several)]


def _order(several: "Several") -> list[str]:
    from reconciler.render.escape import visible

    if not several.reasons:
        return []
    told = [f"Apply in this order: {', '.join(several.planned)}.", *(f"{each}." for each in several.reasons)]
    return [f"{visible(each)}\n" for each in told]
