"""Annotations say what was found, where, and nothing else: read back as GitHub's runner reads them."""

import re
from dataclasses import replace
from typing import NamedTuple

import pytest

from reconciler.files.codes import code_pages
from reconciler.model.problem import PlacedProblem, Problem, Severity
from reconciler.render.as_annotations import annotations

PAGES = code_pages()
ONE = PlacedProblem(Problem("KR103", "unknown key"), "desired-state/prod/t.yaml", 4, 3, 20, "a1:1")


class Command(NamedTuple):
    """A workflow command as the runner understands it."""

    name: str
    properties: dict[str, str]
    data: str


def runner_reads(line: str) -> Command:
    """Return what ActionCommand.TryParseV2 of actions/runner makes of a line."""
    text = line.lstrip()
    assert text.startswith("::")
    end = text.index("::", 2)
    name, _, rest = text[2:end].partition(" ")
    pairs = [each.split("=", 1) for each in rest.strip().split(",") if each]
    return Command(name, {pair[0]: unescaped(pair[1], ":,") for pair in pairs}, unescaped(text[end + 2 :], ""))


def unescaped(text: str, more: str) -> str:
    for character in ("\r", "\n", *more, "%"):
        text = text.replace(f"%{ord(character):02X}", character)
    return text


def spelled_back(text: str) -> str:
    r"""Return what was shown as \uXXXX, because a terminal or the runner would obey it, as the character that it is."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), text)


def read(*found: PlacedProblem) -> list[Command]:
    return [runner_reads(line) for line in annotations(found, PAGES).splitlines()]


def test_an_annotation_names_file_line_column_and_what_the_code_means() -> None:
    assert annotations([ONE], PAGES) == (
        "::error file=desired-state/prod/t.yaml,line=4,col=3,title=KR103 A key is unknown or missing::"
        "unknown key (KR103)\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "100% of it",
        "a\n::error::b",
        "a\r\n::set-output name=x::y",
        "::stop-commands::token",
        "##[error]x",
        "%0A::add-mask::x",
        "%25 and %3A",
        "a, b=c: d",
    ],
)
def test_whatever_a_message_or_a_path_holds_stays_in_it(text: str) -> None:
    odd = replace(ONE, problem=Problem("KR103", text), path=f"prod/{text}.yaml")
    (line,) = annotations([odd], PAGES).splitlines()
    command = runner_reads(line)
    assert command.name == "error"
    assert set(command.properties) == {"file", "line", "col", "title"}
    assert spelled_back(command.properties["file"]) == f"prod/{text}.yaml"
    assert spelled_back(command.data) == f"{text} (KR103)"


def test_ten_of_a_kind_are_shown_and_the_others_counted() -> None:
    warning = replace(ONE, problem=Problem("KR241", "a warning", severity=Severity.WARNING))
    told = read(*[ONE] * 12, *[warning] * 3)
    assert [command.name for command in told] == ["error"] * 10 + ["warning"] * 3 + ["notice"]
    assert told[-1].data.startswith("2 errors more are in the output")
    assert [command.name for command in read(*[ONE] * 10)] == ["error"] * 10


def test_a_code_without_a_page_is_its_own_title() -> None:
    assert "title=KR103::" in annotations([ONE], {})
