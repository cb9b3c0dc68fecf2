"""Answers policies in a closed room: this is the main program of a process with an empty environment and its own Java.

`policies` starts it, and speaks with it over a pipe, a JSON text a message: `tables`, a folder of Arrow files, then one
`query` after another. It ends with the process that started it, whatever that one ended of.
"""

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.balance.files.arrow_tables import read_arrow
from reconciler.balance.policies import closed_query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_ROWS = 20
MOST_COUNTED = 1_000_000
MEMORY = "1g"
_LONGEST_ROW = 400
_MESSAGE = "message"
_WRAP = "SELECT * FROM (\n"
_UNSORTABLE = re.compile(r"map<|variant|interval")
_LOG4J = Path(__file__).parents[1].joinpath("spark", "log4j2.properties").absolute()


def main() -> None:
    """Serve until the pipe is closed. Arguments: the pipe's number, and the folder that is this room's own."""
    pipe, folder = Connection(int(sys.argv[-2])), Path(sys.argv[-1])
    end = threading.Thread(target=_end_with_the_starter, args=[folder], daemon=True)
    end.start()
    spark = _session(folder)
    _say(pipe, {"ready": True})
    while True:
        try:
            asked = json.loads(pipe.recv_bytes())
        except EOFError:
            end.join()
        if "tables" in asked:
            tables = _given(spark, Path(asked["tables"]))
            _say(pipe, {"ready": True})
        else:
            _say(pipe, _answer(spark, asked["query"], tables))


def _end_with_the_starter(folder: Path) -> None:
    """Wait for the end of stdin, which comes with the end of the starter; Java ends with this process likewise."""
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _say(pipe: Connection, message: Mapping[str, Any]) -> None:
    pipe.send_bytes(json.dumps(message).encode())


def _session(folder: Path) -> "SparkSession":
    """Return a session in which text is not replaced, no file is a table, and nothing is kept outside of the folder."""
    from pyspark.sql import SparkSession

    java = (
        f"-Djava.io.tmpdir={folder}",
        f"-Duser.home={folder}",
        f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        "-XX:-UsePerfData",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
    )
    builder = SparkSession.builder
    for name, value in {
        "spark.app.name": "reconciler policies",
        "spark.api.mode": "classic",
        # One thread: the same plan gets the same answer, whatever a policy asks.
        "spark.master": "local[1]",
        "spark.driver.memory": MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.local.dir": str(folder),
        "spark.ui.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.variable.substitute": "false",
        # Rows of VALUES stay as they were written until they have been looked at.
        "spark.sql.parser.eagerEvalOfUnresolvedInlineTable": "false",
        "spark.sql.maxPlanStringLength": "0",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    # The empty catalogue makes its folder, and runs `chmod` for it, when it is first asked: not by a policy.
    spark.catalog.tableExists("none")
    return spark


def _given(spark: "SparkSession", folder: Path) -> tuple[str, ...]:
    """Make each Arrow file a table of that name, and return the names."""
    files = sorted(folder.glob("*.arrow"))
    for file in files:
        spark.createDataFrame(read_arrow(file)).createOrReplaceTempView(file.stem)
    return tuple(file.stem for file in files)


def _answer(spark: "SparkSession", query: str, tables: tuple[str, ...]) -> dict[str, Any]:
    """Return `rows` in words and how many `more`; or why it was `refused`, and its `line`; or how Spark `failed`.

    Beyond MOST_COUNTED rows nothing is counted: `is_more_still`.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    # Only a query can stand in parentheses: whatever else a file holds is an error of syntax.
    wrapped = f"{_WRAP}{query}\n)"
    try:
        closed_query.refuse_parsed(spark, wrapped, tables)
        answer = spark.sql(wrapped)
        closed_query.refuse_analysed(spark, answer)
        told = _told(answer)
        rows = [row["told"] for row in told.take(MOST_ROWS + 1)]
        counted = answer.limit(MOST_COUNTED).count() if len(rows) > MOST_ROWS else len(rows)
    except closed_query.Refused as refused:
        return {"refused": refused.sentence, "line": refused.line - 1}
    except Py4JNetworkError:
        raise  # Java has ended, and so does the room
    except (PySparkException, Py4JError) as error:
        return {"failed": str(getattr(error, "java_exception", error))[:4000]}
    more = counted - len(rows[:MOST_ROWS])
    return {"rows": rows[:MOST_ROWS], "more": more, "is_more_still": counted == MOST_COUNTED}


def _told(answer: "DataFrame") -> "DataFrame":
    """Return the rows in words, in the order of their columns: `topic orders, partition 3`."""
    from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

    names = [name.lower() for name in answer.columns]
    numbered = answer.toDF(*(f"c{number}" for number in range(len(names))))
    columns = [F.col(name) for name in numbered.columns]
    words = F.concat_ws(", ", *(_words(name, column) for name, column in zip(names, columns, strict=True)))
    cut = F.when(F.length(words) > _LONGEST_ROW, F.concat(F.substring(words, 1, _LONGEST_ROW), F.lit("…")))
    sortable = [F.col(name) for name, kind in numbered.dtypes if not _UNSORTABLE.search(kind)]
    return numbered.withColumn("told", cut.otherwise(words)).orderBy(*sortable, "told").select("told")


def _words(name: str, value: "Column") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812 - as above

    said = F.coalesce(value.cast("string"), F.lit("unknown"))
    return said if name == _MESSAGE else F.concat(F.lit(f"{name} "), said)
