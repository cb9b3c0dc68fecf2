"""`init`: a commented layout to fill in, or a demo cluster that has something wrong on purpose."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.files.inside import WRITTEN_THROUGH, required_inside
from reconciler.files.raw import write_atomically
from reconciler.model.cluster import Cluster
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.demo import demo_cluster, demo_files
from reconciler.workflow.inputs import checked_name
from reconciler.workflow.layout import layout_files

DEMO = "demo"
DEFAULT_NAME = "my-cluster"
NOT_WRITTEN = "KR011"
EXISTS = "KR012"
_SCHEMAS_FROM_CLUSTER = "../../schemas"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: the cluster's folder, its files, and the simulated cluster, if it has one."""

    folder: str
    name: str
    files: tuple[str, ...]
    cluster: Cluster | None = None


def write_layout(root: str, name: str | None = None) -> Written:
    """Write a commented layout for a real cluster; what is there is never overwritten."""
    chosen = name or DEFAULT_NAME
    folder = _new_folder(root, chosen)
    return Written(str(folder), chosen, _write(folder, layout_files(chosen, _schemas(root))))


def write_demo(root: str, name: str | None = None) -> Written:
    """Write the demo: a simulated cluster, kept in a file, and its desired state."""
    if name not in {None, DEMO}:
        raise ReconcilerError(f"the demo's cluster is called {DEMO}, not {name}; leave --cluster out", code=EXISTS)
    folder = _new_folder(root, DEMO)
    return Written(str(folder), DEMO, _write(folder, demo_files(_schemas(root))), demo_cluster())


def _new_folder(root: str, name: str) -> Path:
    folder = Path(root) / checked_name(name)
    required_inside(Path(root), folder, f"{folder} {WRITTEN_THROUGH}", None)
    if folder.exists():
        raise ReconcilerError(f"{folder} exists already and is left as it is; name another DIR", code=EXISTS)
    return folder


def _write(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    for name, text in sorted(files.items()):
        write_atomically(folder / name, text.encode(), "desired-state file", NOT_WRITTEN)
    return tuple(sorted(files))


def _schemas(root: str) -> str | None:
    """Return where editors find the schemas from a cluster's folder, None where they are not beside the root."""
    return _SCHEMAS_FROM_CLUSTER if (Path(root).resolve().parent / "schemas").is_dir() else None
