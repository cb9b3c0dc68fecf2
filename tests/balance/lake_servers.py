"""An S3 server on this machine, and the jars with which Spark reaches it and reads tables; fetched once."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from balance.spark_cluster import free_port, running
from helpers.brokers.kafka_jars import cache_folder, fetch_all, fetch_alone
from helpers.waiting import HANG

MINIO = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
DELTA = (("io.delta", "delta-spark_4.1_2.13", "4.4.0"), ("io.delta", "delta-storage", "4.4.0"))
ICEBERG = (("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),)
TABLE_SPARK = "4.1.4"
"""The newest PySpark that both formats have a reader for."""
_LOOPBACK = "127.0.0.1"
_KEYS = {"AWS_ACCESS_KEY_ID": "of-a-test", "AWS_SECRET_ACCESS_KEY": "known-to-nobody-else"}


class NoServerError(RuntimeError):
    """No S3 server can be had here; the text says what to install."""


@dataclass(frozen=True)
class ObjectStore:
    """Where the server is, for Spark and for pyarrow."""

    end_point: str
    environment: Mapping[str, str]


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Yield an S3 server that keeps its objects in that folder, with a bucket `lake`."""
    from pyarrow import fs

    address = f"{_LOOPBACK}:{free_port()}"
    keys = {"MINIO_ROOT_USER": _KEYS["AWS_ACCESS_KEY_ID"], "MINIO_ROOT_PASSWORD": _KEYS["AWS_SECRET_ACCESS_KEY"]}
    command = [_minio(), "server", "--address", address, "--console-address", f"{_LOOPBACK}:{free_port()}"]
    with running([*command, str(folder / "objects")], folder / "minio.log", "API:", {**os.environ, **keys}):
        names = {"access_key": _KEYS["AWS_ACCESS_KEY_ID"], "secret_key": _KEYS["AWS_SECRET_ACCESS_KEY"]}
        fs.S3FileSystem(**names, endpoint_override=address, scheme="http", allow_bucket_creation=True).create_dir(
            "lake"
        )
        yield ObjectStore(f"http://{address}", {**_KEYS, "AWS_ENDPOINT_URL": f"http://{address}"})


def _minio() -> str:
    found = shutil.which("minio") or shutil.which("minio", path=str(cache_folder() / "bin"))
    if found is not None:
        return found
    go = shutil.which("go")
    if go is None:
        raise NoServerError(f"no S3 server: install minio, or Go, with which the tests build {MINIO}")
    with tempfile.TemporaryDirectory() as workspace:
        environment = {
            **os.environ,
            "GOBIN": str(cache_folder() / "bin"),
            "GOPATH": workspace,
            "GOFLAGS": "-modcacherw",
        }
        built = subprocess.run(
            [go, "install", MINIO], env=environment, capture_output=True, text=True, timeout=HANG * 5, check=False
        )
    if built.returncode != 0:
        raise NoServerError(f"{MINIO} cannot be built: {built.stderr[-1000:]}")
    return str(cache_folder() / "bin" / "minio")


def s3_jars() -> str:
    """Return the class path of Hadoop's S3 client, of the version of this PySpark's Hadoop."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (client,) = (Path(spec.origin).parent / "jars").glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    return _class_path(f"hadoop-aws-{version}", (("org.apache.hadoop", "hadoop-aws", version),), is_alone=False)


def table_jars() -> str:
    """Return the class path of the readers of Delta and Iceberg, for `TABLE_SPARK`."""
    return _class_path("-".join(("tables", DELTA[0][2], ICEBERG[0][2])), (*DELTA, *ICEBERG), is_alone=True)


def _class_path(name: str, modules: tuple[tuple[str, str, str], ...], *, is_alone: bool) -> str:
    target = cache_folder() / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as workspace:
            fetched = Path(workspace) / "jars"
            fetched.mkdir()
            for module in modules:
                (fetch_alone if is_alone else fetch_all)(module, fetched, Path(workspace))
            fetched.rename(target)
    return os.pathsep.join(map(str, sorted(target.glob("*.jar"))))
