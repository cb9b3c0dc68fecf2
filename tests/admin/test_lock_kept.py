"""A text in pieces that Kafka keeps, each within what a broker takes, and whole again or not at all."""

import random
import string

import pytest
from helpers.depth import drawn
from hypothesis import strategies as st

from reconciler.admin.client.lock_kept import PIECE_CHARACTERS, joined, pieces

PARTITIONS = 50


def long_text(seed: int) -> str:
    """Return a text that takes several pieces: one that cannot be made much shorter."""
    return "".join(random.Random(seed).choices(string.printable, k=20_000))


@drawn(st.text(), st.integers(0, 30_000), st.integers(), part=40, deep=400)
def test_whatever_is_kept_is_read_again_in_any_order(text: str, more: int, seed: int) -> None:
    chance = random.Random(seed)
    whole = text + "".join(chance.choices(string.printable, k=more))
    for length in PIECE_CHARACTERS:
        found = pieces(whole, 9 * PARTITIONS * PIECE_CHARACTERS[0] // length, length)
        assert found is not None
        assert all(len(piece.encode()) == len(piece) <= length for piece in found)
        chance.shuffle(found)
        assert joined(found) == whole


def test_an_empty_text_takes_no_piece() -> None:
    assert pieces("", 0) == []
    assert joined([]) == ""


def test_what_does_not_fit_is_not_cut() -> None:
    found = pieces(long_text(1), PARTITIONS)
    assert found is not None
    assert len(found) > 2
    assert pieces(long_text(1), len(found)) == found
    assert pieces(long_text(1), len(found) - 1) is None


@pytest.mark.parametrize("place", [0, 1, -1])
def test_without_one_of_its_pieces_or_with_one_of_another_text_it_is_none(place: int) -> None:
    found, other = pieces(long_text(1), PARTITIONS), pieces(long_text(2), PARTITIONS)
    assert found is not None
    assert other is not None
    missing = [piece for piece in found if piece is not found[place]]
    assert joined(missing) == ""
    mixed = [*found]
    mixed[place] = other[place]
    assert joined(mixed) == ""
    assert joined([*missing, missing[0]]) == ""
    assert joined([*missing, found[place][:-1]]) == ""


@pytest.mark.long
@drawn(st.lists(st.text(string.printable) | st.from_regex(r"\A1 [0-9a-f]{8} \w+ \w+ .*\Z")), part=60, deep=1000)
def test_what_others_keep_there_is_no_text_and_no_error(found: list[str]) -> None:
    assert joined(found) == ""
    whole = pieces("a text", PARTITIONS)
    assert whole is not None
    for foreign in found:
        assert joined([*whole, foreign]) == joined([foreign, *whole]) == ""
