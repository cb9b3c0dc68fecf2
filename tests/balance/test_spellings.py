"""The jobs are spelled as PySpark 4.0 and Spark Connect have it too: what `spellings.py` warns of is not there."""

import re
from collections.abc import Iterator

import pytest
from helpers.program.call import ROOT

# These may ask Java, each behind a check, and say what the others must not use.
ALLOWED = {"java.py", "session.py", "spellings.py", "uri_results.py", "work.py"}
NOT_EVERYWHERE = (
    r"\.try_cast\(",
    r"\b(?:Column|DataFrame)\.(?:_|[a-z])",
    r"\.(?:sparkContext|_jvm|_jdf|_jsparkSession|rdd|toPandas)\b",
    r"F\.(?:udf|pandas_udf)\b",
)


def _sources() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "reconciler" / "balance" / "spark").glob("*.py")):
        if file.name not in ALLOWED:
            yield file.name, file.read_text("utf-8")


@pytest.mark.parametrize("pattern", NOT_EVERYWHERE)
def test_no_job_says_what_only_some_versions_understand(pattern: str) -> None:
    assert [(name, found[0]) for name, text in _sources() for found in re.finditer(pattern, text)] == []


def test_every_function_was_there_in_4_0() -> None:
    from pyspark.sql import functions

    used = {name for _, text in _sources() for name in re.findall(r"\bF\.([a-z_0-9]+)", text)}
    since = {
        name: re.search(r"versionadded:: (\d+[.]\d+)", getattr(functions, name, None).__doc__ or "") for name in used
    }
    assert {name: found[1] for name, found in since.items() if found and found[1] > "4.0"} == {}
    assert len(used) > 50


def test_what_is_looked_for_is_found() -> None:
    planted = 'x.try_cast("int"); Column.bitwiseOR(a, b); s.sparkContext.parallelize(t); F.udf(f)'
    assert sum(bool(re.search(pattern, planted)) for pattern in NOT_EVERYWHERE) == 4
