"""A standalone Spark cluster, or a Spark Connect server, on this machine: from PySpark, ended by pid."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
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
_SERVER_READY = "Spark Connect server started at"
_DEPLOY = "org.apache.spark.deploy"
CORES = 2
_REGISTERED = "Registered app reconciler"


@dataclass(frozen=True)
class SparkCluster:
    """Where the master is, and what a driver on this machine needs to be found by the executors."""

    master: str
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def programs(self) -> int:
        """Return how many programs have run here, by the master's log."""
        return self.log.read_text("utf-8", errors="replace").count(_REGISTERED)


def spark_program(name: str, python: Path | None = None) -> str:
    """Return the path of one of PySpark's own programs, such as spark-submit: of that Python's, or of this one's."""
    if python is not None:
        (found,) = python.parent.parent.glob(f"lib/python3*/site-packages/pyspark/bin/{name}")
        return str(found)
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / name)


@contextmanager
def spark_cluster(folder: Path, python: Path | None = None, workers: int = 1) -> Iterator[SparkCluster]:
    """Yield a cluster whose workers have two cores and 2 GiB each; logs and work folders go into that folder."""
    # A worker must hold executors of 1 GiB, Spark's default: with less a job would wait for ever, and not say why.
    own = {"SPARK_LOCAL_IP": _LOOPBACK, "PYSPARK_PYTHON": str(python or sys.executable), **QUICK_JAVA_EVERYWHERE}
    environment = {**os.environ, **own, "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
    program = spark_program("spark-class", python)
    port = free_port()
    url = f"spark://{_LOOPBACK}:{port}"
    log = folder / "master.log"
    master = ["--host", _LOOPBACK, "--port", str(port), "--webui-port", "0"]
    worker = ["--host", _LOOPBACK, "--webui-port", "0", "--cores", str(CORES), "--memory", f"{CORES}g"]
    with ExitStack() as all_of_it:
        start = all_of_it.enter_context
        start(running([program, f"{_DEPLOY}.master.Master", *master], log, _MASTER_READY, environment))
        for number in range(workers):
            place = ["--work-dir", str(folder / f"work-{number}"), url]
            command = [program, f"{_DEPLOY}.worker.Worker", *worker, *place]
            start(running(command, folder / f"worker-{number}.log", _WORKER_READY, environment))
        yield SparkCluster(url, log, own)


@contextmanager
def connect_server(folder: Path, python: Path | None = None, more: Sequence[str] = ()) -> Iterator[str]:
    """Yield the URL of a Spark Connect server on two local cores; its log goes into that folder."""
    port = free_port()
    own = {"SPARK_LOCAL_IP": _LOOPBACK, "PYSPARK_PYTHON": str(python or sys.executable), **QUICK_JAVA_EVERYWHERE}
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"} | own
    settings = {
        "spark.connect.grpc.binding.address": _LOOPBACK,
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
    }
    kind = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", f"local[{CORES}]")
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [spark_program("spark-submit", python), *kind, *conf, *more, "spark-internal"]
    with running(command, folder / "connect.log", _SERVER_READY, environment):
        yield f"sc://{_LOOPBACK}:{port}"


@contextmanager
def running(command: list[str], log: Path, ready: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Let a program run, from when its log says that it is ready."""
    with log.open("wb") as told:
        process = subprocess.Popen(command, env=environment, stdout=told, stderr=subprocess.STDOUT)
    try:
        _await(process, log, ready)
        yield
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


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as one:
        one.bind((_LOOPBACK, 0))
        port: int = one.getsockname()[1]
        return port
