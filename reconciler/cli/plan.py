"""Declares `reconciler plan`: makes the plan, shows and saves it."""

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from reconciler.balance.cli.fail_on import fail_on
from reconciler.command.exits import Exit
from reconciler.command.options import HTML, JSON, MARKDOWN, TEXT, Asked, source_state
from reconciler.command.terminal import tell
from reconciler.command.values import BUDGET, STATISTIC_HELP, STATISTICS
from reconciler.command.verbs import option, verb
from reconciler.files.json_text import collector_paused
from reconciler.model.gates import COVERAGE, LEAST_COVERAGE, Gate
from reconciler.model.loads import Statistic
from reconciler.model.problem import Problem
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.model.budget import Budget
    from reconciler.workflow.plan import LoadsAt, Planned

WHAT_IF_HELP = (
    "Plan for a state that is supposed: drain=ID, add=ID@RACK, fail=ID, fail-rack=RACK, replicationFactor=TOPIC:N, "
    "partitions=TOPIC:N, several with commas between (\\, in the name of a rack). Such a plan is never applied."
)

FAIL_ON_HELP = (
    "With --loads: refuse those that are worth less (exit 3): coverage<50%, age>2d, or a rule that samples broke, by "
    "its name. Where coverage is not named: coverage<75%."
)

ONE_ALONE = "--state, a client, --what-if, --loads, --budget, --windows, --curve and -o html are not taken"

BUDGET_HELP = (
    "Mend all rules, then bring the balance as near as so many bytes bring it (2TiB), or as the busiest broker copies "
    "at the throttle in so long (6h)."
)


@verb(
    "plan",
    outputs=(TEXT, JSON, MARKDOWN, HTML),
    examples="""
        reconciler plan --cluster prod-eu --out plan.json
        reconciler plan --cluster demo --state snapshot.json --detailed-exitcode
        reconciler plan --only 'orders.*' -o markdown
        reconciler plan --curve
        reconciler plan --budget 2TiB --out plan.json
        reconciler plan --what-if drain=5,add=9@b
        reconciler plan --what-if fail-rack=a --state snapshot.json
        reconciler plan --cluster prod-us,prod-eu --out plans
    """,
    notes="""
        With several clusters (--cluster NAME,NAME or '*') each has its plan, and the order in which they are safe to
        apply is told: where a topic grows, its copies on other clusters grow first.
    """,
)
@option("--out", metavar="FILE", help="Save the plan there, for show and apply; of several clusters, FILE/NAME.json.")
@option("--only", metavar="PATTERN", multiple=True, help="Only topics with such names.")
@option("--what-if", metavar="WHAT,...", multiple=True, help=WHAT_IF_HELP)
@source_state
@option("--loads", metavar="DIR", help="Folder or URI of measured loads, for a balance of disks and network.")
@option("--statistic", type=STATISTICS, default="peak", show_default=True, help=STATISTIC_HELP)
@fail_on(FAIL_ON_HELP)
@option("--budget", metavar="BYTES|TIME", type=BUDGET, help=BUDGET_HELP)
@option("--windows", metavar="N", type=click.IntRange(1), help="Tell the throttle at which N windows would do.")
@option(
    "--curve",
    "is_curve_asked",
    is_flag=True,
    envvar="RECONCILER_PLAN_CURVE",
    help="Show what each budget buys, in place of a plan.",
)
@option("--detailed-exitcode", is_flag=True, help="Exit with 2 where anything differs.")
@collector_paused()  # a plan is made of very many values without cycles, and the process ends with it
def command(
    asked: Asked,
    out: str | None,
    only: tuple[str, ...],
    what_if: tuple[str, ...],
    *,
    loads: str | None,
    statistic: str,
    fail_on: tuple[Gate, ...],
    budget: "Budget | None",
    windows: int | None,
    is_curve_asked: bool,
    detailed_exitcode: bool,
) -> int:
    """Make the plan with the least movement that keeps every rule. Nothing in the cluster is changed."""
    if asked.inputs.are_several_named:
        is_of_one = bool(is_curve_asked or what_if or loads is not None or fail_on or budget or windows)
        return _several(asked, only, out, is_of_one=is_of_one, is_detailed=detailed_exitcode)
    if is_curve_asked:
        if out is not None or what_if or loads is not None or fail_on or budget or windows or detailed_exitcode:
            raise click.UsageError("--curve shows many plans and makes none: of the other options it takes --only.")
        return _curve(asked, only)
    from reconciler.balance.policies.asking import open_judge
    from reconciler.command.progress import reading
    from reconciler.files.plan_file import write_plan
    from reconciler.groups.simulate.growth import growth_warnings
    from reconciler.workflow.plan import LoadsAt, make_plan

    if fail_on and loads is None:
        raise click.UsageError("--fail-on is about measured loads, so it needs --loads.")
    at = None
    if loads is not None:
        gates = fail_on if any(gate.name == COVERAGE for gate in fail_on) else (LEAST_COVERAGE, *fail_on)
        at = LoadsAt(loads, Statistic(statistic), gates, datetime.now(UTC), _tell_warning)
    if what_if:
        made = _supposed(asked, only, what_if, at, budget)
    else:
        with reading("planning") as progress:
            made = make_plan(
                asked.inputs,
                only=only,
                loads=at,
                progress=progress,
                open_judge=open_judge,
                growth=growth_warnings,
                budget=budget,
            )
    if out is not None:
        write_plan(made.plan, out)
    _show(made, asked)
    _tell_windows(made, windows)
    if made.policies:
        tell(f"Policies asked: {made.policies}.")
    if out is not None:
        tell(f"Saved to {out}. Nothing has been changed{', and apply refuses a supposed plan' if what_if else ''}.")
    return _exit_of(made, is_detailed=detailed_exitcode)


def _exit_of(made: "Planned", *, is_detailed: bool) -> Exit:
    if made.plan.violations:
        return Exit.REFUSED
    told = made.plan.budgeted
    is_as_declared = made.plan.is_empty and not made.plan.drift and (told is None or told.is_whole)
    return Exit.CHANGES if is_detailed and not is_as_declared else Exit.DONE


def _several(asked: Asked, only: tuple[str, ...], out: str | None, *, is_of_one: bool, is_detailed: bool) -> int:
    """Plan each of several clusters by itself; `is_of_one`: an option was given that they do not take."""
    if is_of_one or asked.inputs.is_one_given or asked.output == HTML:
        raise click.UsageError(f"With several clusters, {ONE_ALONE}: plan one cluster at a time to use them.")
    from reconciler.balance.policies.asking import open_judge
    from reconciler.cli.plan_several import show_several
    from reconciler.command.progress import reading
    from reconciler.groups.simulate.growth import growth_warnings
    from reconciler.workflow.plan import make_plan

    def make(inputs: Inputs) -> "Planned":
        with reading("planning") as progress:
            return make_plan(inputs, only=only, progress=progress, open_judge=open_judge, growth=growth_warnings)

    return show_several(asked, make, partial(_exit_of, is_detailed=is_detailed), out=out)


def _tell_warning(problem: Problem) -> None:
    from reconciler.render.as_text import problem_line

    tell(problem_line(problem), "auto")


def _tell_windows(made: "Planned", asked: int | None) -> None:
    """Tell how many windows the plan needs; a plan's file does not hold them."""
    from reconciler.render.facts import in_windows

    told = in_windows(made.windows(asked), is_asked=asked is not None)
    if asked is not None and not told:
        told = "--windows: needs windows and moves.throttle in the Cluster document, and a plan that copies."
    if told:
        tell(told)


def _curve(asked: Asked, only: tuple[str, ...]) -> int:
    from reconciler.command.progress import reading
    from reconciler.render import as_curve, as_json
    from reconciler.workflow.plan import make_curve

    with reading("planning") as progress:
        curve = make_curve(asked.inputs, only=only, progress=progress)
    asked.write(
        text=lambda: as_curve.text(curve),
        json=lambda: as_json.document(curve),
        markdown=lambda: as_curve.markdown(curve),
        html=lambda: as_curve.html(curve),
    )
    return Exit.DONE


def _supposed(
    asked: Asked, only: tuple[str, ...], texts: tuple[str, ...], loads: "LoadsAt | None", budget: "Budget | None"
) -> "Planned":
    """Return the plan of what is supposed; where there is none, show what would be at once, and raise why."""
    from html import escape

    from reconciler.balance.policies.asking import open_judge
    from reconciler.command.progress import reading
    from reconciler.groups.simulate.growth import growth_warnings
    from reconciler.render.supposed import what_if_lines, what_if_markdown
    from reconciler.workflow.what_if import NotASupposition, Unplannable, plan_if, suppositions, what_if_json

    try:
        supposed = suppositions(texts)
    except NotASupposition as error:
        raise click.BadParameter(str(error), param_hint="--what-if") from None
    with reading("planning") as progress:
        outcome = plan_if(
            asked.inputs,
            supposed,
            only=only,
            loads=loads,
            progress=progress,
            open_judge=open_judge,
            growth=growth_warnings,
            budget=budget,
        )
    if isinstance(outcome, Unplannable):
        what_if = outcome.what_if
        asked.write(
            text=lambda: "\n".join(what_if_lines(what_if)),
            json=lambda: what_if_json(what_if),
            markdown=lambda: what_if_markdown(what_if),
            html=lambda: (
                f"<!DOCTYPE html>\n<title>What if</title>\n<pre>{escape(chr(10).join(what_if_lines(what_if)))}</pre>\n"
            ),
        )
        raise outcome.refusal
    return outcome


def _show(made: "Planned", asked: Asked) -> None:
    from reconciler.files.plan_file import plan_text
    from reconciler.render import as_markdown, as_text

    plan, root = made.plan, asked.inputs.root
    matched = as_text.Matched(made.topics, made.partitions, made.undeclared)

    def page() -> str:
        from reconciler.render import as_plan_html

        return as_plan_html.plan(plan)

    asked.write(
        text=lambda: asked.folded(as_text.planned(plan, matched, root=root, has_stages=asked.verbosity > 0)),
        json=lambda: plan_text(plan),
        markdown=lambda: as_markdown.plan(plan),
        html=page,
    )
    if asked.is_json:
        asked.tell([as_text.totals(plan), *as_text.effects(plan.topic_changes), *as_text.findings(plan, root=root)])
