"""Turns values into JSON data and back, and derives the JSON Schema of that data: the types are the format.

A format is a frozen dataclass. Its fields name the members, their annotations say what may stand there, and a text
beside the annotation explains it: `bytes: Annotated[int, "What is copied."]`. Writer, reader and schema all follow from
that one place, so they cannot disagree. What is made here are dicts, lists and scalars; `files` and `render` make text.

A member's name is the field's in camelCase, without `is_`. A field with a default is left out where it has that value.
A property is written where its return type is `Annotated`, and so is a class variable, but neither is read. A union of
classes is told apart by the `Literal` class variable that each of them has. The notes below change all this.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from enum import Enum
from functools import cache
from inspect import cleandoc
from itertools import count
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from reconciler.model.on_demand import SelfWritten

T = TypeVar("T")
MAX_INTEGER = (1 << 63) - 1
"""The largest number that is read where nothing else is said: Kafka's own counts and sizes are signed 64 bits."""
Schema = dict[str, Any]


class Malformed(Exception):
    """A document does not fit its type. `pointer` (RFC 6901) is the place.

    `found` comes from the document and stands in the message at `{}`: as JSON, which whoever prints it makes.
    `other`: a second place, with which the message ends.
    """

    def __init__(self, pointer: str, message: str, found: object = MISSING, other: str | None = None) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.found = found
        self.other = other

    def told(self, shown: Callable[[object], str]) -> str:
        """Return the message with what was found, as `shown` makes a text of it."""
        message = self.message if self.found is MISSING else self.message.replace("{}", shown(self.found), 1)
        return message if self.other is None else f"{message} {self.other}"

    def inside(self, key: object) -> "Malformed":
        """Return the error with its places as seen from one level further out."""
        self.pointer = pointer("", key) + self.pointer
        self.other = None if self.other is None else pointer("", key) + self.other
        return self


def pointer(parent: str, key: object) -> str:
    """Return the JSON pointer of a member."""
    return f"{parent}/{str(key).replace('~', '~0').replace('/', '~1')}"


@dataclass(frozen=True, slots=True)
class Key:
    """The member's name, where it is not the field's; `run/cordon`: it lies in an object `run`, which `about` explains.

    Nothing behind the last slash: the members of the field's own value stand there, instead of an object of their own.
    """

    path: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The least number, 0 where nothing is said; None: any whole number, however small or large.

    A smaller `most` than that of every number stands in the schema only: a reader says more, in words.
    """

    least: int | None
    most: int = MAX_INTEGER


@dataclass(frozen=True, slots=True)
class Pattern:
    """The regular expression that a text fits. It stands in the schema only: a reader says more, in words."""

    pattern: str


@dataclass(frozen=True, slots=True)
class By:
    """A list of objects, each once, in the order of this field; so is a mapping from this field to them."""

    field: str


@dataclass(frozen=True, slots=True)
class Value:
    """A mapping from a named tuple is a list of objects: the key's members, and the value under this name."""

    name: str
    about: str


@dataclass(frozen=True, slots=True)
class When:
    """The member is written only where this holds of the value that has the field."""

    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Of:
    """What a list is of, as an error calls it, and how many of them it holds; `most` None: any number."""

    things: str
    least: int = 0
    most: int | None = None

    def check(self, items: Sized) -> None:
        """Raise Malformed for too few or too many."""
        if len(items) < self.least or (self.most is not None and len(items) > self.most):
            bounds = f"{self.least} to {self.most}" if self.least else f"at most {self.most}"
            raise Malformed("", f"must hold {bounds} {self.things}, not {len(items)}")

    @property
    def bounds(self) -> Schema:
        """The bounds as a schema has them."""
        return ({"minItems": self.least} if self.least else {}) | ({} if self.most is None else {"maxItems": self.most})


@dataclass(frozen=True, slots=True)
class Closed:
    """What people write: a member that the object does not know is refused. A class says so in a class variable FORM.

    `passed_over`: members that may stand there, which nothing reads, with their types.
    """

    passed_over: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """Raises Malformed, with its place as seen from here, for a value that cannot be."""

    check: Callable[[Any], None]


class _Note(Enum):
    ALWAYS, REQUIRED, NULLABLE, NEVER_NULL, HIDDEN, DISTINCT, FILLED, SINGLE, SORTED, OBJECT = range(10)


INLINE = Key("")
ALWAYS = _Note.ALWAYS
"""The member is written even where it has its default; it need not be there: files of earlier versions lack it."""
REQUIRED = _Note.REQUIRED
"""The member is written even where it has its default, and the schema requires it."""
NULLABLE = _Note.NULLABLE
"""A null reads as the default."""
NEVER_NULL = _Note.NEVER_NULL
"""The member is left out where the field is None: a null is refused."""
HIDDEN = _Note.HIDDEN
"""The field is no part of the format."""
DISTINCT = _Note.DISTINCT
"""No item stands in the list twice."""
FILLED = _Note.FILLED
"""The list has an item: of numbers, it names a broker. Of a text: it is not empty."""
SINGLE = _Note.SINGLE
"""A text alone is a list of one."""
SORTED = _Note.SORTED
"""The list is read in order, whatever its order is in the document."""
OBJECT = _Note.OBJECT
"""A named tuple is an object of its fields, not a short list of them."""

Ids = Annotated[tuple[int, ...], DISTINCT]
"""Ids of brokers, or other numbers of which each stands there once."""
Integer = Annotated[int, AtLeast(None)]


@dataclass(frozen=True, slots=True)
class _Codec:
    """What is compiled of one type. `write` None: a value is its own JSON. `schema` takes whether it is strict."""

    write: Callable[[Any], Any] | None
    read: Callable[[Any], Any]
    schema: Callable[[bool], Schema]


def to_json(value: object) -> Any:
    """Return the value as plain dicts, lists and scalars; members are in no promised order."""
    kind: Any = type(value)
    write = _class_codec(kind).write
    return value if write is None else write(value)


def from_json(kind: type[T], document: object) -> T:
    """Return the value of that type which this document describes; raise Malformed at its first wrong place."""
    wanted: Any = kind
    try:
        value: T = _class_codec(wanted).read(document)
    finally:
        _KEPT.clear()
    return value


def schema_of(kind: type, *, is_strict: bool = True) -> Schema:
    """Return the JSON Schema (draft-07) of that type, without a head.

    Strict: for what we write, where an unknown member is a fault. Otherwise for what others may write too: unknown
    members are passed over, and null stands for what is not there.
    """
    return _class_codec(kind).schema(is_strict)


def _noted(hint: Any) -> _Codec:
    """Return the codec of an annotation: a type with its notes, or a type alone."""
    kind, notes = _split(hint)
    codec = _with_checks(_of_hint(kind, notes), notes)
    about = [note for note in notes if isinstance(note, str)]
    schema = codec.schema
    return replace(codec, schema=lambda strict: {**schema(strict), "description": about[-1]}) if about else codec


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())


def _with_checks(codec: _Codec, notes: tuple[Any, ...]) -> _Codec:
    for note in notes:
        if isinstance(note, Check):
            codec = replace(codec, read=_checked(codec.read, note.check))
    return codec


def _checked(read: Callable[[Any], Any], check: Callable[[Any], None]) -> Callable[[Any], Any]:
    def checked(found: Any) -> Any:
        value = read(found)
        check(value)
        return value

    return checked


def _of_hint(hint: Any, notes: tuple[Any, ...]) -> _Codec:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        codec = _union(arguments, notes)
    elif origin in {tuple, frozenset, Sequence}:
        codec = _list(arguments[0], notes, tuple if origin is Sequence else origin)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        codec = _mapping(arguments[0], arguments[1], notes)
    elif origin is Literal:
        codec = _Codec(None, lambda found: found, lambda _: {"const": arguments[0]})
    elif OBJECT in notes:
        codec = _object(hint)
    elif hint is int:
        codec = _integer(_note(notes, AtLeast) or AtLeast(0))
    elif hint is str and FILLED in notes:
        codec = _Codec(None, _checked(_text, _refuse_no_text), lambda _: {"type": "string", "minLength": 1})
    elif hint is str and (pattern := _note(notes, Pattern)) is not None:
        codec = replace(_class_codec(str), schema=lambda _: {"type": "string", "pattern": pattern.pattern})
    else:
        codec = _class_codec(hint)
    return codec


def _note(notes: tuple[Any, ...], kind: type[T]) -> T | None:
    """Return the note of that kind, the last where a type's own and a field's are there."""
    return next((note for note in reversed(notes) if isinstance(note, kind)), None)


@cache
def _class_codec(kind: Any) -> _Codec:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if issubclass(kind, Enum):
        return _enumeration(kind)
    if hasattr(kind, "parse"):
        return _text_form(kind)
    return _row(kind) if issubclass(kind, tuple) else _object(kind)


# Scalars


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise Malformed("", "must be a text, not {}", found)
    return found


def _refuse_no_text(value: str) -> None:
    if not value:
        raise Malformed("", "must not be empty")


def _number(found: Any) -> float:
    if type(found) not in {int, float}:
        raise Malformed("", "must be a number, not {}", found)
    return float(found)


def _flag(found: Any) -> bool:
    if not isinstance(found, bool):
        raise Malformed("", "must be true or false, not {}", found)
    return found


def _time(found: Any) -> datetime:
    try:
        return datetime.fromisoformat(found)
    except (TypeError, ValueError):
        raise Malformed("", "must be a time, such as 2026-11-21T14:02:11+00:00, not {}", found) from None


def _integer(bound: AtLeast) -> _Codec:
    least = bound.least
    message = f"must be a whole number{'' if least is None else f' of at least {least}'}, not {{}}"
    bounds = {} if least is None else {"minimum": least, "maximum": bound.most}

    def read(found: Any) -> int:
        if type(found) is not int or (least is not None and not least <= found <= MAX_INTEGER):
            raise Malformed("", message, found)
        return found

    return _Codec(None, read, lambda _: {"type": "integer", **bounds})


_SCALARS: dict[Any, _Codec] = {
    str: _Codec(None, _text, lambda _: {"type": "string"}),
    int: _integer(AtLeast(0)),
    float: _Codec(None, _number, lambda _: {"type": "number"}),
    bool: _Codec(None, _flag, lambda _: {"type": "boolean"}),
    datetime: _Codec(datetime.isoformat, _time, lambda _: {"type": "string"}),
    object: _Codec(None, lambda found: found, lambda _: {}),
}


def _enumeration(kind: type[Enum]) -> _Codec:
    members = {each.value: each for each in kind}
    message = f"must be one of {', '.join(members)}, not {{}}"

    def read(found: Any) -> Enum:
        if _text(found) not in members:
            raise Malformed("", message, found)
        return members[found]

    return _Codec(attrgetter("_value_"), read, lambda _: {"enum": [*members]})


def _text_form(kind: Any) -> _Codec:
    """Return the codec of a class whose values are written by `str` and read by `parse`, which raises a ValueError."""

    def read(found: Any) -> Any:
        try:
            return kind.parse(_text(found))
        except ValueError as error:
            raise Malformed("", f"{error}, not {{}}", found) from None

    return _Codec(str, read, lambda _: {"type": "string", "pattern": kind.pattern()})


# Lists and mappings


_KEPT: dict[Any, "tuple[Any, ...]"] = {}
"""Equal lists of ids are one value while a document is read: that more than halves the memory of a large cluster."""


def _listed(found: Any) -> list[Any]:
    if type(found) is not list:
        raise Malformed("", "must be a list, not {}", found)
    return found


def _list(item: Any, notes: tuple[Any, ...], kind: type) -> _Codec:
    by, of = _note(notes, By), _note(notes, Of)
    if by is not None:
        return _sorted_list(_noted(item), by.field)
    if item is int:
        codec = _integers(is_distinct=DISTINCT in notes)
    elif item in _KNOWN_OR_NOT:
        codec = replace(_items(_noted(item), kind), write=list, read=_KNOWN_OR_NOT[item])
    else:
        codec = _texts(kind, of.things if of is not None else "texts") if item is str else _items(_noted(item), kind)
    if SORTED in notes:
        read_any = codec.read
        codec = replace(codec, read=lambda found: tuple(sorted(read_any(found))))
    if FILLED in notes:
        codec = replace(codec, read=_checked(codec.read, _refuse_no_broker if item is int else _refuse_empty))
    if of is not None:
        codec = replace(codec, read=_checked(codec.read, of.check))
    if SINGLE in notes:
        read_list = codec.read
        codec = replace(codec, read=lambda found: read_list([found] if isinstance(found, str) else found))
    more: Schema = {"uniqueItems": True} if DISTINCT in notes else {}
    more |= {"minItems": 1} if FILLED in notes else {}
    more |= {"type": ["string", "array"]} if SINGLE in notes else {}
    more |= of.bounds if of is not None else {}
    schema = codec.schema
    return replace(codec, schema=lambda strict: {**schema(strict), **more})


def _refuse_no_broker(value: tuple[int, ...]) -> None:
    if not value:
        raise Malformed("", "must name at least one broker")


def _refuse_empty(value: tuple[Any, ...]) -> None:
    if not value:
        raise Malformed("", "must hold at least one item")


def _integers(*, is_distinct: bool) -> _Codec:
    message = f"must be a list of whole numbers of at least 0{', none of them twice' if is_distinct else ''}, not {{}}"

    def read(found: Any) -> tuple[int, ...]:
        for item in _listed(found):
            # True and 1.0 equal 1, so only what is an int throughout may be looked up.
            if type(item) is not int:
                raise Malformed("", message, found)
        value: tuple[int, ...] = tuple(found)
        if value in _KEPT:
            return _KEPT[value]
        if not all(0 <= item <= MAX_INTEGER for item in value) or (is_distinct and len({*value}) != len(value)):
            raise Malformed("", message, found)
        return _KEPT.setdefault(value, value) if is_distinct else value

    return _Codec(list, read, lambda strict: {"type": "array", "items": _SCALARS[int].schema(strict)})


def _texts(kind: type, things: str) -> _Codec:
    message = f"must be a list of {things}, not {{}}"

    def read(found: Any) -> Any:
        if type(found) is not list or not all(isinstance(item, str) for item in found):
            raise Malformed("", message, found)
        return kind(found)

    schema = {"type": "array", "items": {"type": "string"}}
    return _Codec(sorted if kind is frozenset else list, read, lambda _: schema)


def _numbers_or_not(found: Any) -> tuple[int | None, ...]:
    for index, item in enumerate(_listed(found)):
        if item is not None and (type(item) is not int or not 0 <= item <= MAX_INTEGER):
            raise Malformed(f"/{index}", "must be a whole number of at least 0 or null, not {}", item)
    return tuple(found)


def _texts_or_not(found: Any) -> tuple[str | None, ...]:
    for index, item in enumerate(_listed(found)):
        if item is not None and type(item) is not str:
            raise Malformed(f"/{index}", "must be a text or null, not {}", item)
    value: tuple[str | None, ...] = tuple(found)
    return _KEPT.setdefault(value, value)


_KNOWN_OR_NOT: dict[Any, Callable[[Any], Any]] = {int | None: _numbers_or_not, str | None: _texts_or_not}
"""Lists in which something may be unknown: read at one look, as a large cluster has one a partition."""


def _items(codec: _Codec, kind: type) -> _Codec:
    write, read = codec.write, codec.read

    def write_all(values: Iterable[Any]) -> list[Any]:
        if isinstance(values, SelfWritten):
            return values.written()
        return [*values] if write is None else [*map(write, values)]

    return _Codec(
        write_all,
        lambda found: kind(_each(count(), _listed(found), read)),
        lambda strict: {"type": "array", "items": codec.schema(strict)},
    )


def _each(keys: Iterable[object], items: Iterable[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Return what is read of each item; an error gets the item's place, which is looked for only then."""
    try:
        return [read(item) for item in items]
    except Malformed as wrong:
        for key, item in zip(keys, items, strict=False):
            try:
                read(item)
            except Malformed as again:
                raise again.inside(key) from None
        raise wrong from None


def _sorted_list(codec: _Codec, by: str) -> _Codec:
    order, key = attrgetter(by), _camel(by)
    items = _items(codec, list)
    write = items.write or list

    def read(found: Any) -> tuple[Any, ...]:
        values = items.read(found)
        refuse_repeats(map(order, values), key)
        return tuple(sorted(values, key=order))

    return _Codec(lambda values: write(sorted(values, key=order)), read, items.schema)


def refuse_repeats(names: Iterable[object], key: str) -> None:
    """Raise Malformed where two objects of a list have the same name under that key; None is no name."""
    first: dict[object, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index and name is not None:
            raise Malformed(f"/{index}/{key}", "repeats {} of", name, f"/{first[name]}")


def _mapping(key: Any, item: Any, notes: tuple[Any, ...]) -> _Codec:
    codec, by, value = _noted(item), _note(notes, By), _note(notes, Value)
    if by is not None:
        return _mapping_as_list(_sorted_list(codec, by.field), attrgetter(by.field))
    if value is not None:
        return _pairs(_object(key), codec, value)
    if isinstance(key, type) and issubclass(key, Enum):
        return _by_member(key, codec)
    write, read_one, is_numbered = codec.write, codec.read, key is int

    def read(found: Any) -> dict[Any, Any]:
        if not isinstance(found, dict):
            raise Malformed("", "must be an object, not {}", found)
        names = _numbers(found) if is_numbered else {name: name for name in sorted(found)}
        values = [found[name] for name in names.values()]
        return dict(zip(names, _each(names.values(), values, read_one), strict=True))

    def schema(is_strict: bool) -> Schema:  # noqa: FBT001 # all that a schema depends on
        if not is_numbered:
            return {"type": "object", "additionalProperties": codec.schema(is_strict)}
        members = {"^(0|[1-9][0-9]*)$": codec.schema(is_strict)}
        return {"type": "object", "patternProperties": members, "additionalProperties": False}

    if write is None:
        return _Codec(lambda values: {str(name): each for name, each in values.items()}, read, schema)
    return _Codec(lambda values: {str(name): write(each) for name, each in values.items()}, read, schema)


def _mapping_as_list(listed: _Codec, order: Callable[[Any], Any]) -> _Codec:
    write, read = listed.write or list, listed.read
    return _Codec(
        lambda values: write(values.values()), lambda items: {order(item): item for item in read(items)}, listed.schema
    )


def _by_member(key: Any, item: _Codec) -> _Codec:
    """Return the codec of a mapping from every member of an enumeration, each of which says what it is `about`."""

    def explained(about: str) -> _Codec:
        return replace(item, schema=lambda strict: {**item.schema(strict), "description": about})

    members = [_Member(each.value, (each.value,), explained(each.about)) for each in key]
    write, read = item.write or (lambda value: value), _reader(members, {})
    return _Codec(
        lambda values: {each.value: write(values[each]) for each in key},
        lambda found: {key(name): value for name, value in read(found).items()},
        lambda strict: _object_schema(members, {}, strict),
    )


def _pairs(key: _Codec, item: _Codec, named: Value) -> _Codec:
    write_key, write_item = key.write or dict, item.write or (lambda value: value)

    def read(found: Any) -> dict[Any, Any]:
        read_item = _reader([_Member(named.name, (named.name,), item)], {})
        return dict(_each(count(), _listed(found), lambda one: (key.read(one), read_item(one)[named.name])))

    def schema(is_strict: bool) -> Schema:  # noqa: FBT001
        own = key.schema(is_strict)
        properties = {**own["properties"], named.name: {**item.schema(is_strict), "description": named.about}}
        del own["description"]
        required = [*own["required"], named.name]
        return {"type": "array", "items": {**own, "properties": properties, "required": required}}

    return _Codec(
        lambda values: [write_key(one) | {named.name: write_item(value)} for one, value in values.items()], read, schema
    )


def _numbers(found: Mapping[str, Any]) -> dict[Any, str]:
    """Return the keys of an object by their numbers, sorted."""
    try:
        return dict(sorted((canonical_integer(key), key) for key in found))
    except ValueError as error:
        raise Malformed("", "must have whole numbers as keys, not {}", str(error)) from None


def canonical_integer(text: str) -> int:
    """Return the number of a text in its one usual form; a ValueError holds any other text."""
    if len(text) > len(str(MAX_INTEGER)) or not text.isascii() or not text.isdigit() or str(int(text)) != text:
        raise ValueError(text)
    return int(text)


def _row(kind: Any) -> _Codec:
    """Return the codec of a named tuple: a short list, for tables with a line for each of very many things."""
    hints = get_type_hints(kind, include_extras=True)
    columns = [_noted(hints[name]) for name in kind._fields]
    message = f"must be a list of {', '.join(map(_camel, kind._fields))}, not {{}}"

    def read(found: Any) -> Any:
        try:
            return kind(*(column.read(each) for column, each in zip(columns, _listed(found), strict=True)))
        except (Malformed, ValueError):
            raise Malformed("", message, found) from None

    def schema(is_strict: bool) -> Schema:  # noqa: FBT001
        items = [column.schema(is_strict) for column in columns]
        return {"type": "array", "items": items, "minItems": len(items), "maxItems": len(items)}

    return _Codec(list, read, schema)


# Unions


def _union(kinds: tuple[Any, ...], notes: tuple[Any, ...]) -> _Codec:
    """Return the codec of one of several classes, or of one type, or None beside it."""
    some = [kind for kind in kinds if kind is not NoneType]
    kind, own = _split(some[0])
    codec = _tagged(some) if len(some) > 1 else _with_checks(_of_hint(kind, (*own, *notes)), own)
    if len(some) == len(kinds) or NEVER_NULL in notes:
        return codec
    write, read, schema = codec.write, codec.read, codec.schema
    return _Codec(
        None if write is None else lambda value: None if value is None else write(value),
        lambda found: None if found is None else read(found),
        lambda strict: _or_null(schema(strict)),
    )


def _tagged(kinds: list[Any]) -> _Codec:
    tag = next(name for name, hint in _constants(kinds[0]).items() if get_origin(_split(hint)[0]) is Literal)
    codecs = {getattr(kind, tag): _object(kind) for kind in kinds}
    writers = {kind: _object(kind).write for kind in kinds}
    key, message = _camel(tag), f"must be one of {', '.join(codecs)}, not {{}}"

    def write(value: Any) -> Any:
        return writers[type(value)](value)  # type: ignore[misc] # an object always has a writer

    def read(found: Any) -> Any:
        if not isinstance(found, dict):
            raise Malformed("", "must be an object, not {}", found)
        if key not in found:
            raise Malformed("", f'needs the field "{key}"')
        name = found[key]
        if not isinstance(name, str):
            raise Malformed(f"/{key}", "must be a text, not {}", name)
        if name not in codecs:
            raise Malformed(f"/{key}", message, name)
        return codecs[name].read(found)

    return _Codec(write, read, lambda strict: {"oneOf": [each.schema(strict) for each in codecs.values()]})


_NULLS: dict[str, Any] = {"enum": None, "oneOf": {"type": "null"}}


def _or_null(schema: Schema) -> Schema:
    for key, null in _NULLS.items():
        if key in schema:
            return {**schema, key: [*schema[key], null]}
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else schema


def _without_null(schema: Schema) -> Schema:
    for key, null in _NULLS.items():
        if key in schema:
            return {**schema, key: [each for each in schema[key] if each != null]}
    return {**schema, "type": schema["type"][0]} if isinstance(schema.get("type"), list) else schema


# Objects


class _Member(NamedTuple):
    """One field of a class as a member of its object, or a property or constant, which is not read.

    `path`: the objects around it and its name, which is empty where the members of its value stand there instead.
    `default`: MISSING where there is none. `holds`: of what values with the field it is written; None: of any.
    """

    name: str
    path: tuple[str, ...]
    codec: _Codec
    default: object = MISSING
    is_always: bool = True
    is_required: bool = True
    is_read: bool = True
    holds: Callable[[Any], bool] | None = None
    about_group: str = ""


@cache
def _object(kind: Any) -> _Codec:
    members, form = _members(kind), getattr(kind, "FORM", None)
    codec = _of_members(members) if form is None else _closed(members, form)
    read, schema = codec.read, codec.schema
    about = " ".join(cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
    return _Codec(
        codec.write, lambda found: kind(**read(found)), lambda strict: {"description": about, **schema(strict)}
    )


def _closed(members: list[_Member], form: Closed) -> _Codec:
    """Return the codec of an object that refuses a member which it does not know."""
    known = sorted(each.path[0] for each in members)
    others = {name: _noted(hint) for name, hint in form.passed_over.items()}
    codec = _of_members(members)

    def read(found: Any) -> Any:
        for key in sorted({*found} - {*known, *others}) if isinstance(found, dict) else ():
            near = get_close_matches(key, [*known, *others], n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise Malformed(pointer("", key), f"is no field of this object; {hint}")
        return codec.read(found)

    def schema(is_strict: bool) -> Schema:  # noqa: FBT001
        own = codec.schema(is_strict)
        more = {name: each.schema(is_strict) for name, each in others.items()}
        return {**own, "properties": {**own["properties"], **more}, "additionalProperties": False}

    return _Codec(codec.write, read, schema)


def _members(kind: Any) -> list[_Member]:
    hints, constants = get_type_hints(kind, include_extras=True), _constants(kind)
    found = [_Member(name, (_camel(name),), _noted(hint), is_read=False) for name, hint in constants.items()]
    for name, default in _defaults(kind).items():
        found += _member(name, hints[name], default)
    for name, each in vars(kind).items():
        hint = get_type_hints(each.fget, include_extras=True).get("return") if isinstance(each, property) else None
        if get_origin(hint) is Annotated:
            found += [member._replace(is_read=False) for member in _member(name, hint, MISSING)]
    return found


def _constants(kind: Any) -> dict[str, Any]:
    """Return the types of the class variables that are members."""
    hints = get_type_hints(kind, include_extras=True)
    inner = {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is ClassVar}
    return {name: hint for name, hint in inner.items() if get_origin(hint) is Annotated}


def _defaults(kind: Any) -> dict[str, object]:
    """Return each field's default, MISSING where it has none."""
    if not is_dataclass(kind):
        return {name: kind._field_defaults.get(name, MISSING) for name in kind._fields}
    made = {each.name: each.default_factory for each in fields(kind) if each.default_factory is not MISSING}
    return {each.name: made[each.name]() if each.name in made else each.default for each in fields(kind)}


def _member(name: str, hint: Any, default: object) -> list[_Member]:
    """Return the member that a field is; none where it is hidden."""
    kind, notes = _split(hint)
    if HIDDEN in notes:
        return []
    key = _note(notes, Key) or Key(_camel(name))
    path = tuple(key.path.split("/"))
    when = _note(notes, When)
    is_always = default is MISSING or ALWAYS in notes or REQUIRED in notes
    codec = _noted(hint) if path[-1] or get_origin(kind) is not None else _object(kind)
    read, schema = codec.read, codec.schema
    if NULLABLE in notes:
        codec = replace(codec, read=lambda found: default if found is None else read(found))
        codec = replace(codec, schema=lambda strict: schema(strict) if strict else _or_null(schema(strict)))
    elif not is_always:
        # Where it is None we leave it out; others may write null.
        codec = replace(codec, schema=lambda strict: _without_null(schema(strict)) if strict else schema(strict))
    is_required = is_always and ALWAYS not in notes and when is None
    holds = when.holds if when is not None else None
    return [_Member(name, path, codec, default, is_always, is_required, holds=holds, about_group=key.about)]


def _camel(name: str) -> str:
    first, *rest = name.removeprefix("is_").split("_")
    return first + "".join(each.capitalize() for each in rest)


def _of_members(members: list[_Member]) -> _Codec:
    """Return the codec of an object with these members; what it reads are the arguments that make a value."""
    groups = {
        key: _of_members([each._replace(path=each.path[1:]) for each in members if each.path[0] == key])
        for key in dict.fromkeys(each.path[0] for each in members if len(each.path) > 1)
    }
    own = [each for each in members if len(each.path) == 1]
    return _Codec(_writer(own, groups), _reader(own, groups), lambda strict: _object_schema(members, groups, strict))


def _writer(own: list[_Member], groups: Mapping[str, _Codec]) -> Callable[[Any], dict[str, Any]]:
    steps = []
    for each in own:
        left_out = MISSING if each.is_always else each.default
        # Equality may be a slow call, and nothing but None equals None.
        is_compared = left_out is not MISSING and left_out is not None
        steps.append((attrgetter(each.name), each.path[0], each.codec.write, left_out, is_compared, each.holds))

    def write(value: Any) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for get, key, write_one, left_out, is_compared, holds in steps:
            one = get(value)
            if one is left_out or (is_compared and one == left_out) or (holds is not None and not holds(value)):
                continue
            plain = one if write_one is None else write_one(one)
            if key:
                members[key] = plain
            else:
                members |= plain
        for key, group in groups.items():
            part = group.write(value) if group.write is not None else {}
            if part:
                members[key] = part
        return members

    return write


def _reader(own: list[_Member], groups: Mapping[str, _Codec]) -> Callable[[Any], dict[str, Any]]:
    known = {each.path[0]: (each.name, each.codec.read) for each in own if each.is_read and each.path[0]}
    needed = {each.name: each.path[0] for each in own if each.is_read and each.path[0] and each.default is MISSING}
    inline = [(each.name, each.codec.read) for each in own if each.is_read and not each.path[0]]

    def read(found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise Malformed("", "must be an object, not {}", found)
        values: dict[str, Any] = {}
        key = ""
        try:
            for key, item in found.items():
                member = known.get(key)
                if member is not None:
                    values[member[0]] = member[1](item)
            for key, group in groups.items():
                values |= group.read(found.get(key, {}))
        except Malformed as wrong:
            raise wrong.inside(key) from None
        if not needed.keys() <= values.keys():
            missing = next(key for name, key in needed.items() if name not in values)
            raise Malformed("", f'needs the field "{missing}"')
        for name, read_one in inline:
            values[name] = read_one(found)
        return values

    return read


def _object_schema(members: list[_Member], groups: Mapping[str, _Codec], is_strict: bool) -> Schema:  # noqa: FBT001
    properties: Schema = {}
    required: list[str] = []
    for each in members:
        key = each.path[0]
        if key in groups:
            schema = groups[key].schema(is_strict)
            about = properties.get(key, {}).get("description") or each.about_group
            properties[key] = {**schema, "description": about}
            required += [key] if "required" in schema and key not in required else []
        elif key:
            properties[key] = each.codec.schema(is_strict)
            required += [key] if each.is_required else []
        else:
            schema = each.codec.schema(is_strict)
            properties |= schema["properties"]
            required += schema.get("required", [])
    schema = {"type": "object", "properties": properties, "additionalProperties": not is_strict}
    return {**schema, "required": required} if required else schema
