"""Finds policies/*.sql, and whether each is one query; what it may ask, `balance.closed_query` decides."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reconciler.files.bounded import file_bytes
from reconciler.files.inside import LINK, inside, outside
from reconciler.files.load import SUFFIXES
from reconciler.files.paths import is_folder, is_there
from reconciler.model.desired import POLICIES_FOLDER
from reconciler.model.problem import InvalidInput, Location, Policy, Problem

MAX_BYTES = 1 << 16
_TOKENS = re.compile(
    r"""
      (?P<comment> --(?:\\\n|[^\n])* | /\*(?:[^*]|\*(?!/))*\*/ )
    | (?P<text>    [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<name>    `(?:[^`]|``)*` | [A-Za-z_]\w* )
    | (?P<sign>    \S )
    """,
    re.VERBOSE | re.DOTALL,
)
_NOT_READ = "KR186"


class _Token(NamedTuple):
    kind: str
    text: str
    line: int
    start: int

    @property
    def word(self) -> str:
        return self.text.strip("`").lower() if self.kind == "name" else ""


def read_policies(root: Path, cluster: str) -> tuple[Policy, ...]:
    """Return the policies that hold for that cluster: the root's, then its own, each by file name.

    Raises InvalidInput with all that is wrong: a file that cannot be read, is no query, or holds more than one; and
    whatever looks as if it held policies, or limits, and is not read. No file can switch policies off unseen.
    """
    problems: list[Problem] = []
    folders = [folder for above in (root, root / cluster) for folder in _folders(above, root, problems)]
    files = [file for folder in folders for file in _files(folder, root, problems)]
    found = tuple(policy for file in files for policy in _policy(file, root, problems))
    if problems:
        raise InvalidInput(problems)
    return found


def _folders(above: Path, root: Path, problems: list[Problem]) -> Iterator[Path]:
    for entry in _entries(above, root, problems):
        if entry.name == POLICIES_FOLDER:
            yield entry
        elif entry.name.strip(".").casefold() == POLICIES_FOLDER:
            message = f"is not read, and looks like a folder of policies: call it {POLICIES_FOLDER}, or something else"
            problems.append(Problem(_NOT_READ, message, _at(entry, root)))


def _files(folder: Path, root: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the queries of a folder; what else is there may only be text, and whatever no reader takes for a query."""
    if inside(root, folder) is None:
        problems.append(outside(LINK, _at(folder, root)))
        return
    is_roots = folder.parent == root
    if folder.is_symlink() and (is_roots or not is_there(folder)):
        problems.append(Problem(_NOT_READ, "is a link, and not followed: put the policies there", _at(folder, root)))
        return
    for entry in _entries(folder, root, problems):
        ending = entry.suffix.lower()
        if entry.suffix == ".sql" and not entry.name.startswith("."):
            yield entry
        elif ending == ".sql":
            message = (
                "is not read, and looks like a policy: let its name end in .sql and begin with no dot, or remove it"
            )
            problems.append(Problem(_NOT_READ, message, _at(entry, root)))
        elif ending in SUFFIXES and is_roots:
            message = "is not read: the root's folder policies is no cluster; move it into a cluster's folder"
            problems.append(Problem(_NOT_READ, message, _at(entry, root)))
        elif is_folder(entry, if_unknown=True) and _has_any(entry, (".sql", *SUFFIXES) if is_roots else (".sql",)):
            message = "is a folder, and policies in it are not read: move them up"
            problems.append(Problem(_NOT_READ, message, _at(entry, root)))


def _has_any(folder: Path, endings: tuple[str, ...]) -> bool:
    return any(name.lower().endswith(endings) for _, _, names in os.walk(folder) for name in names)


def _entries(folder: Path, root: Path, problems: list[Problem]) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"the policies there cannot be listed: {error.strerror}"
        problems.append(Problem("KR181", message, _at(folder, root)))
        return []


def _at(path: Path, root: Path) -> Location:
    return Location(path.relative_to(root).as_posix(), 1)


def _policy(file: Path, root: Path, problems: list[Problem]) -> Iterator[Policy]:
    name = file.relative_to(root).as_posix()
    real = inside(root, file)
    if real is None:
        problems.append(outside(LINK, Location(name, 1)))
        return
    text = _text(real, name, problems)
    if text is None:
        return
    tokens = list(_tokens(text))
    code = [token for token in tokens if token.kind != "comment"]
    while code and code[-1].text == ";":
        end = code.pop().start
        text = f"{text[:end]} {text[end + 1 :]}"  # its lines stay where they are
    for line, message in _wrong(code):
        problems.append(Problem("KR182", message, Location(name, line)))
        return
    yield Policy(_title(tokens) or f"policy {file.stem}", text, Location(name, code[0].line))


def _text(file: Path, name: str, problems: list[Problem]) -> str | None:
    try:
        if file.stat().st_size <= MAX_BYTES:
            return file_bytes(file, MAX_BYTES, is_link_followed=False).decode("utf-8-sig").replace("\r\n", "\n")
        reason = f"has more than {MAX_BYTES} bytes"
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "is not UTF-8 text"
    problems.append(Problem("KR181", f"the policy {reason}", Location(name, 1)))
    return None


def _tokens(text: str) -> Iterator[_Token]:
    line, end = 1, 0
    for match in _TOKENS.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        yield _Token(match.lastgroup or "sign", match[0], line, end)


def _wrong(code: list[_Token]) -> Iterator[tuple[int, str]]:
    """Yield line and sentence for each reason why this is no policy."""
    if not code:
        yield 1, "the policy asks nothing: write a query, each row of whose answer is a violation"
        return
    first = code[0]
    if first.word not in {"select", "with"}:
        yield first.line, f"a policy only asks: begin it with SELECT or WITH, not with {first.text[:40]}"
    for token in code:
        if token.text == ";":
            yield token.line, "a policy is one query: put the other into a file of its own"


def _title(tokens: list[_Token]) -> str:
    """Return the first sentence of the comment that the file begins with."""
    lines: list[str] = []
    for token in tokens:
        is_next = not lines or token.line == tokens[0].line + len(lines)
        if token.kind != "comment" or not token.text.startswith("--") or not is_next:
            break
        lines.append(token.text.lstrip("-").strip())
    said = " ".join(" ".join(lines).split())
    return re.split(r"[.:](?:\s|$)", said, maxsplit=1)[0]
