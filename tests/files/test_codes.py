"""Every code has its page, with an example that is one; and the pages are right about what the source says."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest
from helpers.program.documents import document

from reconciler.files.codes import FOLDER, code_pages
from reconciler.files.load import load_desired
from reconciler.model.problem import CodePage, InvalidInput, Severity

PACKAGE = Path(__file__).resolve().parents[2] / "reconciler"
CLUSTER = document("Cluster", "prod", "{client: {bootstrap.servers: 'b:1'}}")
PAGES = code_pages()
CODE = re.compile(r"\bKR[0-9]{3}\b")
WORDS_IN_A_ROW = 3
OTHERS_WORDS = {"KR430", "KR431"}
"""Their messages are a policy's title and rows."""


def texts_in(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from texts_in(constant)
        elif isinstance(constant, str):
            yield constant


@cache
def sources() -> tuple[str, ...]:
    return tuple(file.read_text("utf-8") for file in sorted(PACKAGE.rglob("*.py")))


def codes() -> frozenset[str]:
    return frozenset(code for text in sources() for code in CODE.findall(text))


def test_every_code_has_a_page_and_every_page_a_code_that_is_used() -> None:
    missing, unused = codes() - set(PAGES), set(PAGES) - codes()
    assert not missing, "write what each means, an example and what to do into reconciler/files/codes/"
    assert not unused


def test_a_page_stands_once_in_its_hundreds_file_and_in_order() -> None:
    for file in sorted(FOLDER.glob("?xx.md")):
        found = re.findall(r"^## (\S+)$", file.read_text("utf-8"), re.MULTILINE)
        assert found == sorted(set(found)), file.name
        assert {code[2] for code in found} == {file.name[0]}


def test_the_list_of_pages_names_each_file() -> None:
    linked = set(re.findall(r"\(([^)]+\.md)\)", (FOLDER / "README.md").read_text("utf-8")))
    assert linked == {file.name for file in FOLDER.glob("?xx.md")}


def test_a_page_is_whole_sentences_within_what_code_scanning_shows() -> None:
    for page in PAGES.values():
        assert page.title[0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ", page.code
        assert not page.title.endswith("."), page.code
        assert len(page.title) <= 80, page.code
        assert 20 <= len(page.meaning) <= 1024, page.code
        assert page.meaning.endswith("."), page.code
        assert page.remedy.endswith("."), page.code
        assert "\n" not in page.remedy, page.code


def test_no_two_pages_have_one_title_or_one_meaning() -> None:
    assert len({page.title for page in PAGES.values()}) == len(PAGES)
    assert len({page.meaning for page in PAGES.values()}) == len(PAGES)


@pytest.mark.parametrize("page", [page for page in PAGES.values() if page.is_yaml], ids=lambda page: page.code)
def test_an_example_in_yaml_raises_its_code(page: CodePage, tmp_path: Path) -> None:
    (tmp_path / "prod").mkdir()
    name = "cluster.yaml" if "kind: Cluster" in page.example else "topics.yaml"
    (tmp_path / "prod" / "cluster.yaml").write_text(CLUSTER, "utf-8")
    (tmp_path / "prod" / name).write_text(page.example, "utf-8")
    with pytest.raises(InvalidInput) as refused:
        load_desired(tmp_path, "prod")
    assert {problem.code for problem in refused.value.problems} == {page.code}


@pytest.mark.long
def test_an_example_in_words_ends_with_a_code_and_uses_the_programs_words() -> None:
    compiled = (SourceFileLoader("any", str(file)).get_code("any") for file in PACKAGE.rglob("*.py"))
    known = {row for code in compiled if code for text in texts_in(code) if " " in text for row in rows(text)}
    pages = [page for page in PAGES.values() if not page.is_yaml and page.code not in OTHERS_WORDS]
    assert [page.code for page in pages if not re.search(r"\(KR\d+\)", page.example)] == []
    strange = [page.code for page in pages if known.isdisjoint(rows(re.sub(r"\(KR\d+\)", "", page.example)))]
    assert strange == [], "the program says none of the example's words: has a message changed?"


def rows(text: str) -> Iterator[tuple[str, ...]]:
    words = re.sub(r"[^a-z ]+", " ", text.lower()).split()
    return zip(*(words[start:] for start in range(WORDS_IN_A_ROW)), strict=False)


LEVELS = {f"Severity.{level.name}": level for level in Severity}
USUAL = {"Problem": Severity.ERROR, "warning": Severity.WARNING, "Finding": None}
"""What makes a problem or a finding, and its level where none is given."""


def told_levels() -> Iterator[tuple[str, Severity]]:
    """Yield the level of each problem and finding whose code and weight stand in one call, as they are written."""
    for source in (ast.parse(text) for text in sources() if CODE.search(text)):
        names = {
            target.id: node.value.value
            for node in source.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(source):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in USUAL and node.args:
                first = node.args[0]
                code = first.value if isinstance(first, ast.Constant) else names.get(ast.unparse(first))
                given = [ast.unparse(each) for each in [*node.args[1:], *(each.value for each in node.keywords)]]
                weights = [LEVELS[each] for each in given if each in LEVELS]
                level = weights[0] if weights else USUAL[ast.unparse(node.func)]
                if isinstance(code, str) and level is not None:
                    yield code, level


@pytest.mark.long
def test_a_page_weighs_its_code_as_the_source_does() -> None:
    told = dict(told_levels())
    assert len(told) > 100
    assert {code: level for code, level in told.items() if PAGES[code].severity is not level} == {}
