"""Java's hash order, against tables that Java 17 printed."""

import pytest

from reconciler.model.java_hash import hash_map_order, java_order, partition_hash, text_hash

THIRTY = (11, 10, 6, 17, 5, 16, 4, 19, 3, 18, 2, 13, 1, 12, 0, 15, 14, 20, 22, 21, 28, 27, 29, 24, 23, 26, 25, 9, 8, 7)


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@pytest.mark.parametrize(
    ("text", "its_hash"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -2147483648),
        ("consumer-1", -166239206),
        ("日本", 835047),
        ("\U0001f600", 1772899),
    ],
)
def test_a_text_has_the_hash_that_java_gives_it(text: str, its_hash: int) -> None:
    assert signed(text_hash(text)) == its_hash


def test_a_partition_has_the_hash_of_kafkas_topic_partition() -> None:
    assert signed(partition_hash(text_hash("orders"), 7)) == -1008769153
    assert signed(partition_hash(text_hash("pay.ments"), 123)) == -1883035467


@pytest.mark.parametrize(
    ("size", "order"),
    [
        (5, (4, 3, 2, 1, 0)),
        (12, tuple(range(11, -1, -1))),
        (13, (11, 10, 6, 5, 4, 3, 2, 1, 12, 0, 9, 8, 7)),
        (30, THIRTY),
    ],
)
def test_ids_are_walked_as_a_hash_map_walks_them_before_and_after_it_grows(size: int, order: tuple[int, ...]) -> None:
    assert hash_map_order(f"consumer-{number}" for number in range(size)) == tuple(f"consumer-{n}" for n in order)


def test_ids_of_one_bin_are_walked_in_the_order_of_arrival() -> None:
    assert hash_map_order(["BB", "z", "Aa", "AaBB", "BBAa", "AaAa"]) == ("BB", "Aa", "z", "AaBB", "BBAa", "AaAa")
    assert hash_map_order(["AaAa", "BBAa", "Aa", "z", "AaBB", "BB"]) == ("Aa", "BB", "z", "AaAa", "BBAa", "AaBB")


def test_texts_sort_by_utf_16_code_units() -> None:
    assert sorted(["\uff5e", "\U0001f600", "a", "Z", "é", ""], key=java_order) == [
        "",
        "Z",
        "a",
        "é",
        "\U0001f600",
        "\uff5e",
    ]
