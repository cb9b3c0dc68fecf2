"""Named inputs that are wrong, or meant to do harm: what each is, who reads it, and what must be said of it.

A row is a name, the content (or a function that makes something else than a file of bytes), and how the error begins
after `error: `; `{f}` is the file. Whoever reads them: `KINDS`.
"""

import gzip
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

Make = Callable[[Path], None]
TOPIC = "apiVersion: reconciler/v1\nkind: Topic\nmetadata: {name: t}\n"
SNAPSHOT = '{"formatVersion": "1.0", "clusterId": "c", '
# PyYAML 6.0.4 gives up by itself, at 1,000 levels, before our reader sees how deep a line goes.
_SEEN_DEEP = 1001 if tuple(map(int, yaml.__version__.split(".")[:3])) >= (6, 0, 4) else 33
# What each kind is called with; `{f}` is the file, `-` in place of it reads stdin.
KINDS = {
    "desired": ("diff", "--cluster", "c", "--state", "snapshot.json"),
    "snapshot": ("diff", "--cluster", "demo", "--state", "{f}"),
    "plan": ("show", "{f}"),
    "scenario": ("groups", "simulate", "--scenario", "{f}"),
    "offsets": ("groups", "reset-offsets", "billing", "--cluster", "demo", "--from-file", "{f}"),
    "properties": ("snapshot", "--client", "{f}"),
    "journal": ("status", "plan.json", "--journal", "{f}"),
    "loads": ("plan", "--cluster", "demo", "--loads", "{f}"),
}


CLUSTER = "apiVersion: reconciler/v1\nkind: Cluster\nmetadata: {name: c}\nspec: {client: {bootstrap.servers: 'k:1'}}\n"


@dataclass(frozen=True, slots=True)
class BadInput:
    """One input: `says` is how the error begins, `code` the exit code."""

    kind: str
    name: str
    content: bytes | Make
    says: str
    code: int = 1

    def write(self, path: Path) -> None:
        """Make it at that path."""
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            self.content(path)

    def placed(self, demo: Path, folder: Path) -> "Placed":
        """Make it in that empty folder, with what it is read beside: its own cluster, or `demo` and a plan of it."""
        cwd, file = demo, folder / "bad"
        if self.kind == "desired":
            cwd = folder
            file = folder / "desired-state" / "c" / "t.yaml"
            file.parent.mkdir(parents=True)
            (folder / "snapshot.json").write_text('{"formatVersion": "1.0", "clusterId": "c"}', "utf-8")
            (file.parent / "cluster.yaml").write_text(CLUSTER, "utf-8")
        self.write(file)
        arguments = tuple(argument.replace("{f}", str(file)) for argument in KINDS[self.kind])
        return Placed(cwd, arguments, f"error: {self.says.replace('{f}', str(file))}")


@dataclass(frozen=True, slots=True)
class Placed:
    """An input as a file: where the program is called, with what, and how the error begins."""

    cwd: Path
    arguments: tuple[str, ...]
    says: str


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def holes(path: Path) -> None:
    """Make a file of 2 TiB that takes no space."""
    with path.open("wb") as file:
        file.truncate(2 << 40)


def maze(path: Path) -> None:
    """Make twelve folders, each with links to all: among them are a billion ways."""
    names = [f"d{number}" for number in range(12)]
    for name in names:
        (path.parent / name).mkdir()
    for name in names:
        for other in names:
            (path.parent / name / other).symlink_to(path.parent / other)


def deep(path: Path) -> None:
    """Make folders within folders; a path can name 2,000, of which Python's recursion reaches 1,000."""
    (path.parent / "/".join("a" * 70)).mkdir(parents=True)


def nowhere(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def laughs() -> bytes:
    """Return the billion laughs."""
    lines = ['a: &a ["ha", "ha", "ha"]']
    lines += [
        f"{b}: &{b} [{', '.join(f'*{a}' for _ in range(9))}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def yaml_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    spec, at = f"{TOPIC}spec: ", "desired-state/c/t.yaml"
    unread = f"{at}:1:1: cannot be read: "
    yield "billion laughs", laughs(), f"{at}:1:4: an anchor (&) is not allowed"
    apply = f"{spec}!!python/object/apply:os.system [id]\n".encode()
    yield "a python tag", apply, f"{at}:4:7: a tag (!) is not allowed"
    partitions = f"{spec}{{partitions: 2000000000}}\n".encode()
    yield "more partitions than a cluster has", partitions, f"{at}:4:20: spec.partitions is 2000000000, which must be"
    digits = f"{spec}{{partitions: {'9' * 20_000}}}\n".encode()
    yield "a number of 20,000 digits", digits, f"{at}:4:20: a number beyond 64 bits"
    yield "lists in lists without end", b"[" * 3_000_000, f"{at}:1:{_SEEN_DEEP}: nested deeper than 32 levels"
    yield "mappings in mappings", b"{a: " * 1_000_000, f"{at}:1:129: nested deeper than 32 levels"
    yield "dashes without end", b"- " * 1_000_000, f"{at}:1:65: nested deeper than 32 levels"
    yield "more than 500,000 values", b"[" + b"1," * 500_001 + b"]", f"{at}:1:1000000: more than 500000 values"
    yield "documents without end", b"---\n" * 200_000, f"{at}:50002:1: more than 50000 documents"
    yield "seventeen megabytes", b"#" * (17 << 20), f"{unread}it has more than 16 MiB"
    name = TOPIC.replace("{name: t}", "{name: " + "t" * (1 << 20) + "}")
    yield "a name of a megabyte", f"{name}spec: {{}}\n".encode(), f"{at}:3:18: metadata.name"
    yield "a line of ten megabytes", f"{spec}{{class: {'x' * (10 << 20)}}}\n".encode(), f"{at}:4:15: "
    yield "a terminal's escape", f"{spec}{{config: {{a: \x1b[2J}}}}\n".encode(), f"{at}:4:20: hidden character U+001B"
    yield "text from right to left", f"# \u202e\n{spec}{{}}\n".encode(), f"{at}:1:3: hidden character U+202E"
    yield "terabytes of nothing", holes, f"{unread}it has more than 16 MiB"
    yield "a named pipe", fifo, f"{unread}it is a named pipe, not a file"
    yield "a device", zeros, f"{at}:1:1: is a link that leads out of the root, and is not read"
    yield "a link to itself", circle, f"{unread}Too many levels of symbolic links"
    yield "a link to nowhere", nowhere, f"{unread}No such file or directory"
    yield "folders without end", deep, f"desired-state/c{'/a' * 65}:1:1: is more than 64 folders below"
    yield "a maze of links", maze, "desired-state/c/d1:1:1: is the folder "


def json_rows(what: str, good: str) -> Iterator[tuple[str, bytes | Make, str]]:
    """Yield what every reader of JSON refuses; `good` is the beginning of an object of that kind."""
    no, at = f"the {what} is not valid JSON: ", len(good) + 6
    unread = f"{{f}}: the {what} cannot be read: "
    yield "a key twice", f'{good}\n "x": 1,\n "x": 2}}'.encode(), f'{{f}}:3:2: {no}the key "x" stands twice'
    yield "a number of a million digits", f'{good}"x": {"9" * 1_000_000}}}'.encode(), f"{{f}}:1:{at}: {no}"
    lists = f'{good}"x": {"[" * 1_000_000}'.encode()
    yield "lists in lists", lists, f"{{f}}:1:{len(good) + 70}: {no}it is nested too deeply"
    yield "a byte that is no UTF-8", f'{good}\n"x": "'.encode() + b'\xff"}', f"{{f}}:2:7: {no}byte"
    yield "a packed bomb", packed(bytes(1 << 26)), f"{unread}it unpacks to more than"
    yield "terabytes of nothing", holes, f"{unread}it has more than"
    yield from no_files(unread)


def no_files(unread: str) -> Iterator[tuple[str, bytes | Make, str]]:
    """Yield what is there and is no file."""
    yield "a named pipe", fifo, f"{unread}it is a named pipe, not a file"
    yield "a device", zeros, f"{unread}it is a device, not a file"
    yield "a folder", folder, f"{unread}Is a directory"
    yield "a link to itself", circle, f"{unread}Too many levels of symbolic links"


def scenario_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    many = b'{"topics": [{"name": "t", "partitions": 1000000000}],\n"steps": [{"members": []}]}'
    yield "a billion partitions", many, "{f}:1:12: /topics must have at most 1000000 partitions"


def offset_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    unread = "{f}: the CSV of offsets cannot be read: "
    yield "an offset of text", b"orders.events,0,5\norders.events,1,x\n", "{f}:2:1: x is no offset"
    yield "an offset of a thousand digits", b"orders.events,0," + b"9" * 1000 + b"\n", "{f}:1:1: "
    yield "a field of a megabyte", b"x" * (1 << 20) + b",0,1\n", "{f}:1:1: this is no CSV: field larger"
    yield "a zero byte", b"orders\0events,0,1\n", "there is no topic orders\\u0000events"
    yield "a packed bomb", packed(bytes(1 << 26)), f"{unread}it unpacks to more than"
    yield from no_files(unread)


def property_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    unread = "{f}: the client properties cannot be read: "
    yield "a line without a name", b"client.id=a\nHUNTER2\n", "{f}:2:1: this line is no property: write its name, = and"
    yield "two megabytes", b"#" * (2 << 20), f"{unread}it has more than 1 MiB"
    endless = "{f}: sasl.password wants the file /dev/zero, which cannot be read: it is a device"
    yield "an endless secret", b"sasl.password=${file:/dev/zero}\n", endless
    yield "an unknown name", b"bootstrap.servers=k:1\nsasl.usrname=x\n", "The client property sasl.usrname is unknown"
    yield "a port too large", b"bootstrap.servers=k:99999\n", "Server 1 of bootstrap.servers is not host:port"
    yield from no_files(unread)


def journal_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    unread = "{f}: the run journal cannot be read: "
    yield "lists in lists", b"[" * 1_000_000 + b"\n{}\n", "{f}: no line of this file is an event of a run"
    yield "a damaged event", b'{"detail":{},"outcome":"done"}\n' * 2, "{f}:1:1: this line of the run journal is damaged"
    yield "terabytes of nothing", holes, f"{unread}it has more than"
    yield from (row for row in no_files(unread) if row[0] in {"a named pipe", "a device"})
    yield "a link to itself", circle, f"{unread}Too many levels of symbolic links"


def loads_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    yield "no Parquet", b"PAR1" + struct.pack("<I", 1 << 30) + b"PAR1", "--loads {f} cannot be read as Parquet"
    yield "a named pipe", fifo, "--loads {f} is neither a folder nor a file"
    yield "a device", zeros, "--loads {f} is neither a folder nor a file"


@cache
def bad_inputs() -> tuple[BadInput, ...]:
    """Return them all."""
    rows = {
        "desired": yaml_rows(),
        "snapshot": json_rows("snapshot", SNAPSHOT),
        "plan": json_rows("plan", '{"formatVersion": "1.0", '),
        "scenario": [*json_rows("scenario", '{"topics": [], '), *scenario_rows()],
        "offsets": offset_rows(),
        "properties": property_rows(),
        "journal": journal_rows(),
        "loads": loads_rows(),
    }
    return tuple(BadInput(kind, *row) for kind, found in rows.items() for row in found)
