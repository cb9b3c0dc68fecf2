"""Refuses what a query has that a policy may not have, in Spark's own parsed and analysed plans.

Both are walked whole, every class is looked up in `closed_words`, and one that is not there is refused. The parsed plan
is walked before Spark analyses it, because the analyser evaluates some of what it finds. The analysed plan is walked
before anything runs, because only there a name such as `current_user` is seen to be a function.
"""

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.java_gateway import JavaObject

from reconciler.balance.policies import closed_words as words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_PARTS = 5_000
"""Each part is looked at through Java: so many take seconds."""
_OUT = "a policy is a plain query over the plan's tables: {} is none of that"
_UNKNOWN = "a policy cannot call {}: it has arithmetic, texts, dates, lists, maps, aggregates and windows{}"
_NO_ISO = (
    "the same plan must always get the same answer: as a date or time, a text like 'now' or 'today' asks the clock; "
    "write DATE 'YYYY-MM-DD', or the like"
)
_ISO_TEXT = re.compile(r"\s*[+-]?\d[\w\s:.+/-]*")
_ISO = re.compile(rf"""\w+\s*(['"]){_ISO_TEXT.pattern}\1""")
_TEMPORAL = ("DateType$", "TimestampType$", "TimestampNTZType$")


class Refused(Exception):
    """A query has what a policy may not have: the sentence, and the line of the query (from 1) where it stands."""

    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.sentence, self.line = sentence, line


def refuse_parsed(spark: "SparkSession", query: str, tables: Collection[str]) -> None:
    """Raise Refused for the first thing in the parsed query that is not of the closed words.

    A relation is one of `tables`, or a name that the query itself gives. PySpark's own errors tell of a query that
    Spark cannot parse.
    """
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(query)  # noqa: SLF001 - Python has no way to a parsed plan
    parts = list(_parts(plan, query))
    named = {name for part in parts if part.name.endswith(".SubqueryAlias") for name in [part.java.alias().lower()]}
    for part in parts:
        if part.name == words.RELATION:
            _refuse_relation(part, {*tables, *named})
        elif part.name in _CALLS:
            _refuse_call(part)


def refuse_analysed(spark: "SparkSession", answer: "DataFrame") -> None:
    """Raise Refused for the first node or expression of the analysed answer that is not of the closed words."""
    functions = _classes_of_functions(spark)
    plans = [answer._jdf.queryExecution().analyzed()]  # noqa: SLF001 - as above
    for java, is_node in _analysed(plans):
        name = _class(java)
        allowed = words.ANALYSED_NODES if is_node else words.ANALYSED_EXPRESSIONS | functions
        if name not in allowed:
            raise Refused(_reason(_short(name)), _line(java))
    _refuse_computed_clock_words(spark, plans)


class _Part(NamedTuple):
    """One node or expression of a parsed plan."""

    java: JavaObject
    name: str
    """Its Java class."""


def _parts(plan: JavaObject, query: str) -> Iterator[_Part]:
    """Yield each node and expression; Refused for whatever is neither, nor a known thing between them."""
    waiting: list[tuple[Any, JavaObject]] = [(plan, plan)]
    seen = 0
    while waiting:
        found, owner = waiting.pop()
        if not isinstance(found, JavaObject):
            continue
        seen += 1
        if seen > MOST_PARTS:
            raise Refused(f"the policy has more than {MOST_PARTS:,} words, numbers and texts: split it, or ask less", 2)
        name = _class(found)
        if name.startswith(words.HOLDERS):
            waiting += [(each, owner) for each in reversed(list(_each(found)))]
        elif name == words.OPTIONS:
            if not found.isEmpty():
                raise Refused(_OUT.format("a table's options"), _line(owner))
        elif name in words.LEAVES or name.startswith(words.TYPES):
            continue
        elif name in words.PARSED or name in words.PARTS:
            if name in words.PARSED:
                _refuse_clock_words(found, name, query)
                yield _Part(found, name)
            owner = found if name in words.PARSED else owner
            # A literal's value and type hold no query, and a list may have thousands of them.
            arity = 0 if name == words.LITERAL else found.productArity()
            waiting += [(found.productElement(at), owner) for at in reversed(range(arity))]
        else:
            raise Refused(_reason(_short(name)), _line(owner))


def _refuse_relation(part: _Part, known: Collection[str]) -> None:
    names = list(_each(part.java.multipartIdentifier()))
    if part.java.isStreaming() or len(names) != 1 or names[0].lower() not in known:
        told = ".".join(f"`{name}`" for name in names)
        raise Refused(f"a policy asks only the plan's tables, and none is called {told}", _line(part.java))


def _function_names(java: JavaObject) -> list[str]:
    return list(_each(java.nameParts()))


def _table_function_names(java: JavaObject) -> list[str]:
    return list(_each(java.name()))


def _generator_names(java: JavaObject) -> list[str]:
    identifier = java.name()
    return [*_each(identifier.catalog()), *_each(identifier.database()), identifier.funcName()]


_CALLS = {
    words.FUNCTION: (_function_names, words.FUNCTIONS),
    words.GENERATOR: (_generator_names, words.TABLE_FUNCTIONS),
    words.TABLE_FUNCTION: (_table_function_names, words.TABLE_FUNCTIONS),
}


def _refuse_call(part: _Part) -> None:
    names_of, allowed = _CALLS[part.name]
    names = names_of(part.java)
    name = ".".join(names).lower()
    if name in allowed:
        return
    if name in words.REASONS:
        raise Refused(words.REASONS[name].format(f"{name}()"), _line(part.java))
    near = get_close_matches(name, sorted(allowed), n=1, cutoff=0.8)
    raise Refused(_UNKNOWN.format(f"{name[:60]}()", f" (did you mean {near[0]}?)" if near else ""), _line(part.java))


def _refuse_clock_words(java: JavaObject, name: str, query: str) -> None:
    """Refuse `DATE 'today'` and `CAST('now' AS timestamp)`: Spark puts today's date and the time in their place.

    The parser has done so for a literal already, so that only one in ISO form is known to be none of them.
    """
    if name == words.LITERAL and _class(java.dataType()).endswith(_TEMPORAL):
        origin = java.origin()
        is_iso = bool(_ISO.fullmatch(query[origin.startIndex().get() : origin.stopIndex().get() + 1]))
    elif name == words.CAST and _class(java.child()) == words.LITERAL and _class(java.dataType()).endswith(_TEMPORAL):
        is_iso = java.child().value() is None or bool(_ISO_TEXT.fullmatch(str(java.child().toString())))
    else:
        return
    if not is_iso:
        raise Refused(_NO_ISO, _line(java))


def _refuse_computed_clock_words(spark: "SparkSession", plans: Collection[JavaObject]) -> None:
    """Refuse what Spark's own rule would put the date or the time for, however its text is computed and cast.

    The rule is applied as Spark does before it runs the query: `try_to_timestamp` and others have become casts by then.
    """
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer  # type: ignore[union-attr] # noqa: SLF001 - as above
    for plan in plans:
        without_calls = rules.ReplaceExpressions.apply(plan)
        if not rules.SpecialDatetimeValues.apply(without_calls).fastEquals(without_calls):
            raise Refused(_NO_ISO, _line(plan))


def _analysed(plans: list[JavaObject]) -> Iterator[tuple[JavaObject, bool]]:
    """Yield each node of an analysed plan with True, each expression with False, and add plans in expressions to it."""
    waiting: list[tuple[JavaObject, bool]] = [(plan, True) for plan in plans]
    while waiting:
        found, is_node = waiting.pop()
        yield found, is_node
        waiting += [(each, is_node) for each in _each(found.children())]
        if is_node:
            waiting += [(each, True) for each in _each(found.innerChildren())]
            waiting += [(each, False) for each in _each(found.expressions())]
        elif _class(found) in words.SUBQUERIES:
            plans.append(found.plan())
            waiting.append((plans[-1], True))


def _classes_of_functions(spark: "SparkSession") -> frozenset[str]:
    """Return the classes that Spark registers for the allowed functions."""
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001 - as above
    infos = (registry.lookupFunction(name).get() for name in _each(registry.listFunction()))
    return frozenset(info.getClassName() for info in infos if info.getName() in words.FUNCTIONS)


def _reason(name: str) -> str:
    return words.REASONS.get(name, _OUT).format(name)


def _each(java: JavaObject) -> Iterator[Any]:
    iterator = java.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _class(java: JavaObject) -> str:
    return str(java.getClass().getName())


def _short(name: str) -> str:
    return name.rpartition(".")[2].rstrip("$")


def _line(java: JavaObject) -> int:
    line = java.origin().line()
    return int(line.get()) if line.isDefined() else 1
