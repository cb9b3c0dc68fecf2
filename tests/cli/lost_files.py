"""A cluster with all topics managed and deletion allowed, and what can happen to the files that declare them."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.program.documents import document

READ = ("orders.events", "users.signed-up")
"""The topics with a live group."""
FILES = {
    "orders": ("orders.events", *(f"orders.part-{number:02}" for number in range(11))),
    "payments": ("payments.received", "payments.sent"),
    "users": ("users.signed-up",),
    "clicks": ("web.clicks",),
    "metrics": tuple(f"metrics.host-{number:02}" for number in range(16)),
    "logs": tuple(f"logs.service-{number:02}" for number in range(12)),
}
"""File -> topics; `orders`, `metrics` and `logs` hold 40 together."""
TOPICS = tuple(sorted(name for names in FILES.values() for name in names))

CLUSTER = """\
apiVersion: reconciler/v1
kind: Cluster
metadata: {name: NAME}
spec:
  simulation: state.json
  topics: {managed: all, delete: allow}
  limits:
    changedPartitions: 20%
"""
CLASS = document("TopicClass", "standard", "{replicationFactor: 3}")
TOPIC = """\
apiVersion: reconciler/v1
kind: Topic
metadata:
  name: NAME
spec:
  class: standard
  partitions: 2
"""


def write_root(root: Path) -> None:
    """Write `prod`, in which everything is as declared, and `staging`, a smaller one."""
    _write_cluster(root / "prod", FILES)
    _write_cluster(root / "staging", {"clicks": ("web.clicks",)})


def _write_cluster(folder: Path, files: dict[str, tuple[str, ...]]) -> None:
    (folder / "topics").mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", folder.name), "utf-8")
    (folder / "classes.yaml").write_text(CLASS, "utf-8")
    for name, topics in files.items():
        documents = [TOPIC.replace("NAME", topic) for topic in topics]
        (folder / "topics" / f"{name}.yaml").write_text("---\n".join(documents), "utf-8")
    state = observed([topic for topics in files.values() for topic in topics])
    (folder / "state.json").write_text(json.dumps(state), "utf-8")


def observed(topics: Sequence[str]) -> dict[str, object]:
    """Return a snapshot: three brokers, topics of two partitions, and two live groups."""
    return {
        "formatVersion": "1.0",
        "clusterId": "lost-files",
        "brokers": [{"id": number, "rack": rack} for number, rack in ((1, "a"), (2, "b"), (3, "c"))],
        "topics": [
            {
                "name": name,
                "topicId": f"id-of-{name}",
                "partitions": [
                    {
                        "partition": number,
                        "leader": number + 1,
                        "replicas": [number + 1, number + 2, 3 if number == 0 else 1],
                        "isr": [1, 2, 3],
                        "sizes": [1000, 1000, 1000],
                        "endOffset": 10,
                    }
                    for number in range(2)
                ],
            }
            for name in sorted(topics)
        ],
        "groups": [
            {
                "groupId": f"readers-of-{name}",
                "state": "Stable",
                "protocol": "range",
                "members": [
                    {"memberId": f"m{number}", "subscription": [name], "assignment": {name: [number]}}
                    for number in range(2)
                ],
                "offsets": {},
            }
            for name in READ
        ],
    }


def topics_in(state: Path) -> dict[str, tuple[object, int]]:
    """Return the topics of a simulated cluster: id and number of partitions."""
    found = json.loads(state.read_text("utf-8"))["topics"]
    return {topic["name"]: (topic.get("topicId"), len(topic["partitions"])) for topic in found}


@dataclass(frozen=True, slots=True)
class Mishap:
    """What happened, done to the root; `arguments` in place of `--cluster prod`; `state`: where the cluster is then."""

    name: str
    happens: Callable[[Path], object]
    arguments: tuple[str, ...] = ("--cluster", "prod")
    state: str = "prod/state.json"


def _file(root: Path, name: str) -> Path:
    return root / "prod" / "topics" / f"{name}.yaml"


def _lost(*names: str) -> Callable[[Path], object]:
    def happens(root: Path) -> None:
        for name in names:
            _file(root, name).unlink()

    return happens


def _written(name: str, content: str | bytes) -> Callable[[Path], object]:
    data = content.encode() if isinstance(content, str) else content
    return lambda root: _file(root, name).write_bytes(data)


def _edited(name: str, change: Callable[[str], str], encoding: str = "utf-8") -> Callable[[Path], object]:
    def happens(root: Path) -> None:
        text = _file(root, name).read_text("utf-8")
        changed = change(text)
        assert changed != text or encoding != "utf-8"
        _file(root, name).write_bytes(changed.encode(encoding))

    return happens


def _moved(name: str, to: str) -> Callable[[Path], object]:
    def happens(root: Path) -> None:
        (root / to).parent.mkdir(parents=True, exist_ok=True)
        _file(root, name).rename(root / to)

    return happens


def _folder(change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda root: change(root / "prod" / "topics")


def _linked(name: str, to: str) -> Callable[[Path], object]:
    def happens(root: Path) -> None:
        _file(root, name).unlink()
        _file(root, name).symlink_to(to)

    return happens


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _half_merged(text: str) -> str:
    return text.replace(
        "  partitions: 2\n", "<<<<<<< ours\n  partitions: 2\n=======\n  partitions: 3\n>>>>>>> theirs\n", 1
    )


def _commented(text: str) -> str:
    return "".join(f"# {line}" for line in text.splitlines(keepends=True))


def _first_half(text: str) -> str:
    documents = text.split("---\n")
    return "---\n".join(documents[: len(documents) // 2])


def _without_three(text: str) -> str:
    return "---\n".join(text.split("---\n")[3:])


def _replaced_by_a_folder(root: Path) -> None:
    _file(root, "orders").unlink()
    _file(root, "orders").mkdir()


def _broken_folder_link(root: Path) -> None:
    shutil.rmtree(root / "prod" / "topics")
    (root / "prod" / "topics").symlink_to("../../gone")


def _older_root(root: Path) -> None:
    """A second checkout beside the root, of a time before most topics; its simulated cluster is as the first one's."""
    older = root.parent / "older"
    shutil.copytree(
        root / "prod", older / "prod", ignore=lambda _folder, names: {"metrics.yaml", "logs.yaml"} & {*names}
    )


def _cluster_file(change: Callable[[str], str]) -> Callable[[Path], object]:
    def happens(root: Path) -> None:
        path = root / "prod" / "cluster.yaml"
        path.write_text(change(path.read_text("utf-8")), "utf-8")

    return happens


def _both(*changes: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda root: [change(root) for change in changes]


def _first(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


OLDER = ("-C", "older", "--cluster", "prod")
MISHAPS = (
    # lost
    Mishap("three files of 40 topics are lost", _lost("orders", "metrics", "logs")),
    Mishap("a file of two topics is lost", _lost("payments")),
    Mishap("the file of one topic that is read is lost", _lost("users")),
    Mishap("that file and one of an unread topic are lost", _lost("users", "clicks")),
    Mishap("all topic files are lost", _lost(*FILES)),
    Mishap("the folder of topics is lost", _folder(shutil.rmtree)),
    Mishap("the class file is lost", lambda root: (root / "prod" / "classes.yaml").unlink()),
    Mishap("cluster.yaml is lost", lambda root: (root / "prod" / "cluster.yaml").unlink()),
    Mishap("cluster.yaml is emptied", _cluster_file(lambda _text: "")),
    Mishap(
        "cluster.yaml is cut short before its limits, and a file is lost",
        _both(_cluster_file(lambda text: text[: text.index("  limits")]), _lost("payments")),
    ),
    Mishap("the checkout is empty", _emptied, state=""),
    Mishap("a sparse checkout leaves the Cluster document alone", _folder(_emptied)),
    Mishap("another checkout is named, an older one", _older_root, OLDER, state="../older/prod/state.json"),
    Mishap("a folder is named in which there is no root", lambda _root: None, ("-C", ".", "--cluster", "prod")),
    # emptied
    Mishap("a file of many topics is emptied", _written("orders", "")),
    Mishap("the file of a topic that is read is emptied", _written("users", "")),
    Mishap("a file has nothing but comments left", _edited("metrics", _commented)),
    Mishap("a file has nothing but separators left", _written("logs", "---\n---\n")),
    Mishap("a file is all zero bytes, as after a power loss", _written("users", b"\0" * 512)),
    # written in part
    Mishap("a file ends in the middle of a document", _edited("users", lambda text: text[: text.index("  class")])),
    Mishap("a file ends between two documents", _edited("orders", _first_half)),
    # renamed
    Mishap("a topic that is read is renamed", _edited("orders", _first("orders.events", "order.events"))),
    Mishap("a topic that nobody reads is renamed", _edited("clicks", _first("web.clicks", "web.click"))),
    Mishap("a topic gets a version", _edited("clicks", _first("web.clicks", "web.clicks.v2"))),
    Mishap("all topics of a file get a prefix", _edited("payments", lambda text: text.replace("name: ", "name: eu."))),
    Mishap("a topic has a pattern for a name", _edited("users", _first("name: users.signed-up", "names: [users.*]"))),
    Mishap("the folder of the cluster is renamed", lambda root: (root / "prod").rename(root / "production"),
           ("--cluster", "production"), "production/state.json"),
    Mishap("the folder of the cluster is renamed, and asked for by the old name",
           lambda root: (root / "prod").rename(root / "production"), state="production/state.json"),
    Mishap("a file is renamed to a backup", _moved("orders", "prod/topics/orders.yaml.bak")),
    Mishap("the file of a topic that is read is renamed to a backup", _moved("users", "prod/topics/users.yaml~")),
    Mishap("a file is hidden", _moved("logs", "prod/topics/.logs.yaml")),
    Mishap("the folder of topics is hidden", _folder(lambda folder: folder.rename(folder.with_name(".topics")))),
    # moved
    Mishap("a file is moved to another cluster", _moved("orders", "staging/topics/orders.yaml")),
    Mishap("the file of a topic that is read is moved to another cluster", _moved("users", "staging/users.yaml")),
    Mishap("a file is moved beside the clusters", _moved("metrics", "metrics.yaml")),
    Mishap("a file is moved out of the root", _moved("users", "../users.yaml")),
    Mishap("a file is a link that leads nowhere", _linked("users", "gone.yaml")),
    Mishap("the folder of topics is a link that leads nowhere", _broken_folder_link),
    Mishap("a folder stands where a file was", _replaced_by_a_folder),
    # merged
    Mishap("a merge left its markers", _edited("users", _half_merged)),
    Mishap("a merge left a document twice", _edited("users", lambda text: f"{text}---\n{text}")),
    Mishap("a merge took the other side, without three of the topics", _edited("orders", _without_three)),
    Mishap("a merge left cluster.yaml twice",
           lambda root: shutil.copy(root / "prod" / "cluster.yaml", root / "prod" / "cluster-1.yaml")),
    Mishap("a merge left the file twice",
           lambda root: shutil.copy(_file(root, "users"), root / "prod" / "users.yaml")),
    # mistyped
    Mishap("a kind is mistyped", _edited("users", _first("kind: Topic", "kind: Topics"))),
    Mishap("every topic of a file is made absent by one edit",
           _edited("metrics", lambda text: text.replace("  partitions: 2\n", "  state: absent\n"))),
)  # fmt: skip
