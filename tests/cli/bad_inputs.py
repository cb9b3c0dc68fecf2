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
BROKER = '"brokers": [{"id": 1}, {"id": 2}], '
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
    spec = f"{TOPIC}spec: "
    at = "desired-state/c/t.yaml"
    yield "billion laughs", laughs(), f"{at}:1:4: an anchor (&) is not allowed"
    yield "an alias without anchor", f"{spec}*x\n".encode(), f"{at}:4:7: an alias (*) is not allowed"
    yield "an anchor on itself", b"a: &a [*a]\n", f"{at}:1:4: an anchor (&) is not allowed"
    yield "a merge key", f"{spec}{{<<: {{partitions: 1}}}}\n".encode(), f"{at}:4:8: merge key << is not allowed"
    yield (
        "a python tag",
        f"{spec}!!python/object/apply:os.system [id]\n".encode(),
        f"{at}:4:7: a tag (!) is not allowed",
    )
    yield "a binary tag", f"{spec}!!binary aGk=\n".encode(), f"{at}:4:7: a tag (!) is not allowed"
    yield "a tag of one's own", f"{spec}!include other.yaml\n".encode(), f"{at}:4:7: a tag (!) is not allowed"
    yield (
        "the same key twice",
        f"{spec}{{partitions: 1, partitions: 2}}\n".encode(),
        f"{at}:4:23: duplicate key 'partitions'",
    )
    yield "the same key, quoted", f'{spec}{{partitions: 1, "partitions": 2}}\n'.encode(), f"{at}:4:23: duplicate key"
    yield (
        "more partitions than a cluster has",
        f"{spec}{{partitions: 2000000000}}\n".encode(),
        f"{at}:4:20: spec.partitions is 2000000000, which must be at most 200000",
    )
    yield "an empty key", f'{spec}{{"": 1}}\n'.encode(), f"{at}:4:8: a key must not be empty"
    yield "a list as a key", f"{spec}{{[a]: 1}}\n".encode(), f"{at}:4:8: a key must be a plain text"
    yield (
        "a key that looks latin",
        f"{spec}{{\u0440artitions: 1}}\n".encode(),
        f"{at}:4:8: key '\u0440artitions' has the character",
    )
    yield "lists in lists without end", b"[" * 3_000_000, f"{at}:1:{_SEEN_DEEP}: nested deeper than 32 levels"
    yield "mappings in mappings", b"{a: " * 1_000_000, f"{at}:1:129: nested deeper than 32 levels"
    yield "dashes without end", b"- " * 1_000_000, f"{at}:1:65: nested deeper than 32 levels"
    yield (
        "five hundred thousand and one values",
        b"[" + b"1," * 500_001 + b"]",
        f"{at}:1:1000000: more than 500000 values",
    )
    yield "documents without end", b"---\n" * 200_000, f"{at}:50002:1: more than 50000 documents"
    yield "seventeen megabytes", b"#" * (17 << 20), f"{at}:1:1: cannot be read: it has more than 16 MiB"
    yield "terabytes of nothing", holes, f"{at}:1:1: cannot be read: it has more than 16 MiB"
    yield "a byte order mark inside", f"{spec}{{\ufeffpartitions: 1}}\n".encode(), f"{at}:4:8: hidden character U+FEFF"
    yield "UTF-16", f"{spec}{{}}\n".encode("utf-16"), f"{at}:1:1: byte 0 is not UTF-8"
    yield "a byte that is no UTF-8", TOPIC.encode() + b"spec: {config: {a: \xff}}\n", f"{at}:4:20: byte 77 is not UTF-8"
    yield "an overlong slash", TOPIC.encode() + b"spec: \xc0\xaf\n", f"{at}:4:7: byte 64 is not UTF-8"
    yield "half a surrogate pair", TOPIC.encode() + b"spec: \xed\xa0\x80\n", f"{at}:4:7: byte 64 is not UTF-8"
    yield "a zero byte", f"{spec}{{config: {{a: \0}}}}\n".encode(), f"{at}:4:20: hidden character U+0000"
    yield "a terminal's escape", f"{spec}{{config: {{a: \x1b[2J}}}}\n".encode(), f"{at}:4:20: hidden character U+001B"
    yield "text from right to left", f"# \u202e\n{spec}{{}}\n".encode(), f"{at}:1:3: hidden character U+202E"
    yield "a space of no width", f"{spec}{{config: {{a: x\u200b}}}}\n".encode(), f"{at}:4:21: hidden character U+200B"
    yield (
        "an escape in quotes",
        f'{spec}{{config: {{a: "\\x1b]0;x\\a"}}}}\n'.encode(),
        f"{at}:4:20: the text holds the hidden character",
    )
    yield "a tab that indents", f"{spec}\n\tpartitions: 1\n".encode(), f"{at}:5:1: not YAML: "
    yield "a bracket left open", f"{spec}{{partitions: 1\n".encode(), f"{at}:5:1: not YAML: "
    yield "a quote left open", f"{spec}{{config: {{a: 'x}}}}\n".encode(), f"{at}:5:1: not YAML: "
    yield "another YAML", b"%YAML 3.0\n---\na: 1\n", f"{at}:1:1: not YAML: "


def yaml_value_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    spec = f"{TOPIC}spec: "
    at = "desired-state/c/t.yaml"
    yield "no as a number", f"{spec}{{partitions: NO}}\n".encode(), f"{at}:4:20: spec.partitions is "
    yield "an octal number", f"{spec}{{partitions: 0o7}}\n".encode(), f"{at}:4:20: spec.partitions is "
    yield "an underscored number", f"{spec}{{partitions: 1_000}}\n".encode(), f"{at}:4:20: spec.partitions is "
    yield "a date as a number", f"{spec}{{partitions: 2026-11-21}}\n".encode(), f"{at}:4:20: spec.partitions is "
    yield "a number in base sixty", f"{spec}{{partitions: 1:30}}\n".encode(), f"{at}:4:20: spec.partitions is "
    yield (
        "a number of 20,000 digits",
        f"{spec}{{partitions: {'9' * 20_000}}}\n".encode(),
        f"{at}:4:20: a number beyond 64 bits",
    )
    yield (
        "more than a float holds",
        f"{spec}{{partitions: 1.0e999}}\n".encode(),
        f"{at}:4:20: a number that is too large",
    )
    yield "not a number", f"{spec}{{partitions: .nan}}\n".encode(), f"{at}:4:20: .nan is no number"
    yield "infinity", f"{spec}{{partitions: -.inf}}\n".encode(), f"{at}:4:20: -.inf is no number"
    yield (
        "partitions below zero",
        f"{spec}{{partitions: -1}}\n".encode(),
        f"{at}:4:20: spec.partitions is -1, which must be at least 1",
    )
    yield (
        "a name of a megabyte",
        f"{TOPIC.replace('{name: t}', '{name: ' + 't' * (1 << 20) + '}')}spec: {{}}\n".encode(),
        f"{at}:3:18: metadata.name",
    )
    yield "a line of ten megabytes", f"{spec}{{class: {'x' * (10 << 20)}}}\n".encode(), f"{at}:4:15: "
    yield (
        "a name with a slash",
        f"{TOPIC.replace('{name: t}', '{name: ../t}')}spec: {{}}\n".encode(),
        f"{at}:3:18: metadata.name",
    )
    yield (
        "only dots as a name",
        f"{TOPIC.replace('{name: t}', '{name: ..}')}spec: {{}}\n".encode(),
        f"{at}:1:1: '..' cannot be a topic's name",
    )
    yield "a text as a document", b"hello\n", f"{at}:1:1: a document must be a mapping"
    yield "a list as a document", b"- a\n", f"{at}:1:1: a document must be a mapping"
    yield "line ends of Windows, and a slip", f"{spec}{{partition: 1}}\n".replace("\n", "\r\n").encode(), f"{at}:4:8: "
    yield "a bare carriage return", f"{spec}{{config: {{a: b}}}}\r{{}}".encode(), f"{at}:6:1: not YAML: "
    yield "a named pipe", fifo, f"{at}:1:1: cannot be read: it is a named pipe, not a file"
    yield "a device", zeros, f"{at}:1:1: is a link that leads out of the root, and is not read"
    yield "a link to itself", circle, f"{at}:1:1: cannot be read: Too many levels of symbolic links"
    yield "a link to nowhere", nowhere, f"{at}:1:1: cannot be read: No such file or directory"
    yield "folders without end", deep, f"desired-state/c{'/a' * 65}:1:1: is more than 64 folders below"
    yield "a maze of links", maze, "desired-state/c/d1:1:1: is the folder "


def json_rows(what: str, good: str) -> Iterator[tuple[str, bytes | Make, str]]:
    """Yield what every reader of JSON refuses; `good` is the beginning of an object of that kind."""
    no = f"the {what} is not valid JSON: "
    unread = f"{{f}}: the {what} cannot be read: "
    yield "nothing", b"", f"{{f}}:1:1: {no}"
    yield "cut short", good.encode(), f"{{f}}:1:{len(good) + 1}: {no}"
    yield "a key twice", f'{good}\n "x": 1,\n "x": 2}}'.encode(), f'{{f}}:3:2: {no}the key "x" stands twice'
    yield "NaN", f'{good}"x": NaN}}'.encode(), f"{{f}}:1:{len(good) + 6}: {no}NaN is no number"
    yield "minus infinity", f'{good}"x": -Infinity}}'.encode(), f"{{f}}:1:{len(good) + 6}: {no}-Infinity is no number"
    yield "1e999", f'{good}"x": 1e999}}'.encode(), f"{{f}}:1:{len(good) + 6}: {no}it holds a number that is too large"
    yield "a number of a million digits", f'{good}"x": {"9" * 1_000_000}}}'.encode(), f"{{f}}:1:{len(good) + 6}: {no}"
    yield (
        "lists in lists",
        f'{good}"x": {"[" * 1_000_000}'.encode(),
        f"{{f}}:1:{len(good) + 70}: {no}it is nested too deeply",
    )
    yield "a byte that is no UTF-8", f'{good}\n"x": "'.encode() + b'\xff"}', f"{{f}}:2:7: {no}byte"
    yield "half a surrogate pair", f'{good}"x": "\\ud800"}}'.encode(), f"{{f}}:1:{len(good) + 6}: {no}it holds half"
    yield "a line break in a text", f'{good}"x": "\n"}}'.encode(), f"{{f}}:1:{len(good) + 7}: {no}"
    yield "a zero byte", f'{good}"x": \0}}'.encode(), f"{{f}}:1:{len(good) + 6}: {no}"
    yield "a comment", b"// no\n{}", f"{{f}}:1:1: {no}"
    yield "a packed bomb", packed(bytes(1 << 26)), f"{unread}it unpacks to more than"
    yield "packed, and cut short", packed(good.encode() * 100)[:-9], f"{unread}it is gzipped, but damaged"
    yield "terabytes of nothing", holes, f"{unread}it has more than"
    yield "a named pipe", fifo, f"{unread}it is a named pipe, not a file"
    yield "a device", zeros, f"{unread}it is a device, not a file"
    yield "a folder", folder, f"{unread}Is a directory"
    yield "a link to itself", circle, f"{unread}Too many levels of symbolic links"


def snapshot_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    partition = '{"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]'
    topic = f'{SNAPSHOT}{BROKER}\n"topics": [{{"name": "t", "partitions": [\n'
    yield "a list", b"[]", "{f}: a snapshot is one JSON object"
    yield "a version of tomorrow", b'{"formatVersion": "9.0"}', "{f}: the snapshot has format version 9.0"
    yield (
        "a broker of text",
        f'{SNAPSHOT}\n"brokers": [{{"id": "1"}}]}}'.encode(),
        "{f}:2:20: /brokers/0/id must be a whole",
    )
    yield (
        "a broker beyond 64 bits",
        f'{SNAPSHOT}"brokers": [{{"id": {1 << 70}}}]}}'.encode(),
        "{f}:1:63: /brokers/0/id must",
    )
    yield (
        "a leader of its own",
        f"{topic}{partition.replace('1,', '7,', 1)}}}]}}]}}".encode(),
        "{f}:3:28: /topics/0/partitions/0/leader",
    )
    yield (
        "a size below zero",
        f'{topic}{partition}, "sizes": [-1, 1]}}]}}]}}'.encode(),
        "{f}:3:73: /topics/0/partitions/0/sizes/0",
    )
    yield (
        "a partition of a fraction",
        f"{topic}{partition.replace('0', '0.5', 1)}}}]}}]}}".encode(),
        "{f}:3:15: /topics/0/partitions",
    )


def plan_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    yield "a list", b"[]", "{f}: a plan is one JSON object"
    yield "a snapshot", f'{SNAPSHOT}"brokers": []}}'.encode(), "{f}: this is a snapshot, not a plan"
    yield (
        "without its id",
        b'{"formatVersion": "1.0", "stages": [], "topicChanges": []}',
        "{f}: this plan was changed after it was made",
    )


def scenario_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    yield "a text", b'"x"', "{f}:1:1: / "
    yield (
        "partitions below zero",
        b'{"topics": [{"name": "t", "partitions": -1}],\n"steps": [{"members": []}]}',
        "{f}:1:41: /topics/0/partitions",
    )
    yield (
        "a billion partitions",
        b'{"topics": [{"name": "t", "partitions": 1000000000}],\n"steps": [{"members": []}]}',
        "{f}:1:12: /topics must have at most 1000000 partitions",
    )


def offset_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    unread = "{f}: the CSV of offsets cannot be read: "
    yield "nothing", b"", "{f}: it holds no offsets"
    yield "an offset of text", b"orders.events,0,5\norders.events,1,x\n", "{f}:2:1: x is no offset"
    yield "an offset of a thousand digits", b"orders.events,0," + b"9" * 1000 + b"\n", "{f}:1:1: "
    yield "five fields", b"a,b,c,d,e\n", "{f}:1:1: a line is topic,partition,offset"
    yield (
        "digits of another script",
        "orders.events,\u0661,1\n".encode(),
        "{f}:1:1: orders.events,\u0661 is no topic and partition",
    )
    yield "a field of a megabyte", b"x" * (1 << 20) + b",0,1\n", "{f}:1:1: this is no CSV: field larger"
    yield "a byte that is no UTF-8", b"orders.events,0,1\n\xff,0,1\n", "{f}:2:1: the CSV of offsets is not UTF-8"
    yield "a zero byte", b"orders\0events,0,1\n", "there is no topic orders\\u0000events"
    yield "a packed bomb", packed(bytes(1 << 26)), f"{unread}it unpacks to more than"
    yield "a named pipe", fifo, f"{unread}it is a named pipe, not a file"
    yield "a device", zeros, f"{unread}it is a device, not a file"
    yield "a folder", folder, f"{unread}Is a directory"


def property_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    unread = "{f}: the client properties cannot be read: "
    yield "the same key twice", b"client.id=a\nclient.id=b\n", "{f}:2:1: client.id is written twice"
    yield "a line without a name", b"client.id=a\nHUNTER2\n", "{f}:2:1: this line is no property: write its name, = and"
    yield "a value without a name", b"=HUNTER2\n", "{f}:1:1: this line is no property: write its name, = and its value"
    yield "half a code point", b"\nclient.id=\\u12\n", "{f}:2:1: client.id holds \\u without its four digits"
    yield "a byte that is no UTF-8", b"a=b\nc=\xff\n", "{f}:2:3: the client properties are not UTF-8 text"
    yield "two megabytes", b"#" * (2 << 20), f"{unread}it has more than 1 MiB"
    yield "a named pipe", fifo, f"{unread}it is a named pipe, not a file"
    yield "a device", zeros, f"{unread}it is a device, not a file"
    yield "a folder", folder, f"{unread}Is a directory"
    yield "a link to itself", circle, f"{unread}Too many levels of symbolic links"
    yield (
        "an endless secret",
        b"sasl.password=${file:/dev/zero}\n",
        "{f}: sasl.password wants the file /dev/zero, which cannot be read: it is a device",
    )
    yield "a secret of nowhere", b"sasl.password=${vault:x}\n", "{f}: sasl.password holds something like"
    yield "an unknown name", b"bootstrap.servers=k:1\nsasl.usrname=x\n", "The client property sasl.usrname is unknown"
    yield "a port too large", b"bootstrap.servers=k:99999\n", "Server 1 of bootstrap.servers is not host:port"


def journal_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    unread = "{f}: the run journal cannot be read: "
    yield "lines of something else", b"hello\n" * 2, "{f}: no line of this file is an event of a run"
    yield "lists in lists", b"[" * 1_000_000 + b"\n{}\n", "{f}: no line of this file is an event of a run"
    yield "a damaged event", b'{"detail":{},"outcome":"done"}\n' * 2, "{f}:1:1: this line of the run journal is damaged"
    yield "terabytes of nothing", holes, f"{unread}it has more than"
    yield "a named pipe", fifo, f"{unread}it is a named pipe, not a file"
    yield "a device", zeros, f"{unread}it is a device, not a file"
    yield "a link to itself", circle, f"{unread}Too many levels of symbolic links"


def loads_rows() -> Iterator[tuple[str, bytes | Make, str]]:
    yield "no Parquet", b"PAR1" + struct.pack("<I", 1 << 30) + b"PAR1", "--loads {f} cannot be read as Parquet"
    yield "a named pipe", fifo, "--loads {f} is neither a folder nor a file"
    yield "a device", zeros, "--loads {f} is neither a folder nor a file"


@cache
def bad_inputs() -> tuple[BadInput, ...]:
    """Return them all."""
    rows = {
        "desired": [*yaml_rows(), *yaml_value_rows()],
        "snapshot": [*json_rows("snapshot", SNAPSHOT), *snapshot_rows()],
        "plan": [*json_rows("plan", '{"formatVersion": "1.0", '), *plan_rows()],
        "scenario": [*json_rows("scenario", '{"topics": [], '), *scenario_rows()],
        "offsets": offset_rows(),
        "properties": property_rows(),
        "journal": journal_rows(),
        "loads": loads_rows(),
    }
    return tuple(BadInput(kind, *row) for kind, found in rows.items() for row in found)
