"""Where an import writes: a folder that declares no topic yet, files that are read back before they are in place."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from reconciler.files.inside import LINK, WRITTEN_THROUGH, inside, required_inside
from reconciler.files.load import SUFFIXES, load_desired
from reconciler.files.raw import write_atomically
from reconciler.files.strict_yaml import read_yaml
from reconciler.model.desired import CLUSTER_FILE, Desired
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.init import EXISTS, NOT_WRITTEN
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import BOOTSTRAP

_SCHEMAS_FROM_CLUSTER = "../../schemas"


def write_new(folder: Path, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Write files that are not there yet, and return their names."""
    for name in sorted(texts):
        required_inside(folder.parent, folder / name, f"{folder / name}: {WRITTEN_THROUGH}", None)
        if (folder / name).exists():
            raise already_there(folder / name)
    for name, text in sorted(texts.items()):
        write_atomically(folder / name, text.encode(), "desired-state file", NOT_WRITTEN)
    return tuple(sorted(texts))


def already_there(path: Path) -> ReconcilerError:
    """Return the refusal to import over that file."""
    message = f"{path} is there already, and import overwrites nothing: name another folder with -C or --cluster"
    return ReconcilerError(message, code=EXISTS)


def refuse_declared(folder: Path) -> None:
    """Raise where that folder holds YAML other than the one Cluster document of its cluster.yaml, or is elsewhere."""
    required_inside(folder.parent, folder, f"{folder} {LINK}", None)
    for path in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix in SUFFIXES and path != folder / CLUSTER_FILE and not is_hidden:
            raise already_there(path)
    file = folder / CLUSTER_FILE
    required_inside(folder.parent, file, f"{file} {LINK}", None)
    if file.is_file() and sum(one is not None for one in read_yaml(file.read_bytes(), str(file)).documents) > 1:
        message = f"{file} declares more than the Cluster: import begins where no topic or class is declared yet"
        raise ReconcilerError(message, code=EXISTS)


def schemas_beside(root: str) -> str | None:
    """Return where editors find the schemas from a cluster's folder, None where they are not beside the root."""
    return _SCHEMAS_FROM_CLUSTER if (Path(root).resolve().parent / "schemas").is_dir() else None


def client_of(inputs: Inputs, folder: Path) -> Mapping[str, str]:
    """Return the client properties to write: a file by its name, so that no secret is copied.

    None are written where that file is outside the root: who plans gives it on the command line, too.
    """
    client = {}
    if inputs.client:
        if inside(folder.parent, Path(inputs.client)) is None:
            return {}
        client["file"] = os.path.relpath(inputs.client, folder)
    if inputs.bootstrap_server:
        client[BOOTSTRAP] = inputs.bootstrap_server
    return client


def read_back(texts: Mapping[str, str], folder: Path, name: str) -> Desired:
    """Return what these files, with a cluster.yaml that is there already, declare; raises InvalidInput as ever."""
    with tempfile.TemporaryDirectory() as root:
        there = Path(root) / name
        there.mkdir()
        files = {file: text.encode() for file, text in texts.items()}
        if CLUSTER_FILE not in files:
            files[CLUSTER_FILE] = (folder / CLUSTER_FILE).read_bytes()
        for file, content in files.items():
            (there / file).parent.mkdir(exist_ok=True)
            (there / file).write_bytes(content)
        return load_desired(Path(root), name)
