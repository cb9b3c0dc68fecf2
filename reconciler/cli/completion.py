"""What a shell completes beside verbs, options and their fixed values: names of clusters, files and folders."""

from typing import Final

import click
from click.shell_completion import CompletionItem

FILES: Final = click.Path()
FOLDERS: Final = click.Path(file_okay=False)
_BY_METAVAR = {"FILE": FILES, "PLAN": FILES, "PATH": FILES, "DIR": FOLDERS}


def complete_paths(command: click.Command) -> None:
    """Have the shell complete files and folders where a verb's parameters are named after one.

    Only for a command that is loaded to be completed: what it is given is a text to every verb.
    """
    for parameter in command.params:
        kind = _BY_METAVAR.get((parameter.metavar or "").strip("[].")) if parameter.type is click.STRING else None
        parameter.type = kind or parameter.type


def clusters(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the clusters of the root that begin so."""
    from reconciler.cli.options import Asked
    from reconciler.workflow.inputs import cluster_names

    asked = context.find_root().obj
    root = (asked if isinstance(asked, Asked) else Asked()).inputs.root
    return [CompletionItem(name) for name in cluster_names(root) if name.startswith(incomplete)]
