"""The CSV of offsets: what Kafka's own tool writes and reads."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.groups.files.offsets_csv import offsets_text, read_offsets, write_offsets
from reconciler.model.problem import InvalidInput
from reconciler.model.topic_partition import TopicPartition

ORDERS = {TopicPartition("orders", 10): 7, TopicPartition("orders", 9): 2**63 - 1, TopicPartition("a.b_c-d", 0): 0}


def test_the_group_is_written_where_it_is_wanted() -> None:
    assert offsets_text({"g": ORDERS}, has_groups=False) == "a.b_c-d,0,0\norders,9,9223372036854775807\norders,10,7\n"
    two = {"h": {TopicPartition("t", 0): 1}, "g": {TopicPartition("t", 0): 2}}
    assert offsets_text(two, has_groups=True) == "g,t,0,2\nh,t,0,1\n"


# Kafka takes any text as a group id.
groups = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6) | st.text(
    " '=@-\ufeff\",\r\n", max_size=5
)
keys = st.builds(TopicPartition, st.text("ab._-", min_size=1, max_size=5), st.integers(0, 2**31 - 1))


@pytest.mark.long
@given(st.dictionaries(groups, st.dictionaries(keys, st.integers(0, 2**63 - 1), min_size=1, max_size=4), min_size=1))
def test_what_is_written_reads_back(offsets: dict[str, dict[TopicPartition, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_offsets(f"{folder}/offsets.csv", offsets, has_groups=True)
        assert read_offsets(f"{folder}/offsets.csv", None) == offsets
        if len(offsets) == 1:
            write_offsets(f"{folder}/offsets.csv", offsets, has_groups=False)
            assert read_offsets(f"{folder}/offsets.csv", *offsets) == offsets


def test_a_group_that_is_named_is_taken_as_it_is(tmp_path: Path) -> None:
    assert read(tmp_path, "orders,0,5\n", "'=") == {"'=": {TopicPartition("orders", 0): 5}}


def read(tmp_path: Path, text: str | bytes, only: str | None) -> dict[str, dict[TopicPartition, int]]:
    file = tmp_path / "o.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_offsets(file, only)


@pytest.mark.parametrize(
    "text",
    [
        "orders,0,5\norders,1,6\n",
        "orders,0,5\r\norders,1,6\r\n",
        '"orders","0","5"\n"orders",1,6',  # Kafka's tool puts long names in quotes
        "\ufefforders,0,5\n\n orders , 1 , 6 \n",
        "g,orders,0,5\ng,orders,1,6\n",
    ],
)
def test_every_form_of_the_same_file_is_read(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text, "g") == {"g": {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 6}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("orders,0\n", "o.csv:1:1: a line is topic,partition,offset or group,topic,partition,offset; this one has 2"),
        ("orders,0,5\norders,x,5\n", "o.csv:2:1: orders,x is no topic and partition (KR162)"),
        ("orders,-1,5\n", "o.csv:1:1: orders,-1 is no topic and partition"),
        (",0,5\n", "o.csv:1:1: (empty),0 is no topic and partition"),
        ("orders,0,five\n", "o.csv:1:1: five is no offset: write a whole number"),
        ("orders,0,1.5\n", "1.5 is no offset"),
        ("orders,0,99999999999999999999\n", "is no offset"),
        ("orders,0,\u0663\n", "is no offset"),
        ("orders,0,1\norders,0,2\n", "o.csv:2:1: orders-0 of group g stands there twice"),
        ("topic,partition,offset\n", "topic,partition is no topic and partition"),
        ("\n\n", "it holds no offsets"),
        ("", "it holds no offsets"),
        (b"\xff\xfe", "o.csv:1:1: the CSV of offsets is not UTF-8 there"),
        ('orders,0,"5\x00', "KR162"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read(tmp_path, text, "g")
    assert told in str(raised.value)


def test_rows_without_a_group_are_refused_unless_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="name that one, or begin each line with its group"):
        read(tmp_path, "orders,0,5\n", None)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no such file, so there is no CSV of offsets to read; check the path"):
        read_offsets(tmp_path / "none.csv", "g")
