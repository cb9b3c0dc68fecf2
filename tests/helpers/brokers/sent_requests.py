"""What the program sent to Kafka, counted at its sockets, and which of that changes something."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from helpers.brokers import counted_program
from helpers.program.command_line import Outcome
from helpers.waiting import HANG

READS = {
    2: "ListOffsets",
    3: "Metadata",
    9: "OffsetFetch",
    10: "FindCoordinator",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    29: "DescribeAcls",
    32: "DescribeConfigs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    46: "ListPartitionReassignments",
    55: "DescribeQuorum",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    66: "ListTransactions",
    75: "DescribeTopicPartitions",
}
MEMBERSHIP = {11: "JoinGroup", 12: "Heartbeat", 13: "LeaveGroup", 14: "SyncGroup"}
"""How the lock is held: membership of a group, which ends with its holder."""
WRITES = {
    0: "Produce",
    19: "CreateTopics",
    20: "DeleteTopics",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    37: "CreatePartitions",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
}


@dataclass(frozen=True, slots=True)
class Requests:
    """How one command ended, and how many requests of each kind it sent."""

    outcome: Outcome
    counts: Counter[int]

    @property
    def writes(self) -> dict[str, int]:
        """What could have changed something: every kind that is not known to only read or to hold the lock."""
        return writes_in(self.counts.elements())


def writes_in(keys: Iterable[int]) -> dict[str, int]:
    """Return how often each kind of request that changes something is among these API keys."""
    counts = Counter(key for key in keys if key not in READS and key not in MEMBERSHIP)
    return {WRITES.get(key, f"API key {key}"): count for key, count in sorted(counts.items())}


def requests_of(*arguments: str | Path, cwd: Path, expect: int = 0) -> Requests:
    """Run `reconciler ARGUMENTS` in that folder, as `command_line.reconciler` does, and count what it sends."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RECONCILER_")}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests"
        command = [sys.executable, counted_program.__file__, str(log), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=HANG, check=False
        )
        keys = log.read_text().split() if log.exists() else []
    assert done.returncode == expect, f"{command[3:]} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return Requests(Outcome(done.returncode, done.stdout, done.stderr), Counter(map(int, keys)))
