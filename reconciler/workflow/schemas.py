"""Writes the JSON Schemas of this version, so that editors find them without a network where modelines point to."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from reconciler.files.paths import is_there
from reconciler.files.raw import write_atomically
from reconciler.files.schema_check import SCHEMA_FILES, schema_folder
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.init import EXISTS, NOT_WRITTEN

_OURS = "https://reconciler.invalid/schemas/"
"""How the $id of each schema begins: one that is there already is made new, anything else is left alone."""


@dataclass(frozen=True, slots=True)
class WrittenSchemas:
    """The schemas that were written."""

    folder: Annotated[str, "Where they are."]
    files: Annotated[tuple[str, ...], "Their files, below the folder."]


def write_schemas(root: str, folder: str | None, *, are_all: bool = False) -> WrittenSchemas:
    """Write the schemas of documents, or all of them, to that folder; by default to the one beside the root.

    Raises ReconcilerError where a file of that name is there and is no schema of this program.
    """
    target = Path(folder or os.path.normpath(Path(root, "..", "schemas")))
    names = sorted(path.name for path in schema_folder().glob("*.json")) if are_all else sorted(SCHEMA_FILES.values())
    for name in names:
        if is_there(target / name) and not _is_ours(target / name):
            message = (
                f"{target / name} is there already, and is no schema of reconciler: name another folder with --out"
            )
            raise ReconcilerError(message, code=EXISTS)
    for name in names:
        write_atomically(target / name, (schema_folder() / name).read_bytes(), "schema", NOT_WRITTEN)
    return WrittenSchemas(str(target), tuple(names))


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and str(found.get("$id", "")).startswith(_OURS)
