"""The codec: what is written reads back, errors name their place, and schema and reader agree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import pytest
from jsonschema import Draft7Validator

from reconciler.model.codec import (
    ALWAYS,
    FILLED,
    HIDDEN,
    INLINE,
    NEVER_NULL,
    NULLABLE,
    OBJECT,
    REQUIRED,
    SINGLE,
    AtLeast,
    By,
    Check,
    Closed,
    Ids,
    Integer,
    Key,
    Malformed,
    Of,
    Pattern,
    When,
    from_json,
    schema_of,
    to_json,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Pair(NamedTuple):
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Place:
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @staticmethod
    def pattern() -> str:
        return "^.*:[0-9]+$"

    @classmethod
    def parse(cls, text: str) -> Self:
        file, colon, line = text.rpartition(":")
        if not colon or not line.isdigit():
            raise ValueError("must be a file and a line")
        return cls(file, int(line))


@dataclass(frozen=True, slots=True)
class Circle:
    """A round thing. More of it."""

    kind: ClassVar[Annotated[Literal["circle"], "What it is."]] = "circle"
    radius: Annotated[int, AtLeast(1), "How far."]


@dataclass(frozen=True, slots=True)
class Square:
    """A thing with corners."""

    kind: ClassVar[Annotated[Literal["square"], "What it is."]] = "square"
    key: Annotated[Pair, INLINE]


def _refuse_sevens(value: tuple[int, ...]) -> None:
    if 7 in value:
        raise Malformed(f"/{value.index(7)}", "must not be {}", 7)


@dataclass(frozen=True, slots=True)
class Whole:
    """Everything at once."""

    version: ClassVar[Annotated[str, Pattern("^1"), "The version."]] = "1.0"
    is_open: bool
    ids: Annotated[Ids, FILLED, Check(_refuse_sevens)]
    shapes: tuple[Circle | Square, ...] = ()
    by_number: Annotated[Mapping[int, Integer], REQUIRED] = field(default_factory=dict)
    texts: Annotated[Mapping[str, str | None], ALWAYS] = field(default_factory=dict)
    colour: Colour | None = None
    listed: Annotated[Mapping[int, Circle], By("radius")] = field(default_factory=dict)
    rows: tuple[Pair, ...] = ()
    at: Place | None = None
    state: Annotated[str, NULLABLE] = ""
    name: Annotated[str, Key("cluster/name", "Which cluster.")] = "c"
    rack: Annotated[str | None, Key("cluster/rack"), ALWAYS] = None
    secret: Annotated[int, HIDDEN] = 0
    some: frozenset[str] = frozenset()
    sizes: tuple[int | None, ...] = ()
    rest: Annotated[Mapping[str, object], When(lambda whole: whole.is_open)] = field(default_factory=dict)

    @property
    def count(self) -> Annotated[int, "How many."]:
        """How many."""
        return len(self.ids)

    @property
    def silent(self) -> int:
        """Not written."""
        return 0


OPEN = True
FULL = Whole(
    OPEN,
    (3, 1),
    (Circle(2), Square(Pair("a", 4))),
    {2: -5, 10: 1 << 80},
    {"k": None, "l": "v"},
    Colour.BLUE,
    {1: Circle(1), 9: Circle(9)},
    (Pair("x", 1),),
    Place("a:b.yaml", 7),
    "on",
    "d",
    "r",
    0,
    frozenset({"b", "a"}),
    (None, 4),
    {"any": [1, {"x": None}]},
)
JSON: dict[str, Any] = {
    "version": "1.0",
    "open": True,
    "ids": [3, 1],
    "shapes": [{"kind": "circle", "radius": 2}, {"kind": "square", "name": "a", "number": 4}],
    "byNumber": {"2": -5, "10": 1 << 80},
    "texts": {"k": None, "l": "v"},
    "colour": "blue",
    "listed": [{"kind": "circle", "radius": 1}, {"kind": "circle", "radius": 9}],
    "rows": [["x", 1]],
    "at": "a:b.yaml:7",
    "state": "on",
    "cluster": {"name": "d", "rack": "r"},
    "some": ["a", "b"],
    "sizes": [None, 4],
    "rest": {"any": [1, {"x": None}]},
    "count": 2,
}
LEAST = {
    "version": "1.0",
    "open": False,
    "ids": [3],
    "byNumber": {},
    "texts": {},
    "cluster": {"rack": None},
    "count": 1,
}


def test_a_value_with_everything_is_written_and_read_back() -> None:
    assert to_json(FULL) == JSON
    assert from_json(Whole, JSON) == FULL


def test_what_has_its_default_is_left_out() -> None:
    assert to_json(Whole(is_open=False, ids=(3,))) == LEAST
    assert from_json(Whole, {"open": False, "ids": [3], "future": 1}) == Whole(is_open=False, ids=(3,))


def test_lists_by_a_field_come_in_any_order_and_leave_sorted() -> None:
    found = from_json(Whole, JSON | {"listed": JSON["listed"][::-1]})
    assert list(found.listed) == [1, 9]


def test_null_reads_as_the_default_only_where_a_note_says_so() -> None:
    assert from_json(Whole, JSON | {"state": None}).state == ""
    with pytest.raises(Malformed):
        from_json(Whole, JSON | {"open": None})


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"open": 1}, "/open", "must be true or false, not {}"),
    ({"ids": 5}, "/ids", "must be a list, not {}"),
    ({"ids": [1, 1]}, "/ids", "must be a list of whole numbers of at least 0, none of them twice, not {}"),
    ({"ids": [1.0]}, "/ids", "must be a list of whole numbers of at least 0, none of them twice, not {}"),
    ({"ids": []}, "/ids", "must name at least one broker"),
    ({"ids": [1, 7]}, "/ids/1", "must not be {}"),
    ({"shapes": [{}]}, "/shapes/0", 'needs the field "kind"'),
    ({"shapes": [{"kind": 3}]}, "/shapes/0/kind", "must be a text, not {}"),
    ({"shapes": [{"kind": "x"}]}, "/shapes/0/kind", "must be one of circle, square, not {}"),
    ({"shapes": [{"kind": "circle", "radius": 0}]}, "/shapes/0/radius", "must be a whole number of at least 1, not {}"),
    ({"shapes": [{"kind": "square", "name": "a"}]}, "/shapes/0", 'needs the field "number"'),
    ({"shapes": [{"kind": "circle", "radius": 1}, 5]}, "/shapes/1", "must be an object, not {}"),
    ({"byNumber": {"1": True}}, "/byNumber/1", "must be a whole number, not {}"),
    ({"byNumber": {"01": 1}}, "/byNumber", "must have whole numbers as keys, not {}"),
    ({"texts": {"a~/b": 1}}, "/texts/a~0~1b", "must be a text, not {}"),
    ({"texts": []}, "/texts", "must be an object, not {}"),
    ({"colour": "green"}, "/colour", "must be one of red, blue, not {}"),
    ({"colour": 1}, "/colour", "must be a text, not {}"),
    (
        {"listed": [{"kind": "circle", "radius": 1}, {"kind": "circle", "radius": 1}]},
        "/listed/1/radius",
        "repeats {} of",
    ),
    ({"rows": [["x"]]}, "/rows/0", "must be a list of name, number, not {}"),
    ({"rows": [["x", "y"]]}, "/rows/0", "must be a list of name, number, not {}"),
    ({"at": "nowhere"}, "/at", "must be a file and a line, not {}"),
    ({"cluster": {"name": 5}}, "/cluster/name", "must be a text, not {}"),
    ({"cluster": 5}, "/cluster", "must be an object, not {}"),
    ({"some": ["a", 1]}, "/some", "must be a list of texts, not {}"),
    ({"sizes": [1, -1]}, "/sizes/1", "must be a whole number of at least 0 or null, not {}"),
    ({"rest": 5}, "/rest", "must be an object, not {}"),
]


@pytest.mark.parametrize(("change", "pointer", "message"), WRONG)
def test_an_error_names_the_place_and_what_was_found(change: dict[str, Any], pointer: str, message: str) -> None:
    with pytest.raises(Malformed) as error:
        from_json(Whole, JSON | change)
    assert (error.value.pointer, error.value.message) == (pointer, message)


def test_the_schema_takes_what_is_written_and_refuses_what_the_reader_refuses() -> None:
    schema = schema_of(Whole)
    Draft7Validator.check_schema(schema)
    validator = Draft7Validator(schema)
    assert validator.is_valid(JSON)
    assert validator.is_valid(LEAST)
    beyond = (
        {"ids": [1, 7]},
        {"ids": [1.0]},
        {"listed": [{"kind": "circle", "radius": 1}, {"kind": "circle", "radius": 1}]},
    )  # what no schema can say
    for change, _, _ in WRONG:
        assert validator.is_valid(JSON | change) == (change in beyond), change


def test_a_strict_schema_knows_every_member_and_an_open_one_takes_more() -> None:
    strict, lenient = Draft7Validator(schema_of(Whole)), Draft7Validator(schema_of(Whole, is_strict=False))
    for more in ({"future": 1}, {"colour": None}, {"state": None}):
        assert not strict.is_valid(JSON | more)
        assert lenient.is_valid(JSON | more)


def test_the_schema_says_what_is_beside_the_fields() -> None:
    schema = schema_of(Whole)
    assert schema["description"] == "Everything at once."
    assert schema["required"] == ["version", "open", "ids", "byNumber", "count"]
    properties = schema["properties"]
    assert properties["count"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": (1 << 63) - 1,
        "description": "How many.",
    }
    assert properties["cluster"]["description"] == "Which cluster."
    assert properties["version"]["pattern"] == "^1"
    assert [each["properties"]["kind"] for each in properties["shapes"]["items"]["oneOf"]] == [
        {"const": "circle", "description": "What it is."},
        {"const": "square", "description": "What it is."},
    ]
    assert not {"secret", "silent"} & properties.keys()


class Standing(StrEnum):
    about: str

    def __new__(cls, value: str, about: str) -> Self:
        member = str.__new__(cls, value)
        member._value_, member.about = value, about
        return member

    UP = "up", "Those that stand."
    DOWN = "down", "Those that do not."


@dataclass(frozen=True, slots=True)
class Count:
    by_standing: Annotated[Mapping[Standing, tuple[Annotated[Pair, OBJECT], ...]], INLINE]
    of: Annotated[Mapping[Standing, int], "How many."]


def test_a_mapping_from_an_enumeration_has_a_member_for_each_with_what_it_is_about() -> None:
    value = Count({Standing.UP: (Pair("a", 1),), Standing.DOWN: ()}, {Standing.UP: 1, Standing.DOWN: 0})
    document = to_json(value)
    assert document == {"up": [{"name": "a", "number": 1}], "down": [], "of": {"up": 1, "down": 0}}
    assert from_json(Count, document) == value
    found = schema_of(Count)
    assert [found["properties"][name]["description"] for name in ("up", "down")] == [
        "Those that stand.",
        "Those that do not.",
    ]
    assert set(found["required"]) == {"up", "down", "of"}
    with pytest.raises(Malformed) as wrong:
        from_json(Count, {"up": [], "down": [], "of": {"up": 1}})
    assert (wrong.value.pointer, wrong.value.message) == ("/of", 'needs the field "down"')


@dataclass(frozen=True, slots=True)
class ByHand:
    """What people write."""

    FORM: ClassVar = Closed({"comment": Annotated[str, "For readers."]})

    name: Annotated[str, FILLED]
    sizes: Annotated[tuple[Circle, ...], Of("circles", 1, 2)] = (Circle(1),)
    colours: Annotated[tuple[str, ...], Of("colours", most=2), SINGLE] = ()
    listed: Annotated[tuple[Circle, ...] | None, By("radius"), NEVER_NULL] = None


def test_a_document_of_people_may_hold_one_text_for_a_list_and_what_is_passed_over() -> None:
    document = {"name": "n", "colours": "red", "comment": "c"}
    assert from_json(ByHand, document) == ByHand("n", colours=("red",))
    assert to_json(ByHand("n", colours=("red",))) == {"name": "n", "colours": ["red"]}
    for is_strict in (True, False):
        assert Draft7Validator(schema_of(ByHand, is_strict=is_strict)).is_valid(document)


@pytest.mark.parametrize(
    ("change", "pointer", "message"),
    [
        ({"name": ""}, "/name", "must not be empty"),
        ({"colour": []}, "/colour", "is no field of this object; did you mean colours?"),
        ({"x/y": 1}, "/x~1y", "is no field of this object; known are colours, listed, name, sizes"),
        ({"sizes": []}, "/sizes", "must hold 1 to 2 circles, not 0"),
        ({"colours": ["a", "b", "c"]}, "/colours", "must hold at most 2 colours, not 3"),
        ({"colours": 5}, "/colours", "must be a list of colours, not 5"),
        ({"colours": [5]}, "/colours", "must be a list of colours, not [5]"),
        ({"colours": None}, "/colours", "must be a list of colours, not None"),
        ({"listed": None}, "/listed", "must be a list, not None"),
        ({"listed": [{"radius": 3}, {"radius": 1}, {"radius": 3}]}, "/listed/2/radius", "repeats 3 of /listed/0"),
    ],
)
def test_a_document_of_people_is_told_of_every_slip(change: dict[str, Any], pointer: str, message: str) -> None:
    document = {"name": "n", **change}
    with pytest.raises(Malformed) as wrong:
        from_json(ByHand, document)
    assert (wrong.value.pointer, wrong.value.told(str)) == (pointer, message)
    for is_strict in (True, False):
        assert not Draft7Validator(schema_of(ByHand, is_strict=is_strict)).is_valid(document)
