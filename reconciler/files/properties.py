"""Kafka client properties, of a Java properties file or the Cluster document; secrets are read where they are used."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from reconciler.model.problem import InvalidInput, Location, Problem

_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def resolve_client(client: Mapping[str, str], folder: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties with `file` read (relative to `folder`) and each `${env:}` and `${file:}` replaced.

    Raises InvalidInput that names each property whose secret is missing; never a value.
    """
    properties = dict(client)
    file = properties.pop("file", None)
    origin = "client"
    if file is not None:
        path = folder / file
        properties = {**_parsed(path), **properties}
        origin = str(path)
    problems: list[Problem] = []
    resolved = {key: _resolved(key, value, origin, environ, problems) for key, value in sorted(properties.items())}
    if problems:
        raise InvalidInput(problems)
    return resolved


def read_properties(path: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return a properties file's entries, secrets resolved."""
    return resolve_client({"file": path.name}, path.parent, environ)


def _resolved(key: str, value: str, origin: str, environ: Mapping[str, str], problems: list[Problem]) -> str:
    def secret(reference: re.Match[str]) -> str:
        source, name = reference.groups()
        try:
            return environ[name] if source == "env" else Path(name).read_text(encoding="utf-8").rstrip("\r\n")
        except KeyError:
            problems.append(Problem("KR130", f"{origin}: {key} wants the variable {name}, which is not set"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            problems.append(Problem("KR130", f"{origin}: {key} wants the file {name}, which cannot be read: {reason}"))
        return ""

    return _REFERENCE.sub(secret, value)


def _parsed(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            [Problem("KR131", f"{path}: the client properties cannot be read: {error.strerror}")]
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput([Problem("KR131", f"{path}: the client properties are not UTF-8 text")]) from None
    entries: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        if key in entries:
            place = Location(str(path), number)
            raise InvalidInput([Problem("KR131", f"{key} is written twice: keep one", place)])
        entries[key] = value
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each entry with its line; a backslash at the end of a line joins the next to it."""
    joined, begun = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        part = line.lstrip()
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


def _split(line: str) -> tuple[str, str]:
    found = re.match(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", line)
    key, value = found.groups() if found else (line, "")
    return _unescaped(key), _unescaped(value)


def _unescaped(text: str) -> str:
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code.group(1), 16)), text)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found.group(1), found.group(1)), plain)
