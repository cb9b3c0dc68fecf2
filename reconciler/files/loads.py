"""Reads measured loads of partitions without Spark: a folder of Parquet, here or at a URI, as `loads` writes it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, TypeGuard

from reconciler.files.places import MARK_FILE, MARK_FOLDER, as_local, file_system, is_uri, may_be_table
from reconciler.model.gates import Seen, age_of
from reconciler.model.loads import Loads, PartitionLoad, Statistic
from reconciler.model.problem import InvalidInput, Problem, ReconcilerError
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.topic_report import Growth, total

SECONDS_A_DAY = 86_400
MOST_PROBLEMS, _MOST = 20, 2**62
A_TABLE, NO_COLUMNS, TWICE, MEANINGLESS = "KR283", "KR152", "KR154", "KR155"
REPORT = "_report.json"
"""The report that `loads` writes beside its result."""
LOAD_COLUMNS: Mapping[str, str] = {
    "cluster": "string",
    "topic": "string",
    "partition": "int32",
    **{
        f"{rate}_{statistic}": "float64"
        for rate in ("bytes_in", "bytes_out", "messages_in")
        for statistic in ("avg", "p95", "max", "peak")
    },
    "size_bytes": "int64",
    "growth_bytes_per_day": "float64",
    "coverage": "float64",
}
"""The columns that `loads` writes, with their Arrow types."""
_SUFFIX = {Statistic.PEAK: "peak", Statistic.AVERAGE: "avg"}
AMOUNTS = ("bytes_in_peak", "bytes_out_peak", "size_bytes")
"""The loads that every balance needs."""


class LoadsUnreadable(ReconcilerError):
    """The folder of measured loads cannot be read, or holds nothing of this cluster."""

    code = "KR150"


class NoLoadsOfCluster(LoadsUnreadable):
    """There are measured loads, but none of this cluster."""

    code = "KR153"


def read_loads(folder: str, cluster: str, statistic: Statistic = Statistic.PEAK) -> Loads:
    """Return the loads of that cluster's partitions; rates in whole bytes a second, rounded half up.

    Raises LoadsUnreadable for a folder without them, InvalidInput with every row that means nothing: twice the same
    partition, a load that is negative or not a number.
    """
    table = _table(folder, cluster, statistic)
    columns: dict[str, Sequence[Any]] = {name: table.column(name).to_pylist() for name in table.column_names}
    if not columns["topic"]:
        raise _none_of(cluster, folder)
    problems: list[Problem] = []
    found: dict[TopicPartition, PartitionLoad] = {}
    for key, load in _rows(folder, columns, statistic, problems):
        if key in found:
            problems.append(Problem(TWICE, f"--loads {folder}: {key} of cluster {cluster} stands there twice"))
        found[key] = load
    if problems:
        more = len(problems) - MOST_PROBLEMS
        tail = [Problem(MEANINGLESS, f"--loads {folder}: {more} more rows are wrong")] if more > 0 else []
        raise InvalidInput([*problems[:MOST_PROBLEMS], *tail])
    return Loads(dict(sorted(found.items())), statistic, folder)


def growth_by_loads(folder: str, cluster: str) -> Mapping[str, Growth]:
    """Return how each topic of that cluster grew while its samples were taken; raises LoadsUnreadable as `read_loads`.

    Of a partition that has no growth, or no messages, that of its topic is unknown.
    """
    table = loads_table(folder, cluster)
    if not len(table):
        raise _none_of(cluster, folder)
    names = ("topic", "growth_bytes_per_day", "messages_in_avg", "messages_in_max")
    parts: dict[str, list[tuple[float | None, ...]]] = {}
    for topic, *told in zip(*(table.column(name).to_pylist() for name in names), strict=True):
        parts.setdefault(topic, []).append(tuple(told))
    since = str(_reported(folder, cluster).get("firstBucket") or "its samples began")
    found = {}
    for topic, told in sorted(parts.items()):
        in_bytes, rates, most = ([*each] for each in zip(*told, strict=True))
        size, rate = total(in_bytes), total(rates)
        is_idle = False if any(most) else (None if total(most) is None else True)
        found[topic] = Growth(
            since, None if size is None else round(size), None if rate is None else round(rate * SECONDS_A_DAY), is_idle
        )
    return found


def _none_of(cluster: str, folder: str) -> NoLoadsOfCluster:
    return NoLoadsOfCluster(f"--loads {folder} has no row of cluster {cluster}: {_clusters(folder)}")


def seen_of_loads(folder: str, cluster: str, now: datetime) -> Seen:
    """Return what the loads of that cluster are worth: its partitions' mean coverage, and what the report tells.

    None is what is not told: loads that another system wrote have no report of ours, and perhaps no coverage.
    """
    from pyarrow import compute

    dataset = _dataset(folder)
    coverage = None
    if "coverage" in dataset.schema.names:
        with _readable(folder):
            held = dataset.to_table(columns=["coverage"], filter=compute.field("cluster") == cluster)
            mean = compute.mean(held.column("coverage")).as_py()
            # A mean of doubles may be a last digit below what each of them is.
            coverage = round(mean, 9) if mean is not None and isfinite(mean) else None
    told = _reported(folder, cluster)
    age = age_of(_moment(told.get("lastBucket")), now)
    samples, defects = told.get("samples"), told.get("defects")
    if not _is_count(samples) or not isinstance(defects, dict):
        return Seen(cluster, coverage, age)
    return Seen(cluster, coverage, age, samples, {rule: each for rule, each in defects.items() if _is_count(each)})


def _reported(folder: str, cluster: str) -> Mapping[str, Any]:
    """Return what the report beside the loads tells of the cluster; nothing where there is none that can be read."""
    system, path = _place(folder)
    try:
        listed = (_listed(system, path) or {}).get("texts", {})
        document = json.loads(listed[REPORT] if REPORT in listed else _text(system, f"{path}/{REPORT}"))
        return next(each for each in document["clusters"] if each["cluster"] == cluster)
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return {}


def _moment(text: object) -> str | None:
    """Return a time with its zone; None for anything else."""
    try:
        return text if isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None else None
    except ValueError:
        return None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def loads_table(folder: str | None, cluster: str) -> Any:
    """Return all columns of that cluster's loads as an Arrow table; one that the folder lacks is null.

    Without a folder it is empty. Raises LoadsUnreadable as `read_loads` does.
    """
    import pyarrow as pa
    from pyarrow import compute

    columns = pa.schema([(name, getattr(pa, kind)()) for name, kind in LOAD_COLUMNS.items()])
    if folder is None:
        return columns.empty_table()
    with _readable(folder):
        held = _dataset(folder).to_table(filter=compute.field("cluster") == cluster)
        values = [
            held.column(field.name).cast(field.type) if field.name in held.column_names else pa.nulls(len(held))
            for field in columns
        ]
    return pa.table(values, names=columns.names).cast(columns)


def _table(folder: str, cluster: str, statistic: Statistic) -> Any:
    """Return the columns that count, of this cluster alone."""
    dataset = _dataset(folder)
    from pyarrow import compute

    wanted = ["topic", "partition", *_amounts(statistic)]
    missing = [name for name in ("cluster", *wanted) if name not in dataset.schema.names]
    if missing:
        has = ", ".join(dataset.schema.names)
        message = f"--loads {folder} lacks the columns {', '.join(missing)} (it has {has})"
        raise LoadsUnreadable(message, code=NO_COLUMNS)
    wrong = list(_wrong_types(dataset.schema, wanted))
    if wrong:
        raise LoadsUnreadable(f"--loads {folder}: " + "; ".join(wrong), code=NO_COLUMNS)
    with _readable(folder):
        return dataset.to_table(columns=wanted, filter=compute.field("cluster") == cluster)


@contextmanager
def _readable(folder: str, how: str = "") -> Iterator[None]:
    """Turn what Arrow raises into LoadsUnreadable; `how` says what it was read as."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise LoadsUnreadable(f"--loads {folder} cannot be read{how}: {' '.join(str(error).split())}") from None


def _dataset(folder: str) -> Any:
    try:
        from pyarrow import dataset, fs
    except ImportError:
        raise LoadsUnreadable("--loads needs pyarrow: pip install 'WHEEL[loads]'", code="KR151") from None
    with _readable(folder):
        system, path = _place(folder)
        kind = system.get_file_info(path).type
    if kind == fs.FileType.Unknown:
        raise LoadsUnreadable(f"--loads {folder} is neither a folder nor a file; name a folder of Parquet")
    if kind == fs.FileType.NotFound:
        table = "; tables of a catalogue are read by balance alone" if may_be_table(folder) else ""
        message = f"--loads {folder}: there is no such folder; name one of Parquet with a row a partition{table}"
        raise LoadsUnreadable(message)
    with _readable(folder, " as Parquet"):
        _refuse_tables(folder, system, path)
        files = _files_of(system, path) if kind == fs.FileType.Directory else None
        found = dataset.dataset(
            path if files is None else files, filesystem=system, format="parquet", partitioning="hive"
        )
    if not found.files:
        raise LoadsUnreadable(f"--loads {folder} holds no Parquet file; name a folder with a row a partition")
    return found


def _place(folder: str) -> tuple[Any, str]:
    """Return the file system of a path or a URI, and the path in it."""
    from pyarrow import fs

    local = as_local(folder)
    return file_system(local) if is_uri(local) else (fs.LocalFileSystem(), str(Path(local).absolute()))


def _files_of(system: Any, folder: str) -> list[str] | None:
    """Return the files that a result at an object store names as its own; None where it names none."""
    listed = _listed(system, folder)
    return None if listed is None else [f"{folder}/{name}" for name in listed["files"]]


def _listed(system: Any, folder: str) -> Mapping[str, Any] | None:
    """Return the list of a result at an object store: its files, and its texts by name; None where there is none."""
    mark = f"{folder}/{MARK_FOLDER}/{MARK_FILE}"
    if not system.get_file_info(mark).is_file:
        return None
    try:
        listed = json.loads(_text(system, mark))
        return {"files": [str(name) for name in listed["files"]], "texts": dict(listed.get("texts", {}))}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LoadsUnreadable(f"--loads: the list of files {mark} is damaged; run loads again") from None


def _text(system: Any, path: str) -> str:
    """Return the text of a file; where Spark Connect wrote it, it is the only file of a folder."""
    from pyarrow import fs

    if system.get_file_info(path).type == fs.FileType.Directory:
        inside = system.get_file_info(fs.FileSelector(path))
        (path,) = (file.path for file in inside if file.base_name.startswith("part-"))
    with system.open_input_stream(path) as file:
        return str(file.read(), "utf-8")


def _refuse_tables(folder: str, system: Any, path: str) -> None:
    """Refuse a table whose files hold removed rows too: only its own reader knows which count."""
    from pyarrow import fs

    def holds(name: str, suffix: str) -> bool:
        inside = system.get_file_info(fs.FileSelector(f"{path}/{name}", allow_not_found=True))
        return any(file.base_name.endswith(suffix) for file in inside)

    is_delta = holds("_delta_log", "")
    if is_delta or holds("metadata", ".metadata.json"):
        raise LoadsUnreadable(
            f"--loads {folder} is {'a Delta' if is_delta else 'an Iceberg'} table, which only Spark reads: give loads "
            "a folder or a URI of its own to write to, or ask balance",
            code=A_TABLE,
        )


def _amounts(statistic: Statistic) -> tuple[str, ...]:
    return f"bytes_in_{_SUFFIX[statistic]}", f"bytes_out_{_SUFFIX[statistic]}", "size_bytes"


def _wrong_types(schema: Any, wanted: Sequence[str]) -> Iterator[str]:
    from pyarrow import types

    def is_text(kind: Any) -> bool:
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind))

    def is_number(kind: Any) -> bool:
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))

    of_name = {
        "cluster": (is_text, "text"),
        "topic": (is_text, "text"),
        "partition": (types.is_integer, "whole numbers"),
    }
    for name in ("cluster", *wanted):
        kind = schema.field(name).type
        fits, what = of_name.get(name, (is_number, "numbers"))
        if not fits(kind):
            yield f"column {name} must be {what}, not {kind}"


def _clusters(folder: str) -> str:
    """Return which clusters the folder has rows of, in words."""
    names = sorted(set(_dataset(folder).to_table(columns=["cluster"]).column("cluster").to_pylist()) - {None})
    return f"it has {', '.join(map(str, names[:10]))}" if names else "it is empty"


def _rows(
    folder: str, columns: Mapping[str, Sequence[Any]], statistic: Statistic, problems: list[Problem]
) -> Iterator[tuple[TopicPartition, PartitionLoad]]:
    names = _amounts(statistic)
    rows = zip(columns["topic"], columns["partition"], *(columns[name] for name in names), strict=True)
    for topic, partition, *amounts in rows:
        pairs = zip(names, amounts, strict=True)
        wrong = [f"{name} is {each}" for name, each in pairs if each is not None and not 0 <= each < _MOST]
        if topic is None or partition is None or partition < 0:
            message = f"a row has no topic or no partition: {topic}-{partition}"
        elif wrong:
            message = f"{topic}-{partition}: {', '.join(wrong)}; a load is a number of bytes, 0 or more"
        else:
            yield TopicPartition(topic, partition), PartitionLoad(*map(_whole, amounts))
            continue
        problems.append(Problem(MEANINGLESS, f"--loads {folder}: {message}"))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value + 0.5) if isinstance(value, float) else int(value)
