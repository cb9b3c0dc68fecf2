"""Tells which of its forms a place has: a path of this machine, a URI that Hadoop knows, or the name of a table.

Hadoop decodes nothing in a URI: `%20` in it stands for itself, and a space is written as one. So do we.
"""

import os
import re
from typing import Any

from reconciler.files.paths import is_there
from reconciler.model.logins import logins_in
from reconciler.model.problem import ReconcilerError, first_line

UNKNOWN_SCHEME = "KR282"
HAS_LOGIN = "KR295"
MARK_FOLDER, MARK_FILE = "_files", "list.json"
"""Where a result at an object store names its files, and has its texts: others beside them do not belong to it."""
# Two slashes are usual, one is enough; a scheme of one letter would be a drive.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?:/([^/]*))?(.*)", re.DOTALL)
_PART = r"(?:[A-Za-z_0-9]+|`[^`]+`)"
# A name without a namespace is a folder's: nobody waits for Spark to be told that it is misspelt.
_NAME = re.compile(rf"{_PART}(?:\.{_PART})+")


def is_uri(place: str) -> bool:
    """Return whether it is a URI; a `file:` one is a path in other words, see `as_local`."""
    return _URI.match(place) is not None


def as_local(place: str) -> str:
    """Return the path that a `file:` URI names, by its very letters; everything else as it is.

    Raises ReconcilerError for a URI that holds a password: Hadoop, Spark and Arrow would show it in logs and errors.
    """
    if logins_in(place):
        message = (
            "a URI holds a login, which logs and errors would show: write it without, and give keys by the "
            "environment, spark-defaults.conf or RECONCILER_LOADS_CONF"
        )
        raise ReconcilerError(message, code=HAS_LOGIN)
    found = _URI.match(place)
    return f"/{found[3].lstrip('/')}" if found and found[1].lower() == "file" and not found[2] else place


def path_of(uri: str) -> str:
    """Return what follows scheme and host in a URI, without slashes around it."""
    found = _URI.match(uri)
    return (found[3] if found else uri).strip("/")


def may_be_table(place: str) -> bool:
    """Return whether it may name a table of a catalogue: it reads like a name, and no such path is there."""
    return _NAME.fullmatch(place) is not None and not is_there(place)


def is_for_spark(place: str) -> bool:
    """Return whether Spark alone can look there: at a URI of another machine, or at a table."""
    return is_uri(as_local(place)) or may_be_table(place)


def file_system(uri: str) -> tuple[Any, str]:
    """Return Arrow's file system of that URI, and the path in it. Raises ReconcilerError for a scheme it lacks.

    Keys and end points are those of the environment, as each cloud's own tools take them.
    """
    from pyarrow import fs

    found = _URI.match(uri)
    scheme, host, path = (found[1].lower(), found[2] or "", found[3]) if found else ("", "", uri)
    whole = f"{host}/{path.lstrip('/')}".rstrip("/")
    try:
        if scheme in {"s3", "s3a", "s3n"}:
            return fs.S3FileSystem(**_s3_settings(host)), whole
        if scheme == "gs":
            return fs.GcsFileSystem(), whole
        if scheme in {"abfs", "abfss"}:
            container, _, account = host.partition("@")
            return fs.AzureFileSystem(account.partition(".")[0]), f"{container}/{path.lstrip('/')}".rstrip("/")
        if scheme == "hdfs":
            name, _, port = host.partition(":")
            return fs.HadoopFileSystem(name or "default", int(port or 0)), f"/{path.lstrip('/')}"
    except (ImportError, AttributeError, OSError, ValueError) as error:
        raise ReconcilerError(
            f"{uri}: pyarrow does not reach {scheme}: here: {first_line(error)}; copy the folder to this machine, and "
            "name that",
            code=UNKNOWN_SCHEME,
        ) from None
    raise ReconcilerError(
        f"{uri}: without Spark no {scheme}: URI is read or written: copy the folder to this machine, and name that",
        code=UNKNOWN_SCHEME,
    )


def _s3_settings(bucket: str) -> dict[str, str]:
    """Return where that bucket is: the end point of the environment, else the region that Amazon tells."""
    from pyarrow import fs

    end_point = next(filter(None, map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))), None)
    if end_point is not None:
        scheme, _, host = end_point.rpartition("://")
        return {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        return {}
    try:
        return {"region": fs.resolve_s3_region(bucket)}
    except OSError:
        return {}
