"""Reads Kafka client properties, of a Java properties file or the Cluster document; secrets are read where used."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from reconciler.files.bounded import MAX_PROPERTIES_BYTES, MAX_SECRET_BYTES, file_bytes
from reconciler.files.inside import CLIENT_FILE, OUTSIDE, inside, required_inside, secret_outside
from reconciler.files.json_place import line_and_column
from reconciler.files.raw import invalid
from reconciler.model.client_properties import name_shown
from reconciler.model.problem import InvalidInput, Problem

WRONG = "KR131"
_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_STRANGE = re.compile(r"\$\{(?!(?:env|file):[^}]+\})[A-Za-z]+:")
STRANGE = "holds something like ${env:NAME} or ${file:/path} that is neither; a value that looks so goes in a file"
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANKS = " \t\f"
_SEPARATED = re.compile(r"^(?:\\.|[^\\=: \t\f])+[ \t\f]*[=: \t\f]", re.DOTALL)
"""A name, and what ends it. A line without is a key to Java; here it may be a secret that lost its name."""
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BAD_CODE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def resolve_client(
    client: Mapping[str, str],
    folder: Path,
    environ: Mapping[str, str],
    root: Path | None = None,
    *,
    origin: str = "client",
) -> Mapping[str, str]:
    """Return the properties with `file` read (relative to `folder`) and each `${env:}` and `${file:}` replaced.

    Relative paths stay inside the root, where one is given; absolute ones of secrets are places of the machine. Raises
    InvalidInput that names each property whose secret is missing; never a value. `origin`: where they are written.
    """
    properties = dict(client)
    file = properties.pop("file", None)
    if file is not None:
        path = folder / file
        if root is not None:
            path = required_inside(root, path, f"{path}: {CLIENT_FILE}", None)
        properties = {**_parsed(path), **properties}
        origin = str(path)
    problems: list[Problem] = []

    def secret(key: str, reference: re.Match[str]) -> str:
        source, name = reference.groups()
        is_relative = source == "file" and not Path(name).is_absolute()
        if root is not None and is_relative and inside(root, folder / name) is None:
            problems.append(Problem(OUTSIDE, f"{origin}: {secret_outside(key, name)}"))
            return ""
        wants = f"{origin}: {name_shown(key)} wants the"
        try:
            return environ[name] if source == "env" else _file_text(folder / name)
        except KeyError:
            problems.append(Problem("KR130", f"{wants} variable {name}, which is not set"))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            problems.append(Problem("KR130", f"{wants} file {name}, which cannot be read: {reason}"))
        return ""

    resolved = {}
    for key, value in sorted(properties.items()):
        if has_strange_reference(value):
            problems.append(Problem("KR130", f"{origin}: {name_shown(key)} {STRANGE}"))
        resolved[key] = _REFERENCE.sub(partial(secret, key), value)
    if problems:
        raise InvalidInput(problems)
    return resolved


def _file_text(path: Path) -> str:
    """Return a file's text without the newline that editors put at its end."""
    return file_bytes(path, MAX_SECRET_BYTES).decode().rstrip("\r\n")


def read_properties(path: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return a properties file's entries, secrets resolved."""
    return resolve_client({"file": path.name}, path.parent, environ)


def relative_files(value: str) -> tuple[str, ...]:
    """Return the files that the value refers to by relative paths."""
    named = (name for source, name in _REFERENCE.findall(value) if source == "file")
    return tuple(name for name in named if not Path(name).is_absolute())


def has_strange_reference(value: str) -> bool:
    """Whether the value refers to a source that is not known, or does not end the reference."""
    return _STRANGE.search(value) is not None


def _parsed(path: Path) -> dict[str, str]:
    try:
        content = file_bytes(path, MAX_PROPERTIES_BYTES)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        place = f"{path}:{line_and_column(before, len(before))}"
        raise invalid(WRONG, f"{place}: the client properties are not UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise invalid(WRONG, f"{path}: the client properties cannot be read: {reason}") from None
    entries: dict[str, str] = {}
    for number, line in _logical_lines(text):
        found = _ENTRY.match(line)
        key, value = map(_unescaped, found.groups() if found else (line, ""))
        if not _SEPARATED.search(line):
            wrong = "this line is no property: write its name, = and its value"
        elif _BAD_CODE.search(line):
            wrong = f"{name_shown(key)} holds \\u without its four digits"
        elif key in entries:
            wrong = f"{name_shown(key)} is written twice: keep one"
        else:
            entries[key] = value
            continue
        raise invalid(WRONG, f"{path}:{number}:1: {wrong}")
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each entry with its line; a backslash at the end of a line joins the next to it."""
    joined, begun = "", 0
    for number, line in enumerate(_LINE_END.split(text), start=1):
        part = line.lstrip(_BLANKS)
        if not joined and (not part or part[0] in "#!"):
            continue
        begun = begun if joined else number
        is_open = (len(part) - len(part.rstrip("\\"))) % 2 == 1
        joined += part[:-1] if is_open else part
        if not is_open:
            yield begun, joined
            joined = ""
    if joined:
        yield begun, joined


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        code, character = found.groups()
        return chr(int(code, 16)) if code else _ESCAPES.get(character, character)

    return _ESCAPE.sub(plain, text)
