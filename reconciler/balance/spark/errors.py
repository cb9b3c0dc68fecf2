"""What Spark raises, as one sentence that names the file where there is one."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from reconciler.model.problem import ReconcilerError

FAILED = "KR252"
DAMAGED_FILE = "KR253"
_FILE = re.compile(r"(?:file:/*|file )(/[^\s,;]+\.(?:parquet|pq|csv|jsonl?|ndjson)(?:\.gz)?)")
_DAMAGED = ("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING", "CANNOT_READ_FILE_FOOTER")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn what Spark raises into a ReconcilerError; the stack of the JVM is its cause, for -v."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _sentence(str(error)) from error


def _sentence(text: str) -> ReconcilerError:
    named = _FILE.search(text)
    if named and any(code in text for code in _DAMAGED):
        path = unquote("/" + named[1].lstrip("/"))
        return ReconcilerError(f"{path}: is damaged or cut short, so its samples cannot be read", code=DAMAGED_FILE)
    first = text.strip().partition("\n")[0]
    return ReconcilerError(f"Spark could not do it: {first}", code=FAILED)
