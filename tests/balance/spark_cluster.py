"""A standalone Spark cluster on this machine: a master and two workers, from the installed PySpark, ended by pid."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from helpers.samples.spark_session import QUICK_JAVA
from helpers.waiting import ATTEMPT, wait_for

# Every Java that is started reads it, executors too.
QUICK_JAVA_EVERYWHERE = {"JDK_JAVA_OPTIONS": QUICK_JAVA}
_LOOPBACK = "127.0.0.1"
_MASTER_READY = "I have been elected leader"
_WORKER_READY = "Successfully registered with master"
WORKERS = 2


@dataclass(frozen=True)
class SparkCluster:
    """Where the master is, and what a driver on this machine needs to be found by the executors."""

    master: str
    environment: Mapping[str, str] = field(default_factory=dict)


def spark_program(name: str) -> str:
    """Return the path of one of PySpark's own programs, such as spark-submit."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "bin" / name)


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Yield a cluster of two workers with a core and 1 GiB each; logs and work folders go into that folder."""
    # A worker must hold an executor of 1 GiB, Spark's default: with less a job would wait for ever, and not say why.
    own = {"SPARK_LOCAL_IP": _LOOPBACK, "PYSPARK_PYTHON": sys.executable, **QUICK_JAVA_EVERYWHERE}
    environment = {**os.environ, **own, "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
    port = _free_port()
    url = f"spark://{_LOOPBACK}:{port}"
    with ExitStack() as running:
        master = ["Master", "--host", _LOOPBACK, "--port", str(port), "--webui-port", "0"]
        running.enter_context(_running(master, folder / "master.log", _MASTER_READY, environment))
        worker = ["Worker", "--host", _LOOPBACK, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        starting = [
            running.enter_context(
                _started(
                    [*worker, "--work-dir", str(folder / f"work-{number}"), url], folder / f"{number}.log", environment
                )
            )
            for number in range(WORKERS)
        ]
        for number, process in enumerate(starting):
            _await(process, folder / f"{number}.log", _WORKER_READY)
        yield SparkCluster(url, own)


@contextmanager
def _running(arguments: list[str], log: Path, ready: str, environment: Mapping[str, str]) -> Iterator[None]:
    with _started(arguments, log, environment) as process:
        _await(process, log, ready)
        yield


@contextmanager
def _started(arguments: list[str], log: Path, environment: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    name, *rest = arguments
    kind = f"org.apache.spark.deploy.{name.lower()}.{name}"
    with log.open("wb") as told:
        process = subprocess.Popen(
            [spark_program("spark-class"), kind, *rest], env=environment, stdout=told, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(ATTEMPT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(process: "subprocess.Popen[bytes]", log: Path, ready: str) -> None:
    def told() -> str:
        return log.read_text("utf-8", errors="replace")

    wait_for(lambda: ready in told() or process.poll() is not None, ready, pause=0.2, seen=lambda: told()[-3000:])
    assert ready in told(), told()[-3000:]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((_LOOPBACK, 0))
        port: int = one.getsockname()[1]
        return port
