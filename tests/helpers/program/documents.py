"""Documents of desired state as texts, and simulated clusters as folders of them."""

from pathlib import Path

from reconciler.files.snapshot import write_snapshot
from reconciler.model.cluster import Cluster


def document(kind: str, name: str, spec: str = "{}", labels: str = "{}") -> str:
    """Return a document of four lines; its spec is in one."""
    metadata = f"name: {name}" if labels == "{}" else f"name: {name}, labels: {labels}"
    return f"apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec: {spec}\n"


def edit(file: Path, old: str, new: str) -> None:
    """Replace a text that is in the file."""
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def write_simulated(observed: Cluster, *documents: str, name: str = "small", spec: str = "") -> Path:
    """Write a simulated cluster, and documents behind its own, below the working folder; return its snapshot."""
    snapshot = Path("desired-state", name, "snapshot.json")
    snapshot.parent.mkdir(parents=True, exist_ok=True)
    cluster = document("Cluster", name, f"{{simulation: snapshot.json{spec and ', '}{spec}}}")
    snapshot.with_name("cluster.yaml").write_text("---\n".join((cluster, *documents)), "utf-8")
    write_snapshot(observed, snapshot)
    return snapshot
