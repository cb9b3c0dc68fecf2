"""Keeps how far the topic of Cruise Control's reporter was read, beside the samples that were made of it.

DIR/_cruise_control/cluster=prod/read.json
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from reconciler.balance.files.sample_writer import UNWRITTEN, escaped
from reconciler.files.raw import invalid, write_atomically

FOLDER, FILE = "_cruise_control", "read.json"
BROKEN = "KR447"


@dataclass(frozen=True, slots=True)
class ReadState:
    """How far that topic was read: the offset to go on at by partition, and the last report told of each broker."""

    topic: str
    positions: dict[int, int] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)


def read_state(out: Path, cluster: str) -> ReadState | None:
    """Return how far it was read, None where it never was; raises InvalidInput for a broken file."""
    path = _path(out, cluster)
    try:
        told = json.loads(path.read_bytes())
        positions, reports = (
            {int(key): int(value) for key, value in told[name].items()} for name in ("positions", "told")
        )
        return ReadState(str(told["topic"]), positions, reports)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        message = f"{path}: does not say how far the topic of Cruise Control was read; remove it to begin anew"
        raise invalid(BROKEN, message) from None


def write_state(out: Path, cluster: str, state: ReadState) -> None:
    """Replace what is kept."""
    content = f"{json.dumps(asdict(state), indent=1, sort_keys=True)}\n".encode()
    write_atomically(_path(out, cluster), content, "what was read", UNWRITTEN)


def _path(out: Path, cluster: str) -> Path:
    return out / FOLDER / f"cluster={escaped(cluster)}" / FILE
