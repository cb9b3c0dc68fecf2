"""Reads the observed state from a file, and writes it so that the same state gives the same bytes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.files.json_text import collector_paused, malformed, parse_json, readable_json
from reconciler.files.raw import display_name, invalid, packed_bytes, read_bytes, write_atomically
from reconciler.model.cluster import Cluster
from reconciler.model.codec import Malformed, from_json, to_json

UNREADABLE = "KR201"
WRONG_VERSION = "KR202"
WRONG_CONTENT = "KR203"
NOT_WRITTEN = "KR204"
# The fields by which each kind of file is known.
KINDS = {
    "plan": {"formatVersion", "stages", "topicChanges"},
    "snapshot": {"formatVersion", "clusterId"},
    "file of kafka-reassign-partitions": {"version", "partitions"},
}


def read_snapshot(source: str | Path) -> Cluster:
    """Return the cluster in a `.json` or `.json.gz` file, `-` being stdin; InvalidInput says what is wrong where."""
    from reconciler.files.quick_snapshot import parse_quickly
    from reconciler.model.table_maker import in_rows

    name = display_name(source)
    content = read_bytes(source, "snapshot", UNREADABLE)
    with collector_paused():
        document, table = parse_quickly(content) or (parse_json(content, name, "snapshot", UNREADABLE), None)
    if not isinstance(document, dict):
        raise invalid(WRONG_CONTENT, f"{name}: a snapshot is one JSON object; this holds something else")
    refuse_other_kind(document, name, "snapshot", WRONG_CONTENT)
    check_version(document, name, "snapshot", WRONG_VERSION)
    try:
        with collector_paused():
            cluster = replace(from_json(Cluster, document), has_groups="groups" in document)
    except Malformed as wrong:
        raise malformed(WRONG_CONTENT, name, content, wrong) from None
    except RecursionError:
        raise invalid(UNREADABLE, f"{name}: the snapshot is nested too deeply") from None
    return cluster if table is None else in_rows(cluster, table)


def write_snapshot(cluster: Cluster, path: str | Path) -> None:
    """Write the cluster, gzipped if the name ends in `.gz`; the file is replaced whole or not at all."""
    content = snapshot_text(cluster).encode()
    target = Path(path)
    packed = packed_bytes(content) if target.suffix == ".gz" else content
    write_atomically(target, packed, "snapshot", NOT_WRITTEN)


def snapshot_text(cluster: Cluster) -> str:
    """Return the snapshot file of that cluster: sorted, one partition a line."""
    with collector_paused():
        return readable_json(to_json(cluster))


def refuse_other_kind(document: dict[str, Any], name: str, wanted: str, code: str) -> None:
    """Refuse a file that is known to be of another kind, and say of which."""
    for kind, fields in KINDS.items():
        if kind != wanted and fields <= document.keys():
            raise invalid(code, f"{name}: this is a {kind}, not a {wanted}; name the other file")


def check_version(document: dict[str, Any], name: str, what: str, code: str) -> None:
    """Refuse a file whose format is of another major version, or has none."""
    version = document.get("formatVersion")
    if not isinstance(version, str) or not version:
        raise invalid(code, f'{name}: the {what} needs "formatVersion": "1.0"')
    if version.partition(".")[0] != "1":
        told = version[:20].encode("ascii", "backslashreplace").decode()
        raise invalid(
            code,
            f"{name}: the {what} has format version {told}, and this program reads 1.x; "
            "read it with the version that wrote it, or make it again",
        )
