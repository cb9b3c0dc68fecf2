"""Declares the options that all verbs share, accepted before and after the verb, and holds what was asked for.

A shell completes the names of clusters, files and folders from here.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TextIO, TypeVar

import click
from click.shell_completion import CompletionItem

from reconciler.command.terminal import choose_color, columns_shown, tell, write
from reconciler.workflow.inputs import DEFAULT_ROOT, Inputs, cluster_names

Command = TypeVar("Command", bound=Callable[..., object])

TEXT, JSON, MARKDOWN, HTML, KAFKA_JSON, SARIF = "text", "json", "markdown", "html", "kafka-json", "sarif"
CSV = "csv"
OUTPUTS = (TEXT, JSON, MARKDOWN, HTML, KAFKA_JSON, SARIF, CSV)
COLORS = ("auto", "always", "never")
FILES: Final = click.Path()
FOLDERS: Final = click.Path(file_okay=False)
_BY_METAVAR = {"FILE": FILES, "PLAN": FILES, "PATH": FILES, "DIR": FOLDERS}
"""What the shell completes for a parameter, by its name in the help."""


@dataclass(slots=True)
class Asked:
    """What was asked for so far: filled while the command line is read, the verb's own options last."""

    values: dict[str, str] = field(default_factory=dict)
    verbosity: int = 0
    source_states: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """The form of output."""
        return self.values.get("output", TEXT)

    @property
    def is_json(self) -> bool:
        """Whether a program reads the output, errors included."""
        return self.output == JSON

    @property
    def color(self) -> str:
        """When to colour: auto, always or never."""
        return self.values.get("color", "auto")

    def write(self, **forms: Callable[[], str]) -> None:
        """Write what was asked for in the form that was asked for: `text=`, `json=`, `kafka_json=`; text in colour."""
        write(forms[self.output.replace("-", "_")](), self.color if self.output == TEXT else "never")

    def folded(self, text: str, stream: TextIO | None = None) -> str:
        """Return the text as the stream's terminal holds it, or as COLUMNS says; as it is for a file or a pipe."""
        columns = columns_shown(stream or sys.stdout)
        if columns is None:
            return text
        from reconciler.render.folded import folded

        return folded(text, columns, is_whole=self.verbosity > 0)

    def tell(self, lines: Iterable[str]) -> None:
        """Tell these lines, such as warnings, if there are any; folded, and in colour."""
        told = "\n".join(lines)
        if told:
            tell(self.folded(told, sys.stderr), self.color)

    @property
    def inputs(self) -> Inputs:
        """Where to read from."""
        return Inputs(
            root=self.values.get("root", DEFAULT_ROOT),
            cluster=self.values.get("cluster"),
            state=self.values.get("state"),
            client=self.values.get("client"),
            bootstrap_server=self.values.get("bootstrap_server"),
            journal=self.values.get("journal"),
            source_states=self.source_states,
        )


class _VerbOption(click.Option):
    """A shared option after the verb.

    It shows its variable, but leaves reading it to the program's own option: an option before the verb would otherwise
    lose against the variable.
    """

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        del ctx
        return None


def group_options(command: Command) -> Command:
    """Give the program its shared options; these read the variables."""
    return _with_options(command, click.Option, OUTPUTS)


def verb_options(*outputs: str) -> Callable[[Command], Command]:
    """Give a verb the shared options; `outputs` are the forms that it has."""
    return lambda command: _with_options(command, _VerbOption, outputs)


def source_state(command: Command) -> Command:
    """Give a verb the option that names snapshots of the clusters that mirrors copy from."""
    text = "Snapshot of the cluster that mirrors copy from, instead of the cluster; NAME= where they copy from several."
    return click.option(
        "--source-state", metavar="[NAME=]FILE", multiple=True, help=text, show_envvar=True, expose_value=False,
        callback=_remember_source_states,
    )(command)  # fmt: skip


def asked_for(context: click.Context) -> Asked:
    """Return what was asked for, once the verb's own options are read; a form that the verb has not is refused."""
    asked = context.find_root().obj
    if not isinstance(asked, Asked):
        raise TypeError("the program was started without a place for its options")
    parameter = next(each for each in context.command.params if each.name == "output")
    choices = parameter.type.choices if isinstance(parameter.type, click.Choice) else ()
    if asked.output not in choices:
        raise click.UsageError(f"{context.info_name} has no output {asked.output}; it has {', '.join(choices)}.")
    from reconciler.command.logs import set_up_logs

    set_up_logs(asked.verbosity)
    return asked


def refuse_state(asked: Asked, verb: str) -> None:
    """Refuse a snapshot where only a cluster makes sense."""
    if asked.inputs.state:
        raise click.UsageError(f"{verb} works on a cluster, not on a snapshot: leave --state (RECONCILER_STATE) out.")


def _with_options(command: Command, kind: type[click.Option], outputs: Sequence[str]) -> Command:
    rows = (
        (("-C", "--root"), "DIR", f"Folder of the desired state [default: {DEFAULT_ROOT}].", FOLDERS),
        (("--cluster",), "NAME", "The cluster, a folder of the root; some verbs take A,B, LABEL=VALUE or '*'.", None),
        (("--state",), "FILE", "Observed state from a snapshot (- for stdin) instead of the cluster.", FILES),
        (("--client",), "FILE", "Kafka client properties to reach the cluster with.", FILES),
        (("--bootstrap-server",), "HOST:PORT", "Brokers to reach the cluster at.", None),
        (("-o", "--output"), None, "Form of the output [default: text].", click.Choice(outputs)),
        (("--journal",), "FILE", "The run journal, for all plans [default: runs/CLUSTER/PLAN-ID.jsonl].", FILES),
        (("--color",), None, "When to colour [default: auto].", click.Choice(COLORS)),
    )
    for names, metavar, text, type_ in reversed(rows):
        variable = "RECONCILER_" + names[-1].lstrip("-").replace("-", "_").upper()
        command = click.option(
            *names, metavar=metavar, help=text, type=type_, cls=kind, envvar=variable, show_envvar=True,
            expose_value=False, callback=_remember, shell_complete=clusters if names == ("--cluster",) else None,
        )(command)  # fmt: skip
    return click.option(
        "-v", "--verbose", count=True, cls=kind,
        help="Say more, such as every move of a plan; twice for the client's own log.",
        expose_value=False, callback=_remember_verbosity,
    )(command)  # fmt: skip


def _remember(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    asked = context.find_root().obj
    if value is not None and parameter.name is not None and isinstance(asked, Asked):
        asked.values[parameter.name] = value
        if parameter.name == "color":
            choose_color(value)


def _remember_source_states(context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> None:
    asked = context.find_root().obj
    if isinstance(asked, Asked):
        asked.source_states = value


def _remember_verbosity(context: click.Context, _parameter: click.Parameter, value: int) -> None:
    asked = context.find_root().obj
    if isinstance(asked, Asked):
        asked.verbosity += value


def complete_paths(command: click.Command) -> None:
    """Have the shell complete files and folders where a verb's parameters are named after one.

    Only for a command that is loaded to be completed: what it is given is a text to every verb.
    """
    for parameter in command.params:
        kind = _BY_METAVAR.get((parameter.metavar or "").strip("[].")) if parameter.type is click.STRING else None
        parameter.type = kind or parameter.type


def clusters(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the clusters of the root that begin so."""
    asked = context.find_root().obj
    root = (asked if isinstance(asked, Asked) else Asked()).inputs.root
    return [CompletionItem(name) for name in cluster_names(root) if name.startswith(incomplete)]
