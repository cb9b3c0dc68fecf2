"""A private network for brokers: a network namespace each, joined by a bridge in one more, where the client sits.

    with PrivateNetwork((1, 2, 3)) as network, network.inside():  # this thread, and what it starts, sits at the bridge
        with KafkaCluster(broker_ids=(1, 2, 3), network=network) as kafka:
            kafka.cut_off(3)     # 3 and the other brokers no longer reach each other; the client reaches all
            kafka.join(3)
            network.hide(3); network.show(3)  # what runs with the prefix of CLIENT does not reach 3; all others do

Nothing of it is seen in the machine's own network, and it ends with the process that made it: namespaces live as long
as the processes that hold them, and these read from a pipe. It takes root, and `ip`, `unshare` and `nsenter`.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from helpers.waiting import HANG, wait_for

NETWORK, HUB, CLIENT = "10.77.0", 254, 253
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def what_is_missing() -> str | None:
    """Return why no private network can be made here; None where it can."""
    missing = [tool for tool in ("ip", "unshare", "nsenter") if shutil.which(tool) is None]
    if missing:
        return f"a private network takes {', '.join(missing)}"
    links = "ip link add bridge type bridge && ip link add one type veth peer name other"
    done = subprocess.run(["unshare", "--net", "sh", "-c", links], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no private network may be made here: {done.stderr.strip()}"


class PrivateNetwork:
    """One namespace a broker, all on one bridge; see the module's docstring."""

    def __init__(self, broker_ids: Sequence[int]) -> None:
        self._broker_ids = tuple(broker_ids)
        self._ended = ExitStack()
        self._holders: dict[int, subprocess.Popen[bytes]] = {}
        self._hidden: set[int] = set()

    def __enter__(self) -> Self:
        """Return the network, with every broker's address up."""
        try:
            for number in (HUB, CLIENT, *self._broker_ids):
                self._holders[number] = self._ended.enter_context(_holder())
            self._run(HUB, "link set lo up")
            self._run(HUB, "link add bridge type bridge")
            self._run(HUB, "link set bridge up")
            self._run(HUB, f"address add {self.address(HUB)}/24 dev bridge")
            for number in (CLIENT, *self._broker_ids):
                self._plug_in(number)
        except BaseException:
            self._ended.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the namespaces."""
        self._ended.close()

    def address(self, broker_id: int) -> str:
        """Return the address of a broker."""
        return f"{NETWORK}.{broker_id}"

    def prefix(self, broker_id: int) -> list[str]:
        """Return what a command begins with to run in a broker's namespace, or CLIENT's; it keeps its process id."""
        return ["nsenter", "--target", str(self._holders[broker_id].pid), "--net"]

    def cut_off(self, broker_id: int) -> None:
        """Drop everything between this broker and the others, both ways."""
        self._route("add", broker_id)

    def join(self, broker_id: int) -> None:
        """Let this broker and the others reach each other again."""
        self._route("delete", broker_id)

    def hide(self, broker_id: int) -> None:
        """Have this broker's answers to CLIENT lost on their way, as behind a firewall that drops them."""
        self._run(broker_id, f"route add blackhole {self.address(CLIENT)}/32")
        self._hidden.add(broker_id)

    def show(self, broker_id: int) -> None:
        """Let CLIENT reach this broker again."""
        if broker_id in self._hidden:
            self._run(broker_id, f"route delete blackhole {self.address(CLIENT)}/32")
            self._hidden.discard(broker_id)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Put this thread, and the processes and threads that it starts, at the bridge."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self._holders[HUB].pid}/ns/net", os.O_RDONLY)
        try:
            _enter(there)
            try:
                yield
            finally:
                _enter(own)
        finally:
            os.close(own)
            os.close(there)

    def _plug_in(self, broker_id: int) -> None:
        holder = self._holders[broker_id].pid
        self._run(HUB, f"link add port{broker_id} type veth peer name eth0 netns {holder}")
        self._run(HUB, f"link set port{broker_id} master bridge up")
        self._run(broker_id, f"address add {self.address(broker_id)}/24 dev eth0")
        self._run(broker_id, "link set eth0 up")
        self._run(broker_id, "link set lo up")

    def _route(self, what: str, broker_id: int) -> None:
        for other in self._broker_ids:
            if other != broker_id:
                self._run(broker_id, f"route {what} blackhole {self.address(other)}/32")
                self._run(other, f"route {what} blackhole {self.address(broker_id)}/32")

    def _run(self, number: int, command: str) -> None:
        subprocess.run([*self.prefix(number), "ip", *command.split()], check=True, capture_output=True, timeout=HANG)


@contextmanager
def _holder() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that does nothing in a network namespace of its own; it ends when its pipe closes."""
    own = Path("/proc/self/ns/net").readlink()
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        wait_for(lambda: Path(f"/proc/{process.pid}/ns/net").readlink() != own, "a network namespace", pause=0.01)
        yield process


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "this thread cannot enter the network namespace")
