"""Measures how long and how hard to read the code is, and names the places that a change adds.

`tests/test_house.py` compares these figures with `[tool.ratchet.figures]` in pyproject.toml. Run as a program, this
file writes them there:

    .venv/bin/python tests/helpers/ratchet.py

A figure may only fall. The message of a commit that raises one has a line that begins with `Worth:` and says what the
addition is worth to whom. A mark shows a place to look at: the marked sentence may be the best one.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, TESTS = "reconciler", "tests"
SETTINGS = "pyproject.toml"
HEADING = "[tool.ratchet.figures]\n"
COMMAND = ".venv/bin/python tests/helpers/ratchet.py"
LONGEST_SUBJECT = 72
PLACES_SHOWN = 20
PLACE_LENGTH = 160
VAGUE = re.compile(
    "ahead|after|asked|at|back|before|behind|beside|by|each|few|found|given|going|gone|here|held|kept|known|lacking|least"
    "|left|less|looked|lying|made|many|more|most|much|of|one|other|others|own|past|put|ran|roomy|said|seen|shown|some"
    "|spared|standing|taken|then|there|told|wanted|whole|wrong"
)
"""Participles, pronouns and adverbs: as a name, none of them says what the thing is."""
MARKED = re.compile(
    r"^(?:What|Who|Whoever|Whose|Whatever|Which) (?!.*\?$)(?!to do)"  # a clause in the place of a subject
    r"|^(?:Of|At|By|Behind|Beside|With|Among|Within|Without|Inside|Under|Through|Beyond|Where|Wherever) "
    r"|(?i:\b(?:of|by|from|with|for|than|and|to|returns|says|finds|holds|keeps|reads) what\b)"
    r"|(?i:\b(?:told|tells?|foretold|foretells|untold|stands?|nobody|nothing|no one|that of|those of|ones? of)\b)"
)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])")
SHORTEST_SENTENCE = 5
"""Words. A shorter text is a heading or a label."""
STRING_OR_COMMENT = re.compile(
    r""""{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<comment>#[^\n]*)""",
    re.DOTALL,
)
"""A # inside a string begins no comment. Python's tokenizer finds the same, and takes four times as long."""
DIRECTIVE = re.compile("noqa|type: ignore|pragma")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
DEFINITION_AND_USE = 2
PULL_REQUEST = re.compile(r"Merge [0-9a-f]{40} into [0-9a-f]{40}")
"""The subject of the commit on which GitHub tests a pull request."""
COLLECTED = re.compile(r"(\d+) tests collected")
WORTH = re.compile(r"^Worth: \S", re.MULTILINE)
ROW = r"^\{}([\w-]+ = \{{(?:[\w-]+ = \d+(?:, )?)+\}})$"
"""A row that a commit takes out or puts in, by the sign of its line in the diff."""

Files = Mapping[str, str]
"""The text of each Python file, by its path below the root."""
Cases = Mapping[str, int]
"""How many cases each test has, by its id without parameters."""
Table = dict[str, dict[str, int]]
"""Figures by area: `{"admin": {"lines": 5735, "marked": 170}, "tests": {"lines": 88828}}`."""


class Mark(NamedTuple):
    """One place in a file that counts. If it moves, its figure and its text stay the same."""

    figure: str
    line: int
    text: str


class Difference(NamedTuple):
    """A figure that differs from its row. `additions`: the places that are new since the commit that wrote the row."""

    area: str
    figure: str
    recorded: int
    measured: int
    additions: tuple[str, ...]

    def __str__(self) -> str:
        change = f"{self.area}: {self.figure} {self.recorded} -> {self.measured}"
        hidden = len(self.additions) - PLACES_SHOWN
        shown = [shorten(place, PLACE_LENGTH, placeholder=" …") for place in self.additions[:PLACES_SHOWN]]
        return "\n  ".join([change, *shown, *([f"and {hidden} more"] if hidden > 0 else [])])


# The marks of one file.


@cache
def marks(source: str) -> tuple[Mark, ...]:
    """Return the marked sentences, vague names, private functions used once, classes and tests of a file."""
    nodes = list(ast.walk(ast.parse(source)))
    return (*_sentences(nodes, source), *_names(nodes, source))


def _sentences(nodes: list[ast.AST], source: str) -> Iterator[Mark]:
    for first_line, text in (*_docstrings(nodes), *_comments(source)):
        begin = 0
        for end in (*(match.end() for match in SENTENCE_END.finditer(text)), len(text)):
            words = text[begin:end].split()
            if len(words) >= SHORTEST_SENTENCE and MARKED.search(" ".join(words)):
                yield Mark("marked", first_line + text.count("\n", 0, begin), " ".join(words))
            begin = end


def _docstrings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of successive lines as one text, with the first of these lines."""
    block: list[str] = []
    last_line = 0
    for match in STRING_OR_COMMENT.finditer(source):
        comment = match["comment"]
        if comment and not DIRECTIVE.search(comment):
            line = source.count("\n", 0, match.start()) + 1
            if block and line != last_line + 1:
                yield last_line - len(block) + 1, "\n".join(block)
                block = []
            block.append(comment.lstrip("# "))
            last_line = line
    if block:
        yield last_line - len(block) + 1, "\n".join(block)


def _names(nodes: list[ast.AST], source: str) -> Iterator[Mark]:
    lines = source.splitlines()
    uses = Counter(WORD.findall(source))
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store(), lineno=line) | ast.arg(arg=name, lineno=line):
                if VAGUE.fullmatch(name.strip("_")):
                    yield Mark("vague", line, f"{name} in: {lines[line - 1].strip()}")
            case ast.ClassDef(name=name, lineno=line):
                yield Mark("classes-twice", line, name)
            case ast.FunctionDef(name=name, lineno=line) | ast.AsyncFunctionDef(name=name, lineno=line):
                is_private = name.startswith("_") and not name.startswith("__")
                if is_private and uses[name] == DEFINITION_AND_USE:
                    yield Mark("once", line, name)
                if name.startswith("test_"):
                    decorators = (ast.unparse(decorator) for decorator in node.decorator_list)
                    yield Mark("cases", line, " ".join([name, *decorators]))


# The figures of a tree, and how they differ from the table.


def table_of(root: Path) -> Table:
    """Return the figures that pyproject.toml records."""
    table: Table = _ratchet(root)["figures"]
    return table


def measured(files: Files, cases: Cases) -> Table:
    """Return the figures of every area."""
    return {
        area: {figure: _count(figure, inside, cases) for figure in _figures_of(area)}
        for area, inside in _areas(files).items()
    }


def differences(root: Path, cases: Cases | None) -> list[Difference]:
    """Return each figure that differs from its row. If `cases` is None, their number is not compared."""
    files, recorded = files_of(root), table_of(root)
    current = measured(files, cases or {})
    changes = []
    for area in sorted({*current, *recorded}):
        for figure in _figures_of(area):
            old, new = (table.get(area, {}).get(figure, 0) for table in (recorded, current))
            if old != new and (figure != "cases" or cases is not None):
                additions = _additions(root, files, area, figure, cases or {}) if new > old else ()
                changes.append(Difference(area, figure, old, new, additions))
    return changes


def files_of(root: Path) -> dict[str, str]:
    """Return the files of the package and of the tests."""
    paths = [path for folder in (PACKAGE, TESTS) for path in sorted((root / folder).rglob("*.py"))]
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}


def _areas(files: Files) -> dict[str, dict[str, str]]:
    """Return the files of each row: `all` is the whole package, `top` are the modules beside its packages."""
    areas: dict[str, dict[str, str]] = {"all": {}}
    for path, text in files.items():
        folder, *inside = path.split("/")
        if folder == PACKAGE:
            areas["all"][path] = text
            areas.setdefault(inside[0] if len(inside) > 1 else "top", {})[path] = text
        elif folder == TESTS:
            areas.setdefault(TESTS, {})[path] = text
    return areas


def _figures_of(area: str) -> tuple[str, ...]:
    return {"all": ("classes-twice",), TESTS: ("lines", "cases")}.get(area, ("lines", "marked", "vague", "once"))


def _count(figure: str, files: Files, cases: Cases) -> int:
    if figure == "cases":
        return sum(cases.values())
    places = _places(figure, files)
    return len({mark.text for _, mark in places} if figure == "classes-twice" else places)


def _places(figure: str, files: Files) -> list[tuple[str, Mark]]:
    """Return the places that a figure counts, each with its file. A class counts if several files define its name."""
    if figure == "lines":
        numbered = ((path, *row) for path, text in files.items() for row in enumerate(text.splitlines(), 1))
        return [(path, Mark(figure, line, text.strip())) for path, line, text in numbered]
    places = [(path, mark) for path, text in files.items() for mark in marks(text) if mark.figure == figure]
    if figure == "classes-twice":
        homes = Counter(name for _, name in {(path, mark.text) for path, mark in places})
        return [(path, mark) for path, mark in places if homes[mark.text] > 1]
    return places


def _additions(root: Path, files: Files, area: str, figure: str, cases: Cases) -> tuple[str, ...]:
    """Return the places of an area that were not there, or were fewer, in the commit that wrote its row."""
    earlier = _places(figure, _areas(_earlier_files(root, area)).get(area, {}))
    current = _places(figure, _areas(files)[area])
    added = Counter(mark.text for _, mark in current)
    added.subtract(mark.text for _, mark in earlier)
    lines = []
    for path, (_, line, text) in reversed(current):
        if text and added[text] > 0:
            added[text] -= 1
            number = cases.get(f"{path}::{text.split()[0]}") if figure == "cases" else None
            lines.append(f"{path}:{line}: {text}" + (f" ({number} cases)" if number is not None else ""))
    return tuple(reversed(lines))


def _earlier_files(root: Path, area: str) -> dict[str, str]:
    """Return the files of the commit that wrote an area's row, or of HEAD if the row is not committed."""
    _, _, rows = (root / SETTINGS).read_text("utf-8").partition(HEADING)
    row = next((line for line in rows.splitlines() if line.startswith(f"{area} = ")), None)
    if row is None:
        return {}
    revision = _git(root, "log", "-1", "--format=%H", f"-S{row}", "--", SETTINGS).decode().strip() or "HEAD"
    archive = _git(root, "archive", revision)
    if not archive:
        return {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        paths = [path for path in tar.getnames() if path.endswith(".py")]
        return {path: file.read().decode() for path in paths if (file := tar.extractfile(path))}


def _git(root: Path, *arguments: str) -> bytes:
    """Return the output of git. It is empty outside a checkout."""
    return subprocess.run(("git", *arguments), cwd=root, capture_output=True, check=False).stdout


# The commits since the table was made.


def has_history(root: Path) -> bool:
    """Whether the commit before the table's first is here. It is missing in a shallow clone and outside a checkout."""
    return _git(root, "cat-file", "-t", _since(root)) == b"commit\n"


def long_subjects(root: Path) -> list[str]:
    """Return the commits whose subject is too long."""
    commits = _git(root, "log", "--format=%h %s", f"{_since(root)}..HEAD").decode().splitlines()
    subjects = [(commit, commit.partition(" ")[2]) for commit in commits]
    return [c for c, subject in subjects if len(subject) > LONGEST_SUBJECT and not PULL_REQUEST.fullmatch(subject)]


def unexplained_raises(root: Path) -> list[str]:
    """Return the commits that raise a figure, and whose message does not say what that is worth."""
    log = _git(root, "log", "-p", "-U0", "--format=%x00%h %B%x00", f"{_since(root)}..HEAD", "--", SETTINGS).decode()
    parts = log.split("\0")[1:]
    unexplained = []
    for message, change in zip(parts[::2], parts[1::2], strict=True):
        rows = {sign: tomllib.loads("\n".join(re.findall(ROW.format(sign), change, re.MULTILINE))) for sign in "-+"}
        raised = [
            f"{area}: {figure} {rows['-'].get(area, {}).get(figure, 0)} -> {number}"
            for area, figures in rows["+"].items()
            for figure, number in figures.items()
            if number > rows["-"].get(area, {}).get(figure, 0)
        ]
        if raised and not WORTH.search(message):
            unexplained.append(f"{message.splitlines()[0]}: {', '.join(raised)}")
    return unexplained


def _since(root: Path) -> str:
    return str(_ratchet(root)["since"])


def _ratchet(root: Path) -> dict[str, Any]:
    ratchet: dict[str, Any] = tomllib.loads((root / SETTINGS).read_text("utf-8"))["tool"]["ratchet"]
    return ratchet


# The program that writes the table.


def rewritten(settings: str, table: Table) -> str:
    """Return the text of pyproject.toml with these figures in the place of its own."""
    rows = [f"{area} = {{{', '.join(f'{name} = {n}' for name, n in row.items())}}}\n" for area, row in table.items()]
    return re.sub(rf"(?<={re.escape(HEADING)})(.+\n)*", "".join(rows), settings)


def main() -> None:
    """Write the figures, and print each that changes, with the additions of one that rises."""
    collected = subprocess.run(
        (sys.executable, "-m", "pytest", "--collect-only", "-q"), cwd=ROOT, capture_output=True, text=True, check=True
    )
    cases = {"": int(COLLECTED.findall(collected.stdout)[-1])}
    changed = differences(ROOT, cases)
    settings = ROOT / SETTINGS
    settings.write_text(rewritten(settings.read_text("utf-8"), measured(files_of(ROOT), cases)), "utf-8")
    for difference in changed:
        sys.stdout.write(f"{difference}\n")
    if any(difference.measured > difference.recorded for difference in changed):
        sys.stdout.write("The commit's message needs a line: Worth: what this is worth to whom.\n")


if __name__ == "__main__":
    main()
