"""What the YAML reader takes, what it refuses, and where it says so."""

import re
from typing import NamedTuple

import pytest

from reconciler.files.strict_yaml import MAX_BYTES, MAX_PROBLEMS, YamlFloat, place_of, read_yaml


class Bad(NamedTuple):
    """A file that must be refused: the place of its first problem, and part of what is said."""

    name: str
    content: bytes
    place: str
    says: str


HUGE = b"9" * 5000
BAD = [
    Bad("duplicate key", b"a: 1\nb: 2\na: 3\n", "3:1", "duplicate key 'a', first written at 1:1"),
    Bad("duplicate key in a flow mapping", b"{a: 1, a: 2}", "1:8", "duplicate key 'a'"),
    Bad("duplicate key, one of them quoted", b"a: 1\n'a': 2\n", "2:1", "duplicate key 'a'"),
    Bad("duplicate key deep inside", b"x:\n  - y: {k: 1, k: 2}\n", "2:15", "duplicate key 'k'"),
    Bad("duplicate key after CRLF lines", b"a: 1\r\nb: 2\r\na: 3\r\n", "3:1", "duplicate key 'a'"),
    Bad("duplicate key of 5,000 letters", b"? " + b"k" * 5000 + b"\n? " + b"k" * 5000, "2:3", "duplicate key 'kkk"),
    Bad("merge key", b"a: 1\n<<: {b: 1}\n", "2:1", "merge key << is not allowed"),
    Bad("merge key of a list", b"<<: [{a: 1}, {b: 2}]\n", "1:1", "merge key"),
    Bad("nested merge keys", b"a: &a {<<: {<<: {x: 1}}}\n", "1:4", "anchor"),
    Bad("anchor on a scalar", b"a: &x 1\n", "1:4", "an anchor (&) is not allowed"),
    Bad("anchor on a list", b"a: &x [1]\n", "1:4", "an anchor"),
    Bad("anchor on a mapping", b"a: &x {b: 1}\n", "1:4", "an anchor"),
    Bad("anchor on a key", b"&x a: 1\n", "1:1", "an anchor"),
    Bad("alias", b"b: *x\n", "1:4", "an alias (*) is not allowed"),
    Bad("alias in a list", b"- a\n- *x\n", "2:3", "an alias"),
    Bad("alias as a key", b"*x : 1\n", "1:1", "an alias"),
    Bad("a billion laughs", b"a: &a [l, l]\nb: &b [*a, *a]\nc: [*b, *b]\n", "1:4", "an anchor"),
    Bad("own tag", b"a: !mine 1\n", "1:4", "a tag (!) is not allowed"),
    Bad("Python object", b"a: !!python/object/apply:os.system [x]\n", "1:4", "a tag"),
    Bad("core tag on text", b"a: !!str 1\n", "1:4", "a tag"),
    Bad("core tag on a mapping", b"!!map {a: 1}\n", "1:1", "a tag"),
    Bad("non-specific tag", b"a: ! 1\n", "1:4", "a tag"),
    Bad("binary", b"a: !!binary aGk=\n", "1:4", "a tag"),
    Bad("set", b"a: !!set {x, y}\n", "1:4", "a tag"),
    Bad("list as a key", b"? [a, b]\n: c\n", "1:3", "a key must be a plain text, not a list or mapping"),
    Bad("mapping as a key", b"? {a: b}\n: c\n", "1:3", "a key must be a plain text"),
    Bad("flow mapping as a key", b"{{a: 1}: 2}\n", "1:2", "a key must be a plain text"),
    Bad("empty key", b"'': 1\n", "1:1", "a key must not be empty"),
    Bad("no key", b"? \n: 1\n", "1:2", "a key must not be empty"),
    Bad("colon first", b": x\n", "1:1", "not YAML"),
    Bad("Cyrillic letter in a key", "n\u0430me: x\n".encode(), "1:1", "U+0430"),
    Bad("accent in a key", "näme: x\n".encode(), "1:1", "U+00E4"),
    Bad("full-width digit in a key", "a\uff11: x\n".encode(), "1:1", "U+FF11"),
    Bad("direction override in a text", "a: x\u202ey\n".encode(), "1:5", "hidden character U+202E"),
    Bad("direction override in a comment", "a: x # \u202e\n".encode(), "1:8", "hidden character U+202E"),
    Bad("direction isolate", "a: \u2066x\n".encode(), "1:4", "hidden character U+2066"),
    Bad("zero-width space", "a: x\u200by\n".encode(), "1:5", "hidden character U+200B"),
    Bad("soft hyphen", "a: x\u00ady\n".encode(), "1:5", "hidden character U+00AD"),
    Bad("tag character", "a: x\U000e0041\n".encode(), "1:5", "hidden character U+E0041"),
    Bad("line separator", "a: x\u2028b: y\n".encode(), "1:5", "hidden character U+2028"),
    Bad("next line", "a: x\u0085b: y\n".encode(), "1:5", "hidden character U+0085"),
    Bad("byte order mark inside", b"a: \xef\xbb\xbf1\n", "1:4", "hidden character U+FEFF"),
    Bad("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbfa: 1\n", "1:1", "hidden character U+FEFF"),
    Bad("NUL byte", b"a: \0b\n", "1:4", "hidden character U+0000"),
    Bad("NUL byte on the second line", b"a: 1\nb: \0\n", "2:4", "hidden character U+0000"),
    Bad("escape byte", b"a: \x1b[31mred\n", "1:4", "hidden character U+001B"),
    Bad("bell", b"a: x # \x07\n", "1:8", "hidden character U+0007"),
    Bad("delete", b"a: x\x7f\n", "1:5", "hidden character U+007F"),
    Bad("form feed", b"a: x\x0cy\n", "1:5", "hidden character U+000C"),
    Bad("escaped NUL", b'a: "\\0"\n', "1:4", "the text holds the hidden character U+0000"),
    Bad("escaped escape", b'a: "\\x1b[31m"\n', "1:4", "hidden character U+001B"),
    Bad("escaped direction override", b'a: "\\u202e"\n', "1:4", "hidden character U+202E"),
    Bad("escaped half of a pair", b'a: "\\ud800"\n', "1:7", "not YAML"),
    Bad("unknown escape", b'a: "\\q"\n', "1:5", "not YAML"),
    Bad("tab as indent", b"a:\n\tb: 1\n", "2:1", "a tab does not indent, write spaces"),
    Bad("tab before the first key", b"\ta: 1\n", "1:1", "a tab does not indent"),
    Bad("spaces, then a tab", b"a:\n  b: 1\n\tc: 2\n", "3:1", "a tab character that violates indentation"),
    Bad("at sign", b"a: @x\n", "1:4", "'@' cannot begin a plain text"),
    Bad("backtick", b"a: `x`\n", "1:4", "'`' cannot begin a plain text"),
    Bad("per cent sign", b"a: %x\n", "1:4", "'%' cannot begin a plain text"),
    Bad("two colons", b"a: b: c\n", "1:5", "mapping values are not allowed"),
    Bad("wrong indent", b"a: 1\n  b: 2\n", "2:4", "mapping values are not allowed"),
    Bad("dedent to nowhere", b"a:\n    b: 1\n  c: 2\n", "3:3", "not YAML"),
    Bad("a list beside a mapping", b"a: 1\n- b\n", "2:1", "not YAML"),
    Bad("no colon", b"a: 1\nb\n", "3:1", "not YAML"),
    Bad("unclosed list", b"a: [1, 2\n", "2:1", "not YAML"),
    Bad("unclosed mapping", b"a: {b: 1\n", "2:1", "not YAML"),
    Bad("unclosed single quote", b"a: 'x\n", "2:1", "not YAML"),
    Bad("unclosed double quote", b'a: "x\n', "2:1", "not YAML"),
    Bad("text behind a quoted one", b"a: 'x' y\n", "1:8", "not YAML"),
    Bad("closing bracket alone", b"a: ]\n", "1:4", "not YAML"),
    Bad("missing comma", b"a: {b: 1 c: 2}\n", "1:11", "not YAML"),
    Bad("another version of YAML", b"%YAML 3.0\n---\na: 1\n", "1:1", "not YAML"),
    Bad("a directive without its document", b"%TAG ! x\n", "2:1", "not YAML"),
    Bad("text behind the end of the document", b"--- a\n... b\n", "2:5", "not YAML"),
    Bad("NaN", b"a: .nan\n", "1:4", "is no number"),
    Bad("infinity", b"a: .inf\n", "1:4", "is no number"),
    Bad("minus infinity", b"a: -.INF\n", "1:4", "is no number"),
    Bad("a decimal beyond doubles", b"a: 1.0e999\n", "1:4", "too large"),
    Bad("2^63", b"a: 9223372036854775808\n", "1:4", "beyond 64 bits"),
    Bad("below -2^63", b"a: -9223372036854775809\n", "1:4", "beyond 64 bits"),
    Bad("5,000 digits", b"a: " + HUGE + b"\n", "1:4", "beyond 64 bits"),
    Bad("5,000 digits and a fraction", b"a: " + HUGE + b".5\n", "1:4", "too large"),
    Bad("100,000 open lists", b"[" * 100_000, "1:33|1:1001", "nested deeper than 32 levels"),
    Bad("a million open lists", b"[" * 1_000_000, "1:33|1:1001", "nested deeper than 32 levels"),
    Bad("100,000 open mappings", b"{a: " * 100_000, "1:129", "nested deeper than 32 levels"),
    Bad("100,000 open mappings as keys", b"{" * 100_000, "1:2|1:1001", "a key must be a plain text|nested deeper"),
    Bad("100,000 block lists", b"- " * 100_000, "1:65", "nested deeper than 32 levels"),
    Bad("100,000 question marks", b"? " * 100_000, "1:3", "a key must be a plain text"),
    Bad("33 indented levels", b"".join(b" " * n + b"a:\n" for n in range(40)), "33:33", "nested deeper"),
    Bad("UTF-16", "a: 1".encode("utf-16"), "1:1", "byte 0 is not UTF-8"),
    Bad("Latin-1", b"a: 1\nb: \xe9\n", "2:4", "byte 8 is not UTF-8"),
    Bad("overlong UTF-8", b"a: \xc0\xaf\n", "1:4", "not UTF-8"),
    Bad("UTF-8 cut short", b"a: \xe2\x82", "1:4", "not UTF-8"),
    Bad("a surrogate in UTF-8", b"a: \xed\xa0\x80\n", "1:4", "not UTF-8"),
    Bad("a file that is too large", b"#" * (MAX_BYTES + 1), "1:1", "split it"),
]
TEXTS = tuple(
    re.findall(
        r"\S+",
        "no yes on off y n 1:30 12:30:45 0123 017 0o17 0x1f 0b1 1_000 2026-11-21 2026-11-21T14:02:11Z 1e5 1e-5 .5 5. "
        "+5 True TRUE False Null NULL nan inf NaN 00 -01 1.2.3 50MiB/s 7d 10% -- a#b a:b http://x/y",
    )
)


def test_there_are_many_named_cases() -> None:
    names = [case.name for case in BAD]
    assert len(names) >= 80
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_a_bad_file_is_refused_at_its_place(case: Bad) -> None:
    problems = read_yaml(case.content, "x.yaml").problems
    assert problems
    first = min(problems, key=lambda problem: (problem.at.line, problem.at.column) if problem.at else (0, 0))
    assert first.at is not None
    # Before PyYAML 6.0.4 our reader is first to see how deep a line goes, from then on the library is.
    assert f"{first.at.line}:{first.at.column}" in case.place.split("|"), str(first)
    assert any(says in first.message for says in case.says.split("|")), str(first)
    assert first.at.file == "x.yaml"
    assert len(str(first)) < 250


@pytest.mark.parametrize("text", TEXTS)
def test_what_other_readers_convert_stays_text(text: str) -> None:
    read = read_yaml(f"a: {text}\nb: [{text}]\n".encode(), "x.yaml")
    assert (read.documents, read.problems) == ([{"a": text, "b": [text]}], [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-0", 0),
        ("-17", -17),
        ("9223372036854775807", 2**63 - 1),
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("1.5e3", 1500.0),
        ("'true'", "true"),
        ('"1"', "1"),
        ("'null'", "null"),
        ('"a\\tb"', "a\tb"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        (">-\n  one\n  line\n", "one line"),
    ],
)
def test_a_value_is_what_it_looks_like(text: str, value: object) -> None:
    read = read_yaml(f"a: {text}\n".encode(), "x.yaml")
    assert read.problems == []
    assert read.documents == [{"a": value}]
    assert type(read.documents[0]["a"]) in {type(value), YamlFloat}


def test_a_decimal_number_keeps_its_text() -> None:
    assert [str(value) for value in read_yaml(b"[0.50, 1.0, 1.5e3]", "x").documents[0]] == ["0.50", "1.0", "1.5e3"]


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        (b"", []),
        (b"# only a comment\n", []),
        (b" \n\n", []),
        (b"---\n", [None]),
        (b"---\n---\n...\n", [None, None]),
        (b"a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        (b"\xef\xbb\xbfa: 1\n", [{"a": 1}]),
        (b"a: 1\r\nb: x\ty\r\n", [{"a": 1, "b": "x\ty"}]),
        (b"a:\tb\n", [{"a": "b"}]),
        (b"? a\n: 1\n", [{"a": 1}]),
        (b"'a b': 1\n5: x\ntrue: y\nnull: z\n", [{"a b": 1, "5": "x", "true": "y", "null": "z"}]),
        (b"'<<': 1\n", [{"<<": 1}]),
        ("a: größe 日本 🎉\n".encode(), [{"a": "größe 日本 🎉"}]),
        (b"%YAML 1.1\n---\na: 1\n", [{"a": 1}]),
        (b"just text", ["just text"]),
        (b"- a\n-\n- []\n- {}\n", [["a", None, [], {}]]),
    ],
)
def test_odd_but_plain_files_are_read(content: bytes, documents: list[object]) -> None:
    read = read_yaml(content, "x.yaml")
    assert (read.documents, read.problems) == (documents, [])


def test_every_problem_of_a_file_is_told_at_once() -> None:
    problems = read_yaml(b"a: &x 1\nb: *x\na: !t 2\nc: {<<: 1}\n", "x.yaml").problems
    assert [problem.at.line for problem in problems if problem.at] == [1, 2, 3, 3, 4]


def test_a_file_full_of_problems_is_given_up_after_a_hundred() -> None:
    assert len(read_yaml(b"- &a b\n" * 5000, "x.yaml").problems) == MAX_PROBLEMS


def test_keys_and_values_know_their_places() -> None:
    document = read_yaml(b"a:\n  b: [x, {c: 1}]\n", "x.yaml").documents[0]
    assert document["a"].key_at["b"] == ("x.yaml", 2, 3)
    assert place_of(document, ["a", "b", 1, "c"]) == ("x.yaml", 2, 14)
    assert place_of(document, ["a", "b", 1, "missing"]) == ("x.yaml", 2, 10)
    assert place_of(document, []) == ("x.yaml", 1, 1)


def test_columns_count_characters() -> None:
    assert read_yaml("ä: 1\n".encode(), "x").problems[0].at
    document = read_yaml("{a: 日本, b: 1}".encode(), "x").documents[0]
    assert document.key_at["b"] == ("x", 1, 9)


@pytest.mark.parametrize("mark", ["!", "&", "*"])
def test_a_text_that_is_no_yaml_is_not_repeated(mark: str) -> None:
    problems = read_yaml(f"sasl.password: {mark}s3cr3t-c4n4ry\n".encode(), "x.yaml").problems
    assert problems
    assert "c4n4ry" not in " ".join(map(str, problems))
