"""Kafka's own MirrorMaker 2 between two clusters of tests, in its dedicated mode: one JVM, no REST.

    with MirrorMaker(us, eu, ("us", "eu"), topics="orders.*") as maker:   # copies from us to eu, and begins at once
        maker.kill(); maker.start()                                       # SIGKILL; start again: it goes on
        maker.stop()                                                      # SIGTERM
        maker.log                                                         # what it has said so far
    maker.made                                                        # which topics and partitions it made itself

It does all at short intervals, so that a test need not wait. It leaves the configs of topics alone, as the guide
says; `settings` add or replace its properties. Whoever waits for its work passes `maker.raise_if_ended` to `wait_for`.
"""

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from helpers.brokers.cluster import JVM_FLAGS, KafkaCluster
from helpers.brokers.kafka_jars import DEFAULT_VERSION, jars, java, mirror_maker_jars
from helpers.brokers.supervisor import Supervisor

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
INTERVAL = "1"
TELLS_WHAT_IT_MAKES = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.connect.mirror.MirrorSourceConnector=info"


@dataclass
class MirrorMaker(contextlib.AbstractContextManager["MirrorMaker"]):
    """One process that copies topics of `source` to `target`; `names` are the aliases of the two."""

    source: KafkaCluster
    target: KafkaCluster
    names: tuple[str, str]
    topics: str = ".*"
    settings: Mapping[str, str] = field(default_factory=dict)
    version: str = DEFAULT_VERSION

    def __post_init__(self) -> None:
        self._class_path = f"{mirror_maker_jars(self.version)}/*:{jars(self.version)}/*"
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-reconciler-"))
        self._supervisor = Supervisor(self._folder)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self.close()

    @property
    def log(self) -> str:
        """What it has said so far: warnings and errors."""
        return (self._folder / "log.txt").read_text(errors="replace")

    @property
    def made(self) -> list[str]:
        """What it says of each topic that it created, and of each that it grew."""
        return re.findall("Created remote topic .*|Increased size of .*", self.log)

    def start(self) -> None:
        """Start it where it stopped; it copies a while later."""
        config = self._folder / "mm2.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        command = [
            java(),
            *JVM_FLAGS,
            TELLS_WHAT_IT_MAKES,
            "-cp",
            self._class_path,
            MAIN,
            str(config),
            "--clusters",
            self.names[1],
        ]
        with (self._folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._supervisor.watch(self._process.pid)

    def stop(self) -> None:
        """Shut it down in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, as a crash does."""
        self._end(signal.SIGKILL)

    def raise_if_ended(self) -> None:
        """Fail with its last words where it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"MirrorMaker ended: {self.log[-3000:]}")

    def close(self) -> None:
        """Kill it and remove what it wrote."""
        with contextlib.suppress(ProcessLookupError):
            self.kill()
        self._supervisor.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, with_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._supervisor.end(process, with_signal)

    def _properties(self) -> Mapping[str, str]:
        source, target = self.names
        flow = f"{source}->{target}"
        factors = dict.fromkeys(
            (
                "replication.factor",
                "checkpoints.topic.replication.factor",
                "heartbeats.topic.replication.factor",
                "offset-syncs.topic.replication.factor",
                "offset.storage.replication.factor",
                "status.storage.replication.factor",
                "config.storage.replication.factor",
            ),
            str(min(3, len(self.source.broker_ids), len(self.target.broker_ids))),
        )
        often = dict.fromkeys(
            (
                "refresh.topics.interval.seconds",
                "refresh.groups.interval.seconds",
                "emit.checkpoints.interval.seconds",
                "sync.group.offsets.interval.seconds",
            ),
            INTERVAL,
        )
        return {
            "clusters": f"{source}, {target}",
            f"{source}.bootstrap.servers": self.source.bootstrap,
            f"{target}.bootstrap.servers": self.target.bootstrap,
            f"{flow}.enabled": "true",
            f"{flow}.topics": self.topics,
            f"{flow}.groups": ".*",
            "sync.topic.configs.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "tasks.max": "2",
            "consumer.poll.timeout.ms": "200",
            "offset.flush.interval.ms": "1000",
            "offset.storage.partitions": "2",
            "status.storage.partitions": "1",
            # Its jars all name their plugins: looking for others takes it 5 s, twice.
            "plugin.discovery": "service_load",
            f"{target}.plugin.discovery": "service_load",
            f"{source}.consumer.metadata.max.age.ms": "1000",
            f"{target}.producer.metadata.max.age.ms": "1000",
            **factors,
            **often,
            **self.settings,
        }
