"""A root, a folder outside it that holds canaries, and the ways that documents and links could take out of the root."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.lost_files import CLASS, TOPIC, observed
from helpers.program.documents import document

CANARY = "HUNTER2"
TOPICS = ("orders", "web")
SIMULATED = "{simulation: state.json}"
ALL = ("validate", "sarif", "plan", "diff", "apply", "status", "snapshot", "doctor")
OF_CLUSTER = tuple(verb for verb in ALL if verb not in {"validate", "sarif"})
OF_FILES = ("validate", "sarif", "plan", "diff")
"""The verbs that read the files of topics."""
OF_POLICIES = ("validate", "sarif", "plan")
OUT = "KR132"


def write_world(folder: Path) -> Path:
    """Write the root, whose plan is not empty, with what is outside beside it; return the root."""
    root, outside = folder / "desired-state", folder / "outside"
    for cluster in ("prod", "other"):
        (root / cluster).mkdir(parents=True)
        (root / cluster / "cluster.yaml").write_text(document("Cluster", cluster, SIMULATED), "utf-8")
        (root / cluster / "classes.yaml").write_text(CLASS, "utf-8")
        text = "---\n".join(TOPIC.replace("NAME", name) for name in TOPICS)
        (root / cluster / "topics.yaml").write_text(text.replace("partitions: 2", "partitions: 3"), "utf-8")
        (root / cluster / "state.json").write_text(json.dumps(observed(TOPICS)), "utf-8")
    _write_outside(outside)
    return root


def _write_outside(outside: Path) -> None:
    (outside / "topics").mkdir(parents=True)
    (outside / "state.json").write_text(json.dumps(observed([f"{CANARY}.topic"])), "utf-8")
    for name in ("secret.yaml", "topics/secret.yaml"):
        (outside / name).write_text(f"{CANARY}: {CANARY}\n{CANARY}: &{CANARY} [\n", "utf-8")
    cluster = document("Cluster", CANARY, f"{{{CANARY}: 1, simulation: state.json}}")
    (outside / "cluster.yaml").write_text(cluster, "utf-8")
    (outside / "secret.properties").write_text(f"{CANARY}.a=1\n{CANARY}.a={CANARY}\n", "utf-8")
    (outside / "secret").write_text(f"{CANARY}\n", "utf-8")
    (outside / "secret.sql").write_text(f"{CANARY} '{CANARY}' FROM brokers; {CANARY}\n", "utf-8")


@dataclass(frozen=True, slots=True)
class Escape:
    """A way out: what somebody does in the root, the verbs that look there, and the code of their refusal."""

    name: str
    happens: Callable[[Path], object]
    verbs: tuple[str, ...] = ALL
    codes: tuple[str, ...] = (OUT,)


def spec(text: str, *links: tuple[str, str]) -> Callable[[Path], None]:
    """Return what writes a Cluster of that spec, and links in its folder; `{out}` is the path of what is outside."""

    def happens(root: Path) -> None:
        written = text.replace("{out}", str(root.parent / "outside"))
        (root / "prod" / "cluster.yaml").write_text(document("Cluster", "prod", f"{{{written}}}"), "utf-8")
        link(*links)(root)

    return happens


def link(*links: tuple[str, str], below: str = "prod") -> Callable[[Path], None]:
    """Return what makes links of that name to that place, each in place of what is there."""

    def happens(root: Path) -> None:
        for name, to in links:
            path = Path(os.fsdecode(os.fsencode(root / below) + b"/" + os.fsencode(name)))
            path.parent.mkdir(exist_ok=True, parents=True)
            if path.is_dir() and not path.is_symlink():
                path.rename(root.parent / f"was-{path.name}")
            path.unlink(missing_ok=True)
            path.symlink_to(to.replace("{out}", str(root.parent / "outside")))

    return happens


def written(name: str, text: str, then: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return what writes a file of the cluster, and then does the other."""

    def happens(root: Path) -> None:
        (root / "prod" / name).parent.mkdir(exist_ok=True)
        (root / "prod" / name).write_text(text, "utf-8")
        then(root)

    return happens


def _simulations() -> Iterator[Escape]:
    for name, path in {
        "up": "../../outside/state.json",
        "absolute": "{out}/state.json",
        "down and up": "topics/../../../outside/state.json",
        "through nowhere and up": "nosuch/../../../outside/state.json",
        "a folder that begins as the root does": "../../desired-state-of-mine/state.json",
        "the root of all": "/",
        "by the process": "/proc/self/cwd/outside/state.json",
        "stdin": "/dev/stdin",
        "the environment": "/proc/self/environ",
    }.items():
        yield Escape(f"simulation: {name}", spec(f'simulation: "{path}"'))
    for name, path, links in (
        ("a link", "state.json", [("state.json", "{out}/state.json")]),
        ("a chain of links", "state.json", [("state.json", "a"), ("a", "b"), ("b", "{out}/state.json")]),
        ("a link of a folder", "out/state.json", [("out", "{out}")]),
        ("a link to what is not there", "new.json", [("new.json", "{out}/new.json")]),
        ("a loop, and a link behind it", "loop/../out/state.json", [("loop", "loop"), ("out", "{out}")]),
        ("a link up, and down again", "up/outside/state.json", [("up", "../..")]),
        ("a gzipped name", "s.json.gz", [("s.json.gz", "{out}/state.json")]),
    ):
        yield Escape(f"simulation: {name}", spec(f"simulation: {path}", *links))
    any_error = ("KR101", "KR102", "KR103", "KR201", OUT)
    for name, path in {
        "the root": "..",
        "separators of Windows": "..\\\\..\\\\outside\\\\state.json",
        "wide dots": "\uff0e\uff0e/\uff0e\uff0e/outside/state.json",
        "a URI": "file:{out}/state.json",
        "a NUL": "../../outside/state.json\\0.json",
        "a very long name": "../" * 3000 + "outside/state.json",
        "stdin's sign": "-",
    }.items():
        yield Escape(f"simulation: {name}", spec(f'simulation: "{path}"'), OF_CLUSTER, any_error)


def _clients() -> Iterator[Escape]:
    file = "../../outside/secret"
    for name, text, links in (
        ("up", 'file: "../../outside/secret.properties"', []),
        ("absolute", 'file: "{out}/secret.properties"', []),
        ("the environment", 'file: "/proc/self/environ"', []),
        ("a link", "file: c.properties", [("c.properties", "{out}/secret.properties")]),
        ("a chain", "file: c.properties", [("c.properties", "d"), ("d", "../../outside/secret.properties")]),
        ("a link of a folder", "file: out/secret.properties", [("out", "{out}")]),
        ("a link to what is not there", "file: c.properties", [("c.properties", "{out}/new.properties")]),
        ("a secret up", f'sasl.password: "${{file:{file}}}", bootstrap.servers: "127.0.0.1:1"', []),
        ("a secret by a link", 'sasl.password: "${file:s}", bootstrap.servers: "127.0.0.1:1"', [("s", "{out}/secret")]),
        ("a secret in a link", 'sasl.password: "${file:o/secret}", bootstrap.servers: "h:1"', [("o", "{out}")]),
        ("one of two secrets", f'sasl.password: "a${{file:/nosuch}}${{file:{file}}}", bootstrap.servers: "h:1"', []),
    ):
        yield Escape(f"client: {name}", spec(f"client: {{{text}}}", *links))
    text = f"bootstrap.servers=127.0.0.1:1\nsasl.username=${{file:{file}}}\n"
    inside = written("c.properties", text, spec("client: {file: c.properties}"))
    yield Escape("client: a secret up, in a file inside", inside, OF_CLUSTER)


def _files() -> Iterator[Escape]:
    broken = "{out}/secret.yaml"
    for name, links in (
        ("a link", [("x.yaml", broken)]),
        ("a link over a file", [("topics.yaml", broken)]),
        ("a link that comes back first", [("x.yaml", "../../desired-state/../outside/secret.yaml")]),
        ("a chain", [("x.yaml", "y"), ("y", "z"), ("z", broken)]),
        ("a link to what is not there", [("x.yaml", "{out}/new.yaml")]),
        ("a link of a folder", [("more", "{out}/topics")]),
        ("a link of a folder with a name like a file's", [("more.yaml", "{out}/topics")]),
        ("a link up", [("more", "../..")]),
        ("a device", [("x.yaml", "/dev/zero")]),
        ("the environment", [("x.yaml", "/proc/self/environ")]),
        ("a data folder that leads out", [("..data", "{out}"), ("x.yaml", "..data/secret.yaml")]),
        ("a name that is hard to read", [("x\x1b[31m\n::error::\udcff.yaml", broken)]),
    ):
        yield Escape(f"YAML: {name}", link(*links), OF_FILES)
    yield Escape("YAML: the Cluster document", link(("cluster.yaml", "{out}/cluster.yaml")))
    yield Escape("YAML: the cluster's folder", link(("prod", "{out}"), below="."))
    yield Escape("YAML: the cluster's folder, a chain", link(("prod", "p"), ("p", "{out}"), below="."))
    beyond = link(("other/x.yaml", broken), ("prod/more", "../other"), below=".")
    yield Escape("YAML: a link out behind a link inside", beyond, OF_FILES)


def _policies() -> Iterator[Escape]:
    sql = "{out}/secret.sql"
    for name, below, links in (
        ("of the root", ".", [("policies/p.sql", sql)]),
        ("of the cluster", "prod", [("policies/p.sql", "../../../outside/secret.sql")]),
        ("the root's folder", ".", [("policies", "{out}")]),
        ("the cluster's folder", "prod", [("policies", "{out}")]),
        ("to what is not there", "prod", [("policies/p.sql", "{out}/new.sql")]),
    ):
        yield Escape(f"policies: {name}", link(*links, below=below), OF_POLICIES)


def _locks() -> Iterator[Escape]:
    for name, to in {"a file": "{out}/secret", "what is not there": "{out}/new"}.items():
        yield Escape(f"the lock: {name}", link(("state.json.lock", to)), ("apply",), ("KR451",))


ESCAPES = (*_simulations(), *_clients(), *_files(), *_policies(), *_locks())
