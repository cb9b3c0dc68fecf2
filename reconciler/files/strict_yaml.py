"""Reads YAML as the contract allows it: plain data, every key and value with its line and column, nothing clever.

Only `true`, `false`, `null`, integers and decimal numbers are special; everything else is text. Duplicate keys, tags,
anchors, aliases and merge keys are errors. Depth, nodes and size are bounded.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf, isinf
from typing import Any, NoReturn, Self

import yaml

from reconciler.model.problem import Location, Problem

MAX_BYTES = 16 << 20
MAX_DEPTH = 32
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
MAX_NODES = 500_000
MAX_DOCUMENTS = 50_000
MAX_PROBLEMS = 100
MAX_TEXT = 1 << 20
MAX_INTEGER = 2**63 - 1
MAX_DIGITS = 20
SHOWN = 40
# No plus sign: +49123 is a user's name more often than a number.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NOT_NUMBERS = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_NUMBERS_BEGIN = frozenset("-+.0123456789")
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
# Soft hyphen, joiners, marks and overrides of direction, line separators, byte order marks, annotations, tags.
_INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_ASSIGNS = re.compile("[=:]")
_BEGINNINGS = re.compile(rb"^(?=---(?:[ \t\r\n]|$))", re.MULTILINE)
_HIDDEN = re.compile(f"[{_CONTROL}{_INVISIBLE}\ud800-\udfff\ufffe\uffff]")
Steps = tuple[str | int, ...]


class YamlFloat(float):
    """A decimal number that keeps its text: 0.50 is written as 0.50 where Kafka takes a text."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number of that text."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text


class YamlMap(dict[str, Any]):
    """A mapping that knows where it, its keys and their values stand."""

    __slots__ = ("at", "key_at", "value_at")

    def __init__(self, at: Location) -> None:
        super().__init__()
        self.at = at
        self.key_at: dict[str, Location] = {}
        self.value_at: dict[str, Location] = {}

    def part(self, key: str) -> "YamlMap":
        """Return the mapping of that key; an empty one where it is not there, or is none."""
        found = self.get(key)
        return found if isinstance(found, YamlMap) else YamlMap(self.value_at.get(key, self.at))


class YamlList(list[Any]):
    """A list that knows where it and its items stand."""

    __slots__ = ("at", "item_at")

    def __init__(self, at: Location) -> None:
        super().__init__()
        self.at = at
        self.item_at: list[Location] = []


@dataclass(slots=True)
class Read:
    """The documents of one file and what is wrong with it."""

    documents: list[Any] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_yaml(content: bytes, name: str) -> Read:
    """Return all documents of a file, or every problem that keeps it from being read; `name` goes into places."""
    if len(content) > MAX_BYTES:
        return _refused(Location(name, 1), f"the file has {len(content)} bytes; {MAX_BYTES} are allowed: split it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig").rpartition("\n")
        place = Location(name, before[0].count("\n") + len(before[1]) + 1, len(before[2]) + 1)
        return _refused(place, f"byte {error.start} is not UTF-8: save the file as UTF-8")
    reader = _Reader(name)
    try:
        reader.refuse_hidden(text)
        reader.run(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(name, mark.line + 1, mark.column + 1) if mark else Location(name, 1)
        words = _words(error, text[mark.index : mark.index + 1] if mark else "")
        reader.problems.append(Problem("KR101", words, place))
    except (_Stop, yaml.reader.ReaderError):
        # What the YAML reader refuses is a control character, and those are told by then.
        pass
    return Read(reader.documents, reader.problems)


def pieces_of(content: bytes, kind: str) -> Iterator[bytes]:
    """Yield the documents of a file that are of that kind, each with nothing else, and at its own lines.

    No text of a YAML document holds a line that begins another: so no document is broken by what is wrong before it.
    """
    before = 0
    for piece in _BEGINNINGS.split(content):
        documents = read_yaml(piece, "").documents if kind.encode() in piece else []
        if any(isinstance(each, YamlMap) and each.get("kind") == kind for each in documents):
            yield b"\n" * before + piece
        before += len(piece.splitlines())


def _words(error: yaml.MarkedYAMLError, character: str) -> str:
    """Return what the parser says, and what it leaves unsaid of the character that it stopped at."""
    words = str(error.problem or error.context)
    # PyYAML 6.0.4 (libyaml 0.2.6) gives up at 1,000 levels, which it can see before our reader is at the first.
    if "nesting depth" in words:
        return _TOO_DEEP
    if "cannot start any token" not in words:
        return f"not YAML: {words}"
    if character == "\t":
        return f"not YAML: {words}: a tab does not indent, write spaces"
    return f"not YAML: {words}: {character!r} cannot begin a plain text, put the text in quotes"


def _refused(place: Location, message: str) -> Read:
    return Read(problems=[Problem("KR101", message, place)])


class _Stop(Exception):
    """Enough problems, or a bound is passed."""


class _Reader:
    """Turns parser events into data, without recursion. No message holds a value: it may be a secret."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.documents: list[Any] = []
        self.problems: list[Problem] = []
        self._open: list[YamlMap | YamlList] = []
        self._keys: list[tuple[str, Location] | None] = []
        self._nodes = 0
        self._is_clean = True

    def problem(self, place: Location, message: str) -> None:
        """Keep a problem; end the reading where there are very many."""
        self.problems.append(Problem("KR101", message, place))
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Stop

    def _stop(self, place: Location, message: str) -> NoReturn:
        self.problem(place, message)
        raise _Stop

    def refuse_hidden(self, text: str) -> None:
        """Refuse what a reviewer cannot see, in comments too."""
        for found in _HIDDEN.finditer(text):
            start = found.start()
            place = Location(self.name, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
            self.problem(place, f"hidden character {_code_point(found.group())}: remove it")
        self._is_clean = not self.problems

    def run(self, text: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        for event in iter(loader.get_event, None):
            if isinstance(event, yaml.NodeEvent):
                self._node(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
                self._keys.pop()

    def _node(self, event: Any) -> None:
        mark, kind = event.start_mark, type(event)
        place = Location(self.name, mark.line + 1, mark.column + 1)
        if kind is yaml.AliasEvent:
            self.problem(place, "an alias (*) is not allowed: write the value out, or quote the text")
            self._put(None, place)
            return
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(place, f"more than {MAX_NODES} values in one file: split it")
        if event.anchor:
            self.problem(place, "an anchor (&) is not allowed: write the value out where it is used, or quote the text")
        if event.tag:
            self.problem(place, "a tag (!) is not allowed: write a plain value, or quote the text")
        if kind is yaml.ScalarEvent:
            self._scalar(event, place)
        else:
            self._start(YamlMap(place) if kind is yaml.MappingStartEvent else YamlList(place))

    def _start(self, container: YamlMap | YamlList) -> None:
        self._put(container, container.at, is_container=True)
        self._open.append(container)
        self._keys.append(None)
        if len(self._open) > MAX_DEPTH:
            self._stop(container.at, _TOO_DEEP)

    def _scalar(self, event: Any, place: Location) -> None:
        if len(event.value) > MAX_TEXT:
            self._stop(place, f"a text of {len(event.value)} characters; {MAX_TEXT} are allowed")
        hidden = _HIDDEN.search(event.value) if self._is_clean and event.style == '"' else None
        if hidden:
            self.problem(place, f"the text holds the hidden character {_code_point(hidden.group())}: remove it")
        if self._open and self._keys[-1] is None and isinstance(self._open[-1], YamlMap):
            self._key(event, place)
        else:
            self._put(self._value(event, place), place)

    def _key(self, event: Any, place: Location) -> None:
        key, mapping = event.value, self._open[-1]
        if key == "<<" and not event.style:
            self.problem(place, "merge key << is not allowed: write the values out")
        elif isinstance(mapping, YamlMap) and key in mapping:
            first = mapping.key_at[key]
            self.problem(place, f"duplicate key {_cut(key)}, first written at {first.line}:{first.column}: keep one")
        elif not key:
            self.problem(place, "a key must not be empty")
        if not key.isascii():
            strange = next(character for character in key if not character.isascii())
            self.problem(place, f"key {_cut(key)} has the character {strange!r} ({_code_point(strange)}): use ASCII")
        self._keys[-1] = (key, place)

    def _value(self, event: Any, place: Location) -> Any:
        text = event.value
        if event.style or not event.implicit[0]:
            return text
        if text[:1] not in _NUMBERS_BEGIN:
            return _WORDS.get(text, text)
        if _INTEGER.fullmatch(text):
            return self._integer(text, place)
        if _DECIMAL.fullmatch(text):
            number = YamlFloat(text)
            if isinf(number):
                self.problem(place, "a number that is too large: put it in quotes if it is a text")
            return number
        if _NOT_NUMBERS.fullmatch(text):
            self.problem(place, f"{text} is no number that can be meant here")
        return text

    def _integer(self, text: str, place: Location) -> int:
        number = int(text) if len(text) <= MAX_DIGITS else None
        if number is not None and -MAX_INTEGER <= number <= MAX_INTEGER:
            return number
        self.problem(place, "a number beyond 64 bits: put it in quotes if it is a text")
        return 0

    def _put(self, value: Any, place: Location, *, is_container: bool = False) -> None:
        if not self._open:
            self.documents.append(value)
            if len(self.documents) > MAX_DOCUMENTS:
                self._stop(place, f"more than {MAX_DOCUMENTS} documents in one file: split it")
            return
        parent = self._open[-1]
        if isinstance(parent, YamlList):
            parent.append(value)
            parent.item_at.append(place)
            return
        entry = self._keys[-1]
        if entry is None:
            self.problem(place, "a key must be a plain text" + (", not a list or mapping" if is_container else ""))
            self._keys[-1] = ("", place)
            return
        key, key_place = entry
        parent[key] = value
        parent.key_at[key] = key_place
        parent.value_at[key] = place
        self._keys[-1] = None


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


def visible(text: str) -> str:
    """Return a text with what no reader sees, and a terminal could obey, spelled out."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def key_shown(key: str) -> str:
    """Return a key for a message: `sasl.password=x` ends where a value would begin, and so does `sasl.password:x`."""
    found = _ASSIGNS.search(key)
    return f"{key[: found.start()]}…" if found else key


def _cut(key: str) -> str:
    text = key_shown(key)
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}…"


def place_of(document: YamlMap, path: Iterable[str | int]) -> Location:
    """Return where the value at that path stands, or the nearest enclosing one."""
    return _along(document, path)[-1][1]


def drop(document: YamlMap, paths: Iterable[Steps]) -> None:
    """Take the entries and items at these paths out of a document, as far as they are there."""
    # Keys first, then items from the last: so no path comes to mean another item.
    for path in sorted(paths, key=lambda path: -path[-1] if isinstance(path[-1], int) else -inf):
        *_, (holder, _) = found = _along(document, path[:-1])
        last = path[-1]
        if len(found) < len(path):
            continue
        if isinstance(holder, YamlMap):
            for entries in (holder, holder.key_at, holder.value_at):
                entries.pop(str(last), None)
        elif isinstance(holder, YamlList) and isinstance(last, int) and last < len(holder):
            del holder[last], holder.item_at[last]


def _along(document: YamlMap, path: Iterable[str | int]) -> list[tuple[Any, Location]]:
    """Return the document and each value on the path in it, as far as it goes, with their places."""
    here: Any = document
    found = [(here, document.at)]
    for step in path:
        if isinstance(here, YamlMap) and step in here:
            place, here = here.value_at[str(step)], here[str(step)]
        elif isinstance(here, YamlList) and isinstance(step, int) and step < len(here):
            place, here = here.item_at[step], here[step]
        else:
            break
        found.append((here, place))
    return found
