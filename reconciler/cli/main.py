"""Runs the program: reads the shared options, runs one verb of the table, and ends with its exit code."""

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import NoReturn

import click

from reconciler.command.exits import (
    EPILOG,
    Exit,
    exit_of,
    of_a_path,
    tell_error,
    tell_internal_error,
    tell_of_thread,
    tell_usage_error,
)
from reconciler.command.options import Asked, group_options
from reconciler.command.stopping import OUTPUTS, Closed, Terminated, guard_outputs
from reconciler.command.terminal import choose_color, hide
from reconciler.command.verbs import Verb, VerbGroup
from reconciler.model.logins import logins_in
from reconciler.model.problem import ReconcilerError

VERBS: Mapping[str, Verb] = {
    "init": Verb(
        "reconciler.cli.init",
        "Write a commented layout, a simulated cluster to play with, or a repository's pipelines.",
    ),
    "import": Verb(
        "reconciler.cli.import_",
        "Write a cluster as it is, or another tool's topics, as desired state; again: add what came later.",
    ),
    "schemas": Verb("reconciler.cli.schemas", "Write the JSON Schemas that editors complete and check the files with."),
    "validate": Verb("reconciler.cli.validate", "Check the files alone: syntax, schema, meaning."),
    "snapshot": Verb("reconciler.cli.snapshot", "Write the observed state of a live cluster."),
    "diff": Verb(
        "reconciler.cli.diff", "Show what differs from the desired state, old -> new, or from another cluster."
    ),
    "plan": Verb("reconciler.cli.plan", "Make the plan with the least movement; nothing is changed."),
    "show": Verb("reconciler.cli.show", "Show a saved plan in any form."),
    "apply": Verb("reconciler.cli.apply", "Run a saved plan, move for move; run again to resume."),
    "throttle": Verb("reconciler.cli.throttle", "Change the rate of a running apply, from any machine."),
    "status": Verb("reconciler.cli.status", "Show the run in progress, its moves, bytes, rate and time left."),
    "cancel": Verb("reconciler.cli.cancel", "Stop a run on a legal state."),
    "doctor": Verb(
        "reconciler.cli.doctor",
        "Show what is wrong with a cluster, and what to do next; take off throttles left behind.",
    ),
    "topics": Verb(
        "reconciler.cli.topics.topics", "Topics: as Kafka shows them, who declares, owns and reads them, how large."
    ),
    "collect": Verb(
        "reconciler.balance.cli.collect", "Sample a live cluster into Parquet: sizes, leaders, end offsets."
    ),
    "loads": Verb(
        "reconciler.balance.cli.loads",
        "Make each partition's load from samples, with Spark: what plan --loads balances on.",
    ),
    "balance": Verb(
        "reconciler.balance.cli.balance",
        "Show who carries what, now and after a plan, in one cluster or all, with Spark.",
    ),
    "groups": Verb(
        "reconciler.groups.cli.groups", "Consumer groups: who reads what, how far behind, and what a change would do."
    ),
}
"""All verbs, in the order in which they are used; consumer groups and the Spark pipeline bring theirs."""
EXAMPLES = """\b
Examples:
  reconciler init --demo
  reconciler plan --cluster demo --out plan.json
  reconciler show plan.json -o markdown
  reconciler apply plan.json
  reconciler plan --cluster prod-eu --detailed-exitcode

\b
Completion, a line in the shell's startup file:
  bash  eval "$(_RECONCILER_COMPLETE=bash_source reconciler)"
  zsh   eval "$(_RECONCILER_COMPLETE=zsh_source reconciler)"
  fish  _RECONCILER_COMPLETE=fish_source reconciler | source

"""


@click.command(
    cls=VerbGroup,
    verbs=VERBS,
    subcommand_metavar="VERB ...",
    epilog=EXAMPLES + EPILOG,
    context_settings={"auto_envvar_prefix": "RECONCILER", "help_option_names": ["-h", "--help"]},
)
@click.version_option(
    package_name="kafka-reconciler", message="%(prog)s %(version)s", help="Show the version and exit.",
    allow_from_autoenv=False,  # a pipeline's RECONCILER_VERSION is no question
)  # fmt: skip
@group_options
def reconciler() -> None:
    """Bring Kafka topics and partition assignments to what YAML files declare.

    A plan is made, reviewed, and then applied exactly, or refused. The shared options stand before or after the verb.
    """


def run() -> NoReturn:
    """Run the program on the command line's arguments."""
    guard_outputs()
    signal.signal(signal.SIGTERM, _on_sigterm)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks for that
        signal.signal(signal.SIGHUP, _on_sigterm)
    threading.excepthook = tell_of_thread
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run the program on these arguments and return its exit code; every error ends here, as a sentence."""
    asked = Asked()
    choose_color(asked.color)
    variables = (value for name, value in os.environ.items() if name.startswith("RECONCILER_"))
    hide(login for text in (*arguments, *variables) for login in logins_in(text))
    try:
        try:
            code = reconciler.main(args=arguments, prog_name="reconciler", standalone_mode=False, obj=asked)
        finally:
            OUTPUTS.hush()
    except click.UsageError as error:
        tell_usage_error(error, arguments)
        return Exit.USAGE
    except ReconcilerError as error:
        code = exit_of(error)
        tell_error(error, code, is_json=asked.is_json, root=asked.inputs.root)
    except click.ClickException as error:
        tell_error(ReconcilerError(error.format_message()), Exit.ERROR, is_json=asked.is_json)
        return Exit.ERROR
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return Exit.INTERRUPTED
    except Terminated as error:
        if not isinstance(error, Closed):
            click.echo("Terminated.", err=True)
        return Exit.TERMINATED
    except Exception as error:  # noqa: BLE001 - whatever is left is our own fault, told without a traceback
        path_error = of_a_path(error)
        if path_error is None:
            tell_internal_error(error, is_traceback_shown=asked.verbosity > 0)
        else:
            tell_error(path_error, Exit.ERROR, is_json=asked.is_json)
        return Exit.ERROR
    return int(code or Exit.DONE)


def _on_sigterm(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
