"""What the closed check takes and refuses, function by function of Spark's registry, and with Spark's own examples."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.figures import Tell
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconciler.balance.policies import closed_words as words
from reconciler.balance.policies.closed_query import Refused, refuse_analysed, refuse_parsed

# They ask Java, the session, the files that are read, chance or the clock: what nobody may ever put on the list.
NEVER = frozenset(
    """
    java_method reflect try_reflect current_catalog current_database current_schema current_user session_user user
    version input_file_name input_file_block_length input_file_block_start spark_partition_id aes_encrypt
    monotonically_increasing_id rand randn random randstr uniform uuid shuffle now curdate current_date current_time
    current_timestamp current_timezone localtimestamp unix_timestamp raise_error assert_true xpath from_xml from_json
    from_avro from_protobuf parse_url schema_of_json collation python_worker_logs
    """.split()  # noqa: SIM905 - names by meaning, not one a line
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.sql.variable.substitute", "false")
    session.conf.set("spark.sql.parser.eagerEvalOfUnresolvedInlineTable", "false")
    machine: Any = session._jvm
    sessions = machine.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(session._jsparkSession)  # Spark's parser goes by the settings of this one
    yield session
    sessions.setActiveSession(spark._jsparkSession)


def functions(session: SparkSession) -> Iterator[tuple[str, list[str]]]:
    """Yield each function that Spark has, with the queries that its documentation shows."""
    state: Any = session._jsparkSession.sessionState()
    for registry in (state.functionRegistry(), state.tableFunctionRegistry()):
        names = registry.listFunction().iterator()
        while names.hasNext():
            info = registry.lookupFunction(names.next()).get()
            yield (
                info.getName(),
                re.findall(r"> (SELECT .*?);\n", info.getExamples().replace("_FUNC_", info.getName()), re.DOTALL),
            )


def test_every_function_that_spark_has_is_on_the_list_or_refused(session: SparkSession) -> None:
    names = {name for name, _ in functions(session) if re.fullmatch(r"\w+", name)}
    assert len(names) > 400
    assert not NEVER & (words.FUNCTIONS | words.TABLE_FUNCTIONS)
    for name in sorted(names - words.FUNCTIONS - words.TABLE_FUNCTIONS):
        for call in ("SELECT `{}`(1)", "SELECT builtin.{}(1)", "SELECT * FROM {}(1)"):
            with pytest.raises((Refused, PySparkException)):
                refuse_parsed(session, call.format(name), ())


@pytest.mark.deep
def test_spark_s_own_examples_of_what_is_on_the_list_are_taken(session: SparkSession, figures: Tell) -> None:
    shown = [(name, query) for name, queries in functions(session) if name in words.FUNCTIONS for query in queries]
    refused = {query: told for _, query in shown if (told := why_refused(session, query))}
    assert len(shown) > 700
    assert refused == {}
    figures("closed policies", f"{len(shown):,} of Spark's own examples are taken")


def why_refused(session: SparkSession, query: str) -> str:
    try:
        refuse_parsed(session, query, ())
        refuse_analysed(session, session.sql(query))
    except Refused as refused:
        return refused.sentence
    except (PySparkException, Py4JError):
        return ""  # such as an example of an error
    return ""


def test_a_query_of_thousands_of_numbers_is_refused_before_they_are_all_looked_at(session: SparkSession) -> None:
    def query(count: int) -> str:
        return f"SELECT 1 WHERE 1 IN ({', '.join(map(str, range(count)))})"

    assert why_refused(session, query(2_000)) == ""
    for count in (11_000, 20_000):
        assert "more than 5,000 words, numbers and texts: split it" in why_refused(session, query(count))
