"""Real Kafka brokers for tests: one JVM a node, KRaft, no container.

    with KafkaCluster(version="4.3.0") as kafka:   # six brokers in racks a, b, c, a, b, c; 1-3 are controllers too
        kafka.bootstrap                            # "127.0.0.1:20001,127.0.0.1:20002,..." of the brokers that run
        kafka.properties                           # the same as Java-style client properties
        kafka.client                               # how the program connects: SASL_SSL, with the rights of RIGHTS.md
        kafka.kill(4); kafka.start(4)              # SIGKILL; start again on the same data (waits until unfenced)
        kafka.stop(4)                              # SIGTERM: a controlled shutdown
        kafka.upgrade("4.4.0", 4)                  # stop; start with another version on the same data
        kafka.pause(4); kafka.resume(4)            # SIGSTOP; SIGCONT
        kafka.add(7, rack="a")                     # a broker that was not there before
        kafka.add(8, small_dir_mb=48)              # its second data folder is a small disk (for root: can_mount())
        kafka.log_dirs(4)                          # its two data folders
        kafka.produce("orders", 0, size=10_000_000)  # acks=all, through a client that is not under test
        kafka.wait_for(lambda: ..., "what")        # poll until true, or fail

`KafkaCluster(broker_ids=(1, 2, 3, 4))` starts four; `add(5)`, `add(6)` bring the others later. `settings` adds or
replaces server properties on every node. Brokers have Kafka's authorizer and two listeners: a plaintext one for the
tests' own clients, who may do everything, and a SASL_SSL one with SCRAM-SHA-512 for the program. `is_plain=True` leaves
out the authorizer and that listener. `users={"name": "password"}` adds users (`admin` is a super user):
`kafka.properties_of("name")`. `listeners={"NAME": "SSL"}` adds listeners, at `kafka.listener("NAME")` for the first
broker, set up by `settings` (`listener.name.name.ssl.keystore.location`); `advertised={"NAME": {1: "host:port"}}` has
brokers tell another address of a listener than where it is, such as a proxy's. `environments={1: {"NAME": "value"}}`
sets variables of one broker's process. `is_tiered=True` turns tiered storage on, with the folder `kafka.remote_dir` as
remote tier. `network` gives each broker an address of its own, so that one can be cut off.

In tests take the fixture `kafka` (one cluster for the session: leave it as you found it, with topics of your own
names) or call the fixture `new_kafka(...)` for a private one. `--kafka-version` or KAFKA_VERSION chooses the version.
Nothing outlives the tests: a supervising process kills the brokers and removes their data when its pipe from the
test process closes, however that process ends.
"""

import base64
import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from helpers.brokers.controller import acls_shown_by, brokers_shown_by
from helpers.brokers.kafka_jars import DEFAULT_VERSION, QUICK_JAVA, jars, java, java_release, tiered_storage_jars
from helpers.brokers.network import PrivateNetwork
from helpers.brokers.rights import PROGRAM, least_rights
from helpers.brokers.supervisor import Supervisor
from helpers.certificates import Authority
from helpers.waiting import ATTEMPT, HANG, asked_again, wait_for

CONTROLLERS = (1, 2, 3)
RACKS = ("a", "b", "c")
HOST = "127.0.0.1"
MISSED_SOON = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "1000"}
"""A dead broker is missed, and may come again, after this time: 9 s by default, which many tests would wait for."""
# Below the range that the kernel hands to outgoing connections, so that a broker finds its port free after a restart.
FIRST_PORT, PORTS_OF_A_CLUSTER, MOST_CLUSTERS = 20000, 100, 100
META = "meta.properties"
MOUNT = ("mount", "-t", "tmpfs", "-o")
JVM_FLAGS = (
    "-Xms64m",
    "-Xmx256m",
    *QUICK_JAVA,
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)


@dataclass
class KafkaCluster(AbstractContextManager["KafkaCluster"]):
    """Brokers on this machine; see the module's docstring."""

    version: str = DEFAULT_VERSION
    broker_ids: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    settings: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    is_plain: bool = False
    listeners: Mapping[str, str] = field(default_factory=dict)
    advertised: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    environments: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    java_options: tuple[str, ...] = ()
    network: PrivateNetwork | None = None
    is_tiered: bool = False
    archive_to: Path | None = None
    """Where a broker that is stopped writes its classes; `shared_classes` alone asks for it."""

    def __post_init__(self) -> None:
        self.cluster_id = _new_id()
        self._take_version(self.version)
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-reconciler-"))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._racks: dict[int, str] = {}
        self._mounts: list[Path] = []
        self._base_port, self._port_lock = _reserve_ports()
        self._supervisor = Supervisor(self._folder)
        self._admin: AdminClient | None = None
        self._cut_off: set[int] = set()
        try:
            (self._folder / "ca.pem").write_text(_authority().certificate, "utf-8")
            self._format(self.broker_ids)
            self._spawn(self.broker_ids)
            self.wait_until_alive(self.broker_ids)
            if not self.is_plain:
                self._grant()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop every broker and remove the data."""
        self.close()

    def _take_version(self, version: str) -> None:
        self.version = version
        self._class_path = ":".join(f"{one}/*" for one in (jars(version), *self._tier_jars()))
        self._flags = (*_flags(version, self.archive_to), *self.java_options)

    @property
    def bootstrap(self) -> str:
        """Where the running brokers listen, without authentication."""
        return ",".join(self._address(broker_id) for broker_id in self.alive)

    @property
    def properties(self) -> dict[str, str]:
        """Client properties, in the Java client's words."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def client(self) -> dict[str, str]:
        """Client properties of the program under test: a user with the rights of RIGHTS.md, and no others."""
        return self.properties if self.is_plain else self.properties_of(PROGRAM)

    def properties_of(self, user: str) -> dict[str, str]:
        """Client properties of one of `users`."""
        servers = ",".join(f"{self._host(broker_id)}:{self._port(broker_id) + 60}" for broker_id in self.alive)
        login = {"bootstrap.servers": servers, "sasl.username": user, "sasl.password": self._passwords[user]}
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._folder / "ca.pem")}
        return login | trust | {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}

    @property
    def _passwords(self) -> dict[str, str]:
        return {} if self.is_plain else {PROGRAM: f"{PROGRAM}-password", **self.users}

    def _grant(self) -> None:
        """Give the program its rights, and wait until every broker knows them."""
        rights, admin = least_rights(PROGRAM), AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

        def granted() -> None:
            for done in admin.create_acls(rights).values():
                done.result(HANG)

        asked_again(granted, KafkaException)  # a connection may end while brokers begin
        addresses = self.bootstrap.split(",")
        self.wait_for(
            lambda: {acls_shown_by(one) for one in addresses} == {len(rights)}, "the rights to be known to all brokers"
        )

    def listener(self, name: str, broker_id: int = 1) -> str:
        """Where one of `listeners` is, as host:port."""
        first = 69 + [*self.listeners].index(name) * max(self.broker_ids)
        return f"{self._host(broker_id)}:{self._port(broker_id) + first}"

    @property
    def alive(self) -> tuple[int, ...]:
        """The brokers whose process runs, and which the others reach."""
        return tuple(sorted({*self._processes} - self._cut_off))

    def rack(self, broker_id: int) -> str:
        """Return the broker's rack: a, b, c, a, b, c, ... unless it was added with another."""
        return self._racks.get(broker_id, RACKS[(broker_id - 1) % len(RACKS)])

    def pid(self, broker_id: int) -> int:
        """Return the process id of a running broker."""
        return self._processes[broker_id].pid

    def log_dirs(self, broker_id: int) -> tuple[Path, Path]:
        """Return the broker's two data folders."""
        return self._node(broker_id) / "d1", self._node(broker_id) / "d2"

    def log(self, broker_id: int) -> str:
        """Return what the broker has said so far: warnings and errors."""
        return (self._node(broker_id) / "log.txt").read_text(errors="replace")

    def add(self, broker_id: int, *, rack: str | None = None, small_dir_mb: int | None = None) -> None:
        """Start a broker that the cluster has not known before; returns when it is alive.

        With `small_dir_mb` its second data folder is a file system of its own, of that many MiB in memory.
        """
        if rack is not None:
            self._racks[broker_id] = rack
        if small_dir_mb is not None:
            small = self.log_dirs(broker_id)[1]  # the first one holds the metadata, without which no broker lives
            small.mkdir(parents=True)
            subprocess.run([*MOUNT, f"size={small_dir_mb}m", "none", str(small)], check=True, capture_output=True)
            self._mounts.append(small)
        self._format((broker_id,))
        self.start(broker_id)

    def start(self, *broker_ids: int) -> None:
        """Start stopped brokers on their old data; returns when they are alive."""
        self._spawn(broker_ids)
        self.wait_until_alive(broker_ids)

    def stop(self, broker_id: int) -> None:
        """Shut a broker down in good order."""
        self._supervisor.end(self._processes.pop(broker_id), signal.SIGTERM)

    def upgrade(self, version: str, *broker_ids: int) -> None:
        """Restart these brokers, one after the other, with another version on their old data: a rolling upgrade."""
        self._take_version(version)
        for broker_id in broker_ids:
            self.stop(broker_id)
            self.start(broker_id)

    def kill(self, broker_id: int) -> None:
        """Kill a broker, as a crash does."""
        self._supervisor.end(self._processes.pop(broker_id), signal.SIGKILL)

    def pause(self, broker_id: int) -> None:
        """Freeze a broker."""
        os.kill(self.pid(broker_id), signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        """Let a frozen broker go on."""
        os.kill(self.pid(broker_id), signal.SIGCONT)

    def cut_off(self, broker_id: int) -> None:
        """Drop everything between a broker and the others, with a `network`; clients still reach it."""
        assert self.network is not None, "a broker is cut off in a private network alone"
        self.network.cut_off(broker_id)
        self._cut_off.add(broker_id)

    def join(self, broker_id: int) -> None:
        """Let a broker that was cut off reach the others again; returns when it is alive."""
        assert self.network is not None, "a broker is cut off in a private network alone"
        self.network.join(broker_id)
        self._cut_off.discard(broker_id)
        self.wait_until_alive((broker_id,))

    def wait_until_alive(self, broker_ids: Iterable[int]) -> None:
        """Wait until the brokers are registered and unfenced, and each broker that answers knows it."""
        wanted = set(broker_ids)

        def is_known_to(broker_id: int) -> bool:
            try:
                return wanted <= brokers_shown_by(self._address(broker_id))
            except OSError:  # a frozen one is asked by nobody
                return broker_id not in wanted

        self.wait_for(
            lambda: wanted <= self._listed() and all(map(is_known_to, self.alive)),
            f"brokers {sorted(wanted)} to be alive",
        )

    def wait_until_gone(self, broker_id: int) -> None:
        """Wait until the controller has fenced the broker."""
        self.wait_for(lambda: broker_id not in self._listed(), f"broker {broker_id} to be fenced")

    def wait_for(
        self, is_true: Callable[[], bool], what: str, *, seen: Callable[[], object] = lambda: "no more to tell"
    ) -> None:
        """Poll until it is true; fail with a broker's last words where one ended meanwhile."""
        wait_for(is_true, what, pause=0.4, seen=seen, meanwhile=lambda: self._fail_if_one_died(what))

    def produce(self, topic: str, partition: int, *, size: int, record_bytes: int = 10_000) -> None:
        """Write at least `size` bytes of random (incompressible) records with acks=all."""
        self.write(topic, partition, (os.urandom(record_bytes) for _ in range(-(-size // record_bytes))))

    def write(self, topic: str, partition: int, values: Iterable[bytes], key: bytes | None = None) -> None:
        """Write records with these values, all with that key, and acks=all."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "linger.ms": 5, "log_level": 0})
        failed: list[object] = []

        def note(error: object, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        for value in values:
            producer.produce(topic, value=value, key=key, partition=partition, on_delivery=note)
            producer.poll(0)
            while len(producer) > 1_000:
                producer.poll(0.05)
        left = producer.flush(HANG)
        if left or failed:
            raise AssertionError(f"{left} records unsent, {len(failed)} refused ({failed[:1]}) for {topic}-{partition}")

    def close(self) -> None:
        """Kill every broker and remove the data."""
        for broker_id in tuple(self._processes):
            self.kill(broker_id)
        self._supervisor.close()
        for mount in self._mounts:
            subprocess.run(["umount", "-l", str(mount)], check=False, capture_output=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._port_lock.close()

    def _node(self, broker_id: int) -> Path:
        return self._folder / f"b{broker_id}"

    def _host(self, broker_id: int) -> str:
        return HOST if self.network is None else self.network.address(broker_id)

    def _address(self, broker_id: int) -> str:
        return f"{self._host(broker_id)}:{self._port(broker_id)}"

    def _port(self, broker_id: int) -> int:
        return self._base_port + broker_id

    def _listed(self) -> set[int]:
        """Return the brokers that the cluster counts as alive (metadata leaves fenced ones out)."""
        if self._admin is None:
            everyone = ",".join(self._address(broker_id) for broker_id in self.broker_ids)
            quiet = {"log_level": 0, "reconnect.backoff.max.ms": 500, "socket.timeout.ms": 5_000}
            self._admin = AdminClient({"bootstrap.servers": everyone, **quiet})
        try:
            return set(self._admin.list_topics(timeout=ATTEMPT).brokers)
        except KafkaException:
            return set()

    def _fail_if_one_died(self, what: str) -> None:
        for broker_id, process in self._processes.items():
            if process.poll() is not None:
                told = self.log(broker_id)[-2000:]
                raise AssertionError(f"broker {broker_id} ended while waiting for {what}: {told}")

    def _format(self, broker_ids: Iterable[int]) -> None:
        """Write what Kafka's own tool would: it takes a JVM, so it is asked once, for the records of the start."""
        for broker_id in broker_ids:
            self._node(broker_id).mkdir(exist_ok=True)
            config = self._node(broker_id) / "server.properties"
            lines = {**self._server_properties(broker_id), **self.settings}
            config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            for log_dir in self.log_dirs(broker_id):
                log_dir.mkdir(exist_ok=True)
                about = {"version": 1, "cluster.id": self.cluster_id, "node.id": broker_id, "directory.id": _new_id()}
                (log_dir / META).write_text("".join(f"{key}={value}\n" for key, value in about.items()))
            if not self.is_plain:
                (self._node(broker_id) / "key.pem").write_text(_key(self._host(broker_id)), "utf-8")
            place, records = _bootstrap_records(self.version, tuple(self._passwords.items()))
            checkpoint = self.log_dirs(broker_id)[0] / place
            checkpoint.parent.mkdir(exist_ok=True)
            checkpoint.write_bytes(records)

    def _server_properties(self, broker_id: int) -> dict[str, str]:
        controllers = sorted(set(CONTROLLERS) & set(self.broker_ids))
        is_controller = broker_id in controllers
        voters = ",".join(f"{i}@{self._host(i)}:{self._port(i) + 30}" for i in controllers)
        listeners = {"PLAINTEXT": f"PLAINTEXT://{self._address(broker_id)}"}
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        if not self.is_plain:
            listeners["CLIENT"] = f"CLIENT://{self._host(broker_id)}:{self._port(broker_id) + 60}"
            protocols["CLIENT"] = "SASL_SSL"
        listeners |= {name: f"{name}://{self.listener(name, broker_id)}" for name in self.listeners}
        protocols |= self.listeners
        told = {name: f"{name}://{where[broker_id]}" for name, where in self.advertised.items()}
        controller = f",CONTROLLER://{self._host(broker_id)}:{self._port(broker_id) + 30}" if is_controller else ""
        return {
            "node.id": str(broker_id),
            "process.roles": "broker,controller" if is_controller else "broker",
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(listeners.values()) + controller,
            "advertised.listeners": ",".join((listeners | told).values()),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
            "log.dirs": ",".join(map(str, self.log_dirs(broker_id))),
            "broker.rack": self.rack(broker_id),
            "offsets.topic.replication.factor": str(min(3, len(self.broker_ids))),
            "offsets.topic.num.partitions": "10",
            "transaction.state.log.replication.factor": str(min(3, len(self.broker_ids))),
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            **MISSED_SOON,
            "metadata.max.idle.interval.ms": "5000",  # 500 by default: much for an idle cluster
            "replica.fetch.wait.max.ms": "1000",  # 500: brokers at rest ask each other for records half as often
            "num.network.threads": "2",
            "num.io.threads": "2",
            "log.cleaner.threads": "1",
            "log.cleaner.dedupe.buffer.size": "4194304",
            **({} if self.is_plain else self._security(broker_id)),
            **(self._tier() if self.is_tiered else {}),
        }

    def _tier_jars(self) -> tuple[Path, ...]:
        return (tiered_storage_jars(self.version),) if self.is_tiered else ()

    def _tier(self) -> dict[str, str]:
        """Return the settings of tiered storage (KIP-405), its remote tier a folder that all brokers share."""
        logs = "org.apache.kafka.server.log.remote"
        return {
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.class.name": f"{logs}.storage.LocalTieredStorage",
            "remote.log.storage.manager.impl.prefix": "rsm.config.",
            "rsm.config.dir": str(self.remote_dir),
            "remote.log.metadata.manager.class.name": f"{logs}.metadata.storage.TopicBasedRemoteLogMetadataManager",
            "remote.log.metadata.manager.listener.name": "PLAINTEXT",
            "rlmm.config.remote.log.metadata.topic.replication.factor": str(min(3, len(self.broker_ids))),
            "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
            "remote.log.manager.task.interval.ms": "1000",
            "log.retention.check.interval.ms": "2000",
            "log.initial.task.delay.ms": "500",  # 30 s by default, before which nothing local is deleted
        }

    @property
    def remote_dir(self) -> Path:
        """The folder that holds what `is_tiered` brokers have moved to the remote tier."""
        return self._folder / "remote"

    def _security(self, broker_id: int) -> dict[str, str]:
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.client.scram-sha-512.sasl.jaas.config": login,
            "listener.name.client.ssl.keystore.location": str(self._node(broker_id) / "key.pem"),
            "listener.name.client.ssl.keystore.type": "PEM",
        }

    def _spawn(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            prefix = [] if self.network is None else self.network.prefix(broker_id)
            command = [*prefix, java(), *self._flags, "-cp", self._class_path, "kafka.Kafka"]
            with (self._node(broker_id) / "log.txt").open("ab") as log:
                self._processes[broker_id] = subprocess.Popen(
                    [*command, str(self._node(broker_id) / "server.properties")],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, **self.environments.get(broker_id, {})},
                )
            self._supervisor.watch(self.pid(broker_id))


def can_mount() -> bool:
    """Whether this process may mount a file system, as `add(..., small_dir_mb=48)` does."""
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("mount") is None or subprocess.run([*MOUNT, "size=1m", "none", folder], check=False).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
    return True


def shared_classes(version: str) -> Path:
    """Return an archive of the classes that a broker loads: with it a start takes a third less CPU time.

    The first call for a version and a Java makes it. Java itself ignores one that does not fit.
    """
    target = jars(version) / f"classes-{java_release()}.jsa"
    with target.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test process may begin at the same time
        if not target.exists():
            new = target.with_suffix(".new")
            with KafkaCluster(version=version, broker_ids=(1,), archive_to=new) as one:
                one.stop(1)
            new.replace(target)
    return target


def _flags(version: str, archive_to: Path | None) -> tuple[str, ...]:
    if archive_to is not None:
        return (*JVM_FLAGS, f"-XX:ArchiveClassesAtExit={archive_to}")
    return (*JVM_FLAGS, f"-XX:SharedArchiveFile={shared_classes(version)}", "-Xlog:disable", "-Xlog:all=error:stdout")


@functools.cache
def _bootstrap_records(version: str, passwords: tuple[tuple[str, str], ...]) -> tuple[Path, bytes]:
    """Return the first records of a cluster's metadata, as Kafka's own tool writes them: features, and SCRAM users.

    They are in a file of the log dir, since 4.4 in the folder of the metadata's own log.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "server.properties"
        lines = {
            "node.id": "1",
            "process.roles": "controller",
            "controller.quorum.voters": f"1@{HOST}:{FIRST_PORT}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{HOST}:{FIRST_PORT}",
            "log.dirs": folder,
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = [java(), "-Xmx128m", *QUICK_JAVA, "-cp", f"{jars(version)}/*"]
        command += ["kafka.tools.StorageTool", "format", "-t", _new_id(), "-c", str(config)]
        for user, password in passwords:
            command += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
        subprocess.run(command, check=True, capture_output=True, timeout=HANG)
        (checkpoint,) = Path(folder).rglob("*.checkpoint")
        return checkpoint.relative_to(folder), checkpoint.read_bytes()


def _new_id() -> str:
    """Return an id as Kafka makes them; none begins with a dash, which its tools would take for an option."""
    return "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def _reserve_ports() -> tuple[int, IO[str]]:
    """Return the first port of a free block, and the lock that keeps other test processes out of it."""
    for number in range(MOST_CLUSTERS):
        base = FIRST_PORT + number * PORTS_OF_A_CLUSTER
        lock = (Path(tempfile.gettempdir()) / f"kafka-reconciler-ports-{base}.lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        if all(_is_free(base + offset) for offset in range(PORTS_OF_A_CLUSTER)):
            return base, lock
        lock.close()
    raise AssertionError(f"no free block of {PORTS_OF_A_CLUSTER} ports from {FIRST_PORT} on")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


@functools.cache
def _authority() -> Authority:
    """Return who signs the certificates of all brokers."""
    return Authority("tests")


@functools.cache
def _key(host: str) -> str:
    """Return a broker's private key, and its certificate for that address."""
    pair = _authority().issue(host)
    return pair.key + pair.chain
