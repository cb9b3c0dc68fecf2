"""Writes an import into a folder that declares no topic yet, and reads its files back before they are in place."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from reconciler.files.desired_writer import class_documents, scalar, topic_files
from reconciler.files.inside import LINK, WRITTEN_THROUGH, inside, required_inside
from reconciler.files.load import SUFFIXES, load_desired
from reconciler.files.strict_yaml import read_yaml
from reconciler.model.desired import CLUSTER_FILE, Balance, BalanceTarget, Desired, Even, Within
from reconciler.model.imported import Adopted
from reconciler.model.problem import ReconcilerError
from reconciler.model.words import percent
from reconciler.workflow.init import EXISTS, modeline, write_files
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import BOOTSTRAP

CLUSTER = """\
# Written by `reconciler import`: {said}
#   reconciler plan --cluster {name}
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: {quoted}}}
spec:
{cluster_id}{client}{elections}  topics:
    managed: listed                         # a topic that no file names is left alone
    delete: never
{balance}  moves:
    throttle: 50MiB/s                       # per broker and direction, whenever replicas move
"""
NO_CLIENT = """\
  # client:                                 # how to reach it: Kafka client properties, or {file: client.properties}
  #   bootstrap.servers: kafka-1:9092
"""
NO_BALANCE = """\
  # balance:                                # {why}
  #   replicas: even
  #   leaders: even
"""


def write_new(folder: Path, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Write files that are not there yet, and return their names."""
    for name in sorted(texts):
        required_inside(folder.parent, folder / name, f"{folder / name}: {WRITTEN_THROUGH}", None)
        if (folder / name).exists():
            raise already_there(folder / name)
    return write_files(folder, texts)


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


def cluster_text(
    name: str,
    said: str,
    *,
    cluster_id: str | None = None,
    client: Mapping[str, str] | None = None,
    balance: Balance | None = None,
    spans: Mapping[str, str] | None = None,
    waiting: int = 0,
) -> str:
    """Return the Cluster document. `spans`: what is to be said of each measure of the balance, by its name.

    `waiting`: the partitions that a plan would elect the preferred leader of, were elections not off.
    """
    lines = [f"    {scalar(key)}: {scalar(value)}\n" for key, value in sorted((client or {}).items())]
    partitions = "1 partition is" if waiting == 1 else f"{waiting} partitions are"
    not_led = f"{partitions} not led by the preferred leader today; without this line a plan elects it"
    return CLUSTER.format(
        said=said,
        name=name,
        quoted=scalar(name),
        cluster_id=_line(f"  clusterId: {scalar(cluster_id)}", "any other cluster is refused") if cluster_id else "",
        client="".join(["  client:\n", *lines]) if lines else NO_CLIENT,
        elections=_line("  elections: off", not_led) if waiting else "",
        balance=_balance(balance or Balance(), spans or {}),
    )


def desired_texts(
    cluster: str | None, adopted: Adopted, schemas: str | None, notes: Mapping[str, Sequence[str]] | None = None
) -> Mapping[str, str]:
    """Return all texts by file name; `cluster` is None where a cluster.yaml is there and stays."""
    texts = {}
    for file, text in topic_files(adopted, notes).items():
        up = "../" * file.count("/")  # a file may stand in a folder below the cluster's
        texts[file] = modeline(None if schemas is None else up + schemas, "Topic") + text
    if adopted.classes:
        texts["classes.yaml"] = modeline(schemas, "TopicClass") + class_documents(adopted.classes)
    if cluster is not None:
        texts["cluster.yaml"] = modeline(schemas, "Cluster") + cluster
    return texts


def target_text(target: BalanceTarget) -> str:
    """Return a target as the YAML has it."""
    match target:
        case Even():
            return "even"
        case Within(fraction):
            return f"{{within: {percent(fraction)}}}"
        case _:
            return "off"


def _balance(balance: Balance, spans: Mapping[str, str]) -> str:
    targets = {"replicas": balance.replicas, "leaders": balance.leaders, "topics": balance.topics}
    lines = [
        _line(f"    {measure}: {target_text(target)}", spans.get(measure, ""))
        for measure, target in targets.items()
        if target_text(target) != "off"
    ]
    if not lines:
        return NO_BALANCE.format(why=spans.get("none", "what to ask for once all is as it should be"))
    return _line("  balance:", "kept today, so that nothing moves for it") + "".join(lines)


def _line(text: str, comment: str) -> str:
    return f"{text:<43} # {comment}\n" if comment else f"{text}\n"
