"""Declares `reconciler cancel`: stops a run, and with --rollback undoes what it did."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked
from reconciler.command.stopping import ending_in_order
from reconciler.command.terminal import Teller, is_confirmed, require_answers, tell
from reconciler.command.verbs import option, verb
from reconciler.model.plan import Plan
from reconciler.model.run import RunProgress, RunState
from reconciler.model.tally import ARRIVED

ROLLBACK_HELP = "Then undo finished stages too, as a plan of its own."
OUT_HELP = "With --rollback: save that plan there, for show and apply, and change nothing."
DRY_RUN_HELP = "With --rollback: show that plan, check whether it may run now, and change nothing."
YES_HELP = "Do not ask; needed where nobody can be asked, for --rollback and for what only the cluster's record names."


@verb(
    "cancel",
    outputs=(TEXT, JSON, MARKDOWN),
    is_live=True,
    examples="""
        reconciler cancel --cluster prod-eu
        reconciler cancel plan.json
        reconciler cancel --rollback --out back.json plan.json
        reconciler cancel --rollback --yes plan.json
    """,
)
@click.argument("plan_path", metavar="[PLAN]", required=False)
@option("--rollback", is_flag=True, help=ROLLBACK_HELP)
@option("--out", metavar="FILE", help=OUT_HELP)
@option("--dry-run", is_flag=True, help=DRY_RUN_HELP)
@option("--yes", is_flag=True, help=YES_HELP)
def command(asked: Asked, plan_path: str | None, out: str | None, *, rollback: bool, dry_run: bool, yes: bool) -> int:
    """Stop a run: moves in flight go back to their ordered replicas and leaders, throttles to what they were.

    A run that is on, wherever it was started, is asked to end in order, and waited for.

    With --rollback, finished stages are undone too: partitions return to the ordered replicas and leaders that the plan
    found, topics to their configs. What it made or deleted stays so, and is named. PLAN is needed where the run was
    started on another machine: without it, cancel shows what the record in the cluster names, and asks.
    """
    if not rollback:
        if out or dry_run:
            raise click.UsageError("--out and --dry-run are for cancel --rollback.")
        if asked.output == MARKDOWN:
            raise click.UsageError("cancel has no output markdown but with --rollback --dry-run or --out FILE.")
        return _cancel(asked, plan_path, is_sure=yes)
    if out is not None or dry_run:
        return _show(asked, plan_path, out, is_dry_run=dry_run)
    if asked.output == MARKDOWN:
        raise click.UsageError("-o markdown shows the plan of a rollback: it needs --dry-run or --out FILE.")
    if not yes:
        require_answers("look at cancel --rollback --dry-run")
    return _roll_back(asked, plan_path, is_sure=yes)


def _cancel(asked: Asked, plan_path: str | None, *, is_sure: bool) -> int:
    from reconciler.command.progress import working
    from reconciler.render import as_json, as_text
    from reconciler.workflow.cancel import cancel

    told = Teller()

    def confirmed(lines: Sequence[str]) -> bool:
        head = "Only the run's record in the cluster names this, and others can write it:"
        tell("\n".join([head, *(f"  ~ {line}" for line in lines)]))
        if is_sure:
            return True
        require_answers("name the plan of the run: reconciler cancel PLAN")
        return is_confirmed("Take back and take off what it names?")

    with ending_in_order(told, "cancel again") as stop, working():
        ended = cancel(asked.inputs, plan_path, notify=told, should_stop=stop.reason, is_confirmed=confirmed)
        if ended is None:
            tell("Nothing has been changed.")
            return Exit.STOPPED
        # An output that is closed later keeps nothing from its end.
        code = stop.exit or (Exit.STOPPED if ended.has_undecided else Exit.DONE)
    asked.write(text=lambda: as_text.result(ended), json=lambda: as_json.document(ended))
    if ended.undoes is not None:
        tell(f"cancel --rollback goes on with this rollback, an apply of plan {ended.undoes} undoes it.")
    elif ended.state is RunState.DONE:
        tell("cancel --rollback undoes it.")
    elif ended.stages_done or (ended.tally is not None and ended.tally.of(*ARRIVED)):
        tell("What is done stays: apply goes on from there, cancel --rollback undoes it.")
    return code


def _show(asked: Asked, plan_path: str | None, out: str | None, *, is_dry_run: bool) -> int:
    """Make the rollback's plan, show and save it; a dry run ends as the rollback would."""
    from reconciler.command.progress import reading
    from reconciler.files.plan_file import plan_text, write_plan
    from reconciler.render import as_markdown, as_text
    from reconciler.workflow.cancel import plan_to_undo, rollback_plan

    undone = plan_to_undo(asked.inputs, plan_path)
    with reading() as progress:
        shown = rollback_plan(asked.inputs, undone, progress, is_predicted=is_dry_run)
    plan = shown.plan
    if out is not None:
        write_plan(plan, out)
    asked.write(
        text=lambda: asked.folded(as_text.plan(plan, root=asked.inputs.root, has_stages=True)),
        json=lambda: plan_text(plan),
        markdown=lambda: as_markdown.plan(plan),
    )
    if shown.is_begun:
        tell(f"This rollback of plan {undone.id} was begun and stopped: cancel --rollback, or apply, goes on with it.")
    tell(f"{f'Saved to {out}' if out is not None else 'Dry run'}: nothing has been changed.")
    if shown.refusal is not None:
        raise shown.refusal
    if plan.violations:
        return Exit.REFUSED
    if is_dry_run and shown.left:
        tell("The rollback would end with exit code 1: what the warnings name stays as it is.")
        return Exit.ERROR
    return Exit.DONE


def _roll_back(asked: Asked, plan_path: str | None, *, is_sure: bool) -> int:
    from reconciler.command.progress import working
    from reconciler.render import as_json, as_text
    from reconciler.workflow.cancel import Hooks, plan_to_undo, roll_back

    undone = plan_to_undo(asked.inputs, plan_path)
    started = time.monotonic()
    watch = _Watch(asked, undone.cluster_name, is_sure=is_sure)
    told = Teller()
    with ending_in_order(told, "cancel --rollback again") as stop, working(), watch.bar:
        ended = roll_back(asked.inputs, undone, Hooks(watch.is_confirmed, stop.reason, watch.progress, told))
    seconds = time.monotonic() - started
    asked.write(text=lambda: as_text.rolled_back(ended, seconds=seconds), json=lambda: as_json.document(ended))
    if ended.is_declined:
        tell("What had ended stays as it is.")
    return Exit.STOPPED if ended.is_declined else Exit.DONE


@dataclass(slots=True)
class _Watch:
    """Somebody at a terminal: is asked before each plan, and sees a bar while it runs, never both at once."""

    asked: Asked
    cluster_name: str
    is_sure: bool
    bar: ExitStack = field(default_factory=ExitStack)
    hook: Callable[[RunProgress], None] | None = None

    def is_confirmed(self, plan: Plan) -> bool:
        from reconciler.render import as_text

        self.bar.close()
        self.hook = None
        if self.is_sure:
            return True
        self.asked.tell([as_text.plan(plan, root=self.asked.inputs.root, has_stages=True)])
        return is_confirmed(f"Run this rollback on {plan.cluster_name} ({plan.cluster_id})?")

    def progress(self, seen: RunProgress) -> None:
        from reconciler.command.progress import running

        self.hook = self.hook or self.bar.enter_context(running(self.cluster_name))
        self.hook(seen)
