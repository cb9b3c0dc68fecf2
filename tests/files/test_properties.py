"""Client properties: Java's file format, references to secrets, and no secret in any message."""

from pathlib import Path

import pytest

from reconciler.files.properties import read_properties, resolve_client
from reconciler.model.problem import InvalidInput

CANARY = "c4n4ry-5ecret"


def read(folder: Path, content: str | bytes, **environ: str) -> dict[str, str]:
    path = folder / "client.properties"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return dict(read_properties(path, environ))


@pytest.mark.parametrize(
    ("content", "properties"),
    [
        ("", {}),
        ("# comment\n! comment\n\n  # indented\n", {}),
        ("a=b", {"a": "b"}),
        ("a = b\n", {"a": "b"}),
        ("a: b\r\nc b\rd\tx\n", {"a": "b", "c": "b", "d": "x"}),
        ("  a=b  \n", {"a": "b  "}),
        ("a=\nb=\n", {"a": "", "b": ""}),
        ("a=b=c:d#e\n", {"a": "b=c:d#e"}),
        ("a\\=b\\:c\\ d=x\n", {"a=b:c d": "x"}),
        ("a=one \\\n    two\\\n  three\nb=x\n", {"a": "one twothree", "b": "x"}),
        ("a=x\\\\\nb=y\n", {"a": "x\\", "b": "y"}),
        ("a=x\\", {"a": "x"}),
        ("a=\\u0041\\t\\n\\q\n", {"a": "A\t\nq"}),
        ("a=\\\\u0041\n", {"a": "\\u0041"}),
        ("a=x\u0085y\u2028z\x0b\n", {"a": "x\u0085y\u2028z\x0b"}),
        ("a=\u00a0x\n", {"a": "\u00a0x"}),
        ("\ufeffa=b\n", {"a": "b"}),
        ("a=größe\n", {"a": "größe"}),
    ],
)
def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path, content: str, properties: dict[str, str]) -> None:
    assert read(tmp_path, content) == properties


def test_references_become_what_they_name(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("pa ss\r\n")
    content = f"a=${{env:USER_NAME}}\nb=x${{file:{tmp_path}/pw}}y\nc=${{file:pw}}\nd=${{env:USER_NAME}}\n"
    assert read(tmp_path, content, USER_NAME="me") == {"a": "me", "b": "xpa ssy", "c": "pa ss", "d": "me"}


def test_what_a_secret_holds_is_not_a_reference_again(tmp_path: Path) -> None:
    assert read(tmp_path, "a=${env:A}\n", A="${env:B}", B="x") == {"a": "${env:B}"}


def test_properties_of_the_document_win_over_those_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "f.properties").write_text("a=1\nb=2\n")
    assert resolve_client({"file": "f.properties", "b": "3"}, tmp_path, {}) == {"a": "1", "b": "3"}


def test_every_missing_secret_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff" + CANARY.encode())
    names = ("client.id", "sasl.password", "sasl.username", "ssl.key.password")
    client = dict(zip(names, ("${env:NONE}", "${file:gone}", "${file:binary}", "${file:x\0y}"), strict=True))
    with pytest.raises(InvalidInput) as error:
        resolve_client({**client, "ssl.keystore.password": CANARY}, tmp_path, {"OTHER": CANARY})
    assert [str(problem) for problem in error.value.problems] == [
        "client: client.id wants the variable NONE, which is not set (KR130)",
        "client: sasl.password wants the file gone, which cannot be read: No such file or directory (KR130)",
        "client: sasl.username wants the file binary, which cannot be read: it is not UTF-8 text (KR130)",
        "client: ssl.key.password wants the file x\0y, which cannot be read: it is not UTF-8 text (KR130)",
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            f"client.id={CANARY}\nb=1\nclient.id={CANARY}x\n".encode(),
            r"client.properties:3:1: client.id is written twice: keep one",
        ),
        (f"{CANARY}={CANARY}\nb=1\n{CANARY}={CANARY}x\n".encode(), r"client.properties:3:1: … is written twice"),
        (f"a=1\n{CANARY}\n".encode(), r"client.properties:2:1: this line is no property"),
        (b"a=\xff" + CANARY.encode(), "are not UTF-8 text"),
        (f"client.id={CANARY}\\u12\n".encode(), r"client.properties:1:1: client.id holds \\u without its four digits"),
    ],
)
def test_a_wrong_file_is_refused_without_its_values(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as error:
        read(tmp_path, content)
    assert CANARY not in str(error.value)
    assert error.value.__cause__ is None


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"gone: the client properties cannot be read: No such file"):
        read_properties(tmp_path / "gone", {})


def test_a_reference_to_a_source_that_is_not_known_is_told_without_its_value(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        read(tmp_path, f"client.id={CANARY}${{vault:{CANARY}}}\n")
    assert "client.id holds something like ${env:NAME}" in str(error.value)
    assert CANARY not in str(error.value)
