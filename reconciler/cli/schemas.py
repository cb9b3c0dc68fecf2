"""Declares `reconciler schemas`: writes the JSON Schemas that editors complete and check files with."""

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb

OUT_HELP = "Write them there; by default to the folder schemas beside the root (-C), where modelines point to."
ALL_HELP = "Those of snapshots, plans and every -o json, too."


@verb(
    "schemas",
    outputs=(TEXT, JSON),
    examples="""
        reconciler schemas
        reconciler schemas --out schemas --all
    """,
)
@option("--out", metavar="DIR", help=OUT_HELP)
@option("--all", "are_all", is_flag=True, envvar="RECONCILER_SCHEMAS_ALL", help=ALL_HELP)
def command(asked: Asked, *, out: str | None, are_all: bool) -> int:
    """Write the JSON Schemas of desired-state documents, for editors that read them: no network is needed.

    The first line of a file names its schema (# yaml-language-server: $schema=). Again, after an upgrade: they are made
    new; what is no schema of reconciler is never overwritten.
    """
    from reconciler.model.words import counted
    from reconciler.render.as_json import document
    from reconciler.workflow.schemas import write_schemas

    written = write_schemas(asked.inputs.root, out, are_all=are_all)
    if asked.is_json:
        write(document(written))
    else:
        tell(f"Wrote {written.folder}: {counted(len(written.files), 'schema')}, {', '.join(written.files)}.")
    return Exit.DONE
