"""`reconciler cancel`."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked, asked_for, refuse_state, verb_options
from reconciler.command.stopping import stopping
from reconciler.command.terminal import Teller, is_interactive, tell, write
from reconciler.model.plan import Plan
from reconciler.model.run import RunEnded, RunProgress, RunState
from reconciler.model.tally import ARRIVED

EXAMPLES = """\b
Examples:
  reconciler cancel --cluster prod-eu
  reconciler cancel plan.json
  reconciler cancel --rollback --out back.json plan.json
  reconciler cancel --rollback --yes plan.json

"""
ROLLBACK_HELP = "Then undo finished stages too, as a plan of its own."
OUT_HELP = "With --rollback: save that plan there, for show and apply, and change nothing."
DRY_RUN_HELP = "With --rollback: show that plan, check whether it may run now, and change nothing."
YES_HELP = "Do not ask before --rollback; needed where nobody can be asked."


@click.command("cancel", epilog=EXAMPLES + EPILOG)
@click.argument("plan_path", metavar="[PLAN]", required=False)
@click.option("--rollback", is_flag=True, show_envvar=True, help=ROLLBACK_HELP)
@click.option("--out", metavar="FILE", show_envvar=True, help=OUT_HELP)
@click.option("--dry-run", is_flag=True, show_envvar=True, help=DRY_RUN_HELP)
@click.option("--yes", is_flag=True, show_envvar=True, help=YES_HELP)
@verb_options(TEXT, JSON, MARKDOWN)
@click.pass_context
def command(
    context: click.Context, plan_path: str | None, out: str | None, *, rollback: bool, dry_run: bool, yes: bool
) -> int:
    """Stop a run: moves in flight go back to their ordered replicas and leaders, throttles to what they were.

    A run that is on, wherever it was started, is asked to end in order, and waited for.

    With --rollback, finished stages are undone too: partitions return to the ordered replicas and leaders that the plan
    found, topics to their configs. What it made or deleted stays so, and is named. PLAN is needed only where the run
    was started on another machine.
    """
    asked = asked_for(context)
    refuse_state(asked, "cancel")
    if not rollback:
        _refuse_misuse(asked, is_extra=bool(out or dry_run))
        return _cancel(asked, plan_path)
    if out is not None or dry_run:
        return _show(asked, plan_path, out, is_dry_run=dry_run)
    if asked.output == MARKDOWN:
        raise click.UsageError("-o markdown shows the plan of a rollback: it needs --dry-run or --out FILE.")
    if not yes and not is_interactive():
        raise click.UsageError("nobody can be asked here: look at cancel --rollback --dry-run, then give --yes.")
    return _roll_back(asked, plan_path, is_sure=yes)


def _refuse_misuse(asked: Asked, *, is_extra: bool) -> None:
    if is_extra:
        raise click.UsageError("--out and --dry-run are for cancel --rollback.")
    if asked.output == MARKDOWN:
        raise click.UsageError("cancel has no output markdown but with --rollback --dry-run or --out FILE.")


def _cancel(asked: Asked, plan_path: str | None) -> int:
    from reconciler.command.progress import heartbeat
    from reconciler.render import as_json, as_text
    from reconciler.workflow.cancel import cancel

    told = Teller()
    with stopping() as stop, heartbeat():
        try:
            ended = cancel(asked.inputs, plan_path, notify=told, should_stop=stop.reason)
        except (RunEnded, KeyboardInterrupt) as error:
            if stop.exit is None:
                raise
            told.once(str(error) or "Ended without waiting: run cancel again to put things in order.")
            return stop.exit
        code = stop.exit or Exit.DONE  # an output that is closed later keeps nothing from its end
    write(as_json.result(ended) if asked.is_json else as_text.result(ended), asked.color)
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
    from reconciler.render import as_markdown, as_text
    from reconciler.workflow.plan import plan_json, save_plan
    from reconciler.workflow.rollback import plan_to_undo, rollback_plan

    undone = plan_to_undo(asked.inputs, plan_path)
    with reading() as progress:
        shown = rollback_plan(asked.inputs, undone, progress, is_predicted=is_dry_run)
    plan = shown.plan
    if out is not None:
        save_plan(plan, out)
    if asked.is_json:
        write(plan_json(plan))
    elif asked.output == MARKDOWN:
        write(as_markdown.plan(plan))
    else:
        write(as_text.plan(plan, root=asked.inputs.root, has_stages=True), asked.color)
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
    from reconciler.command.progress import heartbeat
    from reconciler.render import as_json, as_text
    from reconciler.workflow.rollback import Hooks, plan_to_undo, roll_back

    undone = plan_to_undo(asked.inputs, plan_path)
    started = time.monotonic()
    watch = _Watch(asked, undone.cluster_name, is_sure=is_sure)
    told = Teller()
    with stopping() as stop, heartbeat(), watch.bar:
        try:
            ended = roll_back(asked.inputs, undone, Hooks(watch.is_confirmed, stop.reason, watch.progress, told))
        except (RunEnded, KeyboardInterrupt) as error:
            if stop.exit is None:
                raise
            told.once(str(error) or "Ended without waiting: run cancel --rollback again to put things in order.")
            return stop.exit
    seconds = time.monotonic() - started
    write(as_json.rolled_back(ended) if asked.is_json else as_text.rolled_back(ended, seconds=seconds), asked.color)
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
        tell(as_text.plan(plan, root=self.asked.inputs.root, has_stages=True), self.asked.color)
        return click.confirm(f"Run this rollback on {plan.cluster_name} ({plan.cluster_id})?", err=True)

    def progress(self, seen: RunProgress) -> None:
        from reconciler.command.progress import running

        self.hook = self.hook or self.bar.enter_context(running(self.cluster_name))
        self.hook(seen)
