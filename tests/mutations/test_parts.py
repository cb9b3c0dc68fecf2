"""The part that each run tries loses no planted fault; the table in decision 34 names all of them."""

from pathlib import Path

import pytest
from helpers.figures import Tell

RECORD = Path(__file__).parents[2] / ".github" / "decisions" / "0034-depth-has-its-own-command.md"


@pytest.mark.deep
def test_what_the_whole_notices_the_part_notices(figures: Tell) -> None:
    from mutations.planted_faults import NOBODY, noticed

    rows = list(noticed())
    assert [row for row in rows if NOBODY in {row.part, row.whole}] == []
    figures("planted faults", f"{len(rows)}, each noticed by the part of each run and by the whole")


@pytest.mark.long
def test_the_table_names_every_planted_fault() -> None:
    from mutations.planted_faults import names

    _, _, rows = RECORD.read_text("utf-8").partition("| planted in | fault |")
    found = [line.strip("| ").split(" | ") for line in rows.splitlines()[2:]]
    assert found == [[where, what, "yes", "yes"] for where, what in names()]
