"""The fingerprint of a line is the one that GitHub's upload computes: else each upload would warn of each result."""

from pathlib import Path

import pytest

from reconciler.files.line_marks import line_marks

# The expected hashes stand in github/codeql-action, src/fingerprints.test.ts.
ENDINGS = [
    "e9496ae3ebfced30:1", "fb7c023a8b9ccb3f:1", "ce8ba1a563dcdaca:1", "e20e36e16fcb0cc8:1",
    "b3edc88f2938467e:1", "c8e28b0b4002a3a0:1", "c129715d7a2bc9a3:1",
]  # fmt: skip
KNOWN = {
    "": ["c129715d7a2bc9a3:1"],
    " a\nb\n  \t\tc\n d": ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"],
    " hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n": ENDINGS,
    " hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r": ENDINGS,
    " hello; \t\r\nworld!!!\r\n\r\n\r\n  \t\tGreetings\r\n End\r\n": ENDINGS,
    " hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n": ENDINGS,
    "Lorem ipsum dolor sit amet.\n" * 10: [
        *(f"a7f2ff13bc495cf2:{count}" for count in range(1, 7)),
        "a7f2ff1481e87703:1", "a9cf91f7bbf1862b:1", "55ec222b86bcae53:1", "cc97dc7b1d7d8f7b:1", "c129715d7a2bc9a3:1",
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_the_hash_of_each_line_is_githubs_own(text: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(text.encode())
    found = line_marks(file, range(1, 20))
    assert [found[number].hash for number in sorted(found)] == KNOWN[text]


def by_rolling(text: str) -> list[str]:
    """Return the hashes as a rolling sum makes them: slow, and with none of the code that is tested."""
    told, kept, raw, seen = [], [0] * 100, 0, dict[str, int]()
    characters = [ord(each) for each in text.replace("\r\n", "\n").replace("\r", "\n") if each not in " \t"]
    starts = {0, *(position + 1 for position, each in enumerate(characters) if each == 10)}
    for position, each in enumerate([*characters, 0xFFFF, *[0] * 100]):
        if position - 100 in starts:
            word = f"{raw:x}"
            seen[word] = seen.get(word, 0) + 1
            told.append(f"{word}:{seen[word]}")
        raw = (raw * 37 + each - kept[position % 100] * 37**100) % 2**64
        kept[position % 100] = each
    return told


def test_the_hash_agrees_with_a_rolling_sum_on_other_alphabets(tmp_path: Path) -> None:
    text = "apiVersion: reconciler/v1\n# Größe, 名前, \u0a0a\u0a00\n" * 7 + "spec: {partitions: 6}"
    file = tmp_path / "file"
    file.write_text(text, "utf-8")
    found = line_marks(file, range(1, 30))
    assert [found[number].hash for number in sorted(found)] == by_rolling(text)


def test_the_end_of_a_line_is_behind_its_last_character(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes("a: é  \r\n\nspec:\r\n".encode())
    assert {number: mark.end_column for number, mark in line_marks(file, {1, 2, 3, 9}).items()} == {1: 5, 2: 1, 3: 6}


def test_a_file_that_cannot_be_read_has_no_marks(tmp_path: Path) -> None:
    assert line_marks(tmp_path, {1}) == {}
    assert line_marks(tmp_path / "none", {1}) == {}
