"""Reads the pages of all codes: Markdown in `codes/`, which people read there, and which the program shows too."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reconciler.model.problem import CodePage, Severity

FOLDER = Path(__file__).with_name("codes")
_HEADING = re.compile(r"^## ", re.MULTILINE)
_PAGE = re.compile(
    r"(?P<code>KR[0-9]{3})\n"
    r"\*\*(?P<title>[^\n]+)\*\* · (?P<severity>[a-z]+)\n\n"
    r"(?P<meaning>.+?)\n\n"
    r"```(?:(?P<is_yaml>yaml)|text)\n(?P<example>.+?)```\n\n"
    r"\*\*What to do\.\*\* (?P<remedy>.+?)\n*",
    re.DOTALL,
)


def code_pages() -> Mapping[str, CodePage]:
    """Return the page of each code, by code; a ValueError names one that has not the form of the others."""
    pages = [page for file in sorted(FOLDER.glob("[0-9]xx.md")) for page in _pages(file.read_text("utf-8"))]
    return {page.code: page for page in sorted(pages, key=lambda page: page.code)}


def _pages(text: str) -> Iterator[CodePage]:
    for part in _HEADING.split(text)[1:]:
        found = _PAGE.fullmatch(part)
        if found is None:
            raise ValueError(f"the page of {part[:5]} has another form than those of the other codes")
        told: dict[str, Any] = found.groupdict()
        yield CodePage(**told | {"severity": Severity(told["severity"]), "is_yaml": told["is_yaml"] is not None})
