"""The part that each run tries loses no planted fault; decision 23 says how large part and whole are."""

import pytest
from helpers.figures import Tell


@pytest.mark.deep
def test_what_the_whole_notices_the_part_notices(figures: Tell) -> None:
    from mutations.planted_faults import NOBODY, noticed

    rows = list(noticed())
    assert [row for row in rows if NOBODY in {row.part, row.whole}] == []
    figures("planted faults", f"{len(rows)}, each noticed by the part of each run and by the whole")
