"""Sequences of what there may be a million of: they hold columns, and make values only for who looks at them."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class MadeOnDemand(Sequence[T]):
    """A sequence that makes its values when somebody looks at one, all of them at once. It equals a tuple of them."""

    @property
    @abstractmethod
    def values(self) -> tuple[T, ...]:
        """All values, made once."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.values)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.values[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MadeOnDemand | tuple) and len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return repr(self.values)


class SelfWritten(MadeOnDemand[T]):
    """Such a sequence that is written as JSON data from its columns, without making values."""

    @abstractmethod
    def written(self) -> list[Any]:
        """Return what the codec of a value would make of each."""
