"""Fields of a JSON document, each checked as it is taken; what is wrong is named by its JSON pointer."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from reconciler.files.json_place import place_of_pointer
from reconciler.files.json_text import canonical_json
from reconciler.files.raw import invalid
from reconciler.model.codec import MAX_INTEGER, Malformed, pointer
from reconciler.model.problem import InvalidInput

T = TypeVar("T")
_SHOWN = 60
_MISSING = object()


def malformed(code: str, name: str, content: bytes, wrong: Malformed) -> InvalidInput:
    """Return the error that tells it: `name:line:column: /pointer message`."""
    place = place_of_pointer(content, wrong.pointer)
    return invalid(code, f"{name}{place}: {wrong.pointer or '/'} {wrong.told(shown)}")


def shown(value: object) -> str:
    """Return the value as JSON, cut where it is long."""
    text = canonical_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Fields:
    """One JSON object with its pointer; each method returns a field of one type or raises Malformed."""

    __slots__ = ("at", "value")

    def __init__(self, value: object, at: str) -> None:
        if not isinstance(value, dict):
            raise Malformed(at, f"must be an object, not {shown(value)}")
        self.value: dict[str, Any] = value
        self.at = at

    def where(self, key: object) -> str:
        """Return the pointer of a field."""
        return pointer(self.at, key)

    def text(self, key: str) -> str:
        """Return a text that must be there."""
        value = self._required(key)
        if not isinstance(value, str):
            raise Malformed(self.where(key), f"must be a text, not {shown(value)}")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a text; None where it is null or not there."""
        return None if self.value.get(key) is None else self.text(key)

    def integer(self, key: str, least: int = 0) -> int:
        """Return a whole number that must be there."""
        value = self._required(key)
        if type(value) is not int or not least <= value <= MAX_INTEGER:
            raise Malformed(self.where(key), f"must be a whole number of at least {least}, not {shown(value)}")
        return value

    def optional_integer(self, key: str, least: int = 0) -> int | None:
        """Return a whole number; None where it is null or not there."""
        return None if self.value.get(key) is None else self.integer(key, least)

    def items(self, key: str) -> list[Any]:
        """Return a list, empty where it is not there."""
        value = self.value.get(key, [])
        if not isinstance(value, list):
            raise Malformed(self.where(key), f"must be a list, not {shown(value)}")
        return value

    def each(self, key: str, read: Callable[["Fields"], T]) -> tuple[T, ...]:
        """Return what `read` makes of each object in a list."""
        at = self.where(key)
        return tuple(read(Fields(item, f"{at}/{index}")) for index, item in enumerate(self.items(key)))

    def member(self, key: str) -> "Fields":
        """Return an object, empty where it is not there."""
        return Fields(self.value.get(key, {}), self.where(key))

    def text_list(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty where it is not there."""
        items = self.items(key)
        if not all(isinstance(item, str) for item in items):
            raise Malformed(self.where(key), f"must be a list of texts, not {shown(items)}")
        return tuple(items)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers of at least 0 without repeats, empty where it is not there."""
        items = self.items(key)
        if not are_integers(items) or len(set(items)) != len(items):
            message = f"must be a list of whole numbers of at least 0, none of them twice, not {shown(items)}"
            raise Malformed(self.where(key), message)
        return tuple(items)

    def _required(self, key: str) -> Any:
        value = self.value.get(key, _MISSING)
        if value is _MISSING:
            raise Malformed(self.at, f"needs the field {canonical_json(key)}")
        return value


def are_integers(items: Sequence[object]) -> bool:
    """Whether each is a whole number from 0 to 2^63 - 1, true and false not being numbers."""
    return all(type(item) is int and 0 <= item <= MAX_INTEGER for item in items)
