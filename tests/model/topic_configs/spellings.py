"""Spellings of config values, with what brokers of 3.9.1 and 4.4.0 showed once each was set, and the way to try them.

`tests/live/test_spellings.py` asks real brokers again; the tests of the parser and of the simulated cluster go by the
same answers.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from helpers.program.call import Program
from helpers.program.documents import document


class Spelling(NamedTuple):
    """A key, a value as a file may have it, and what Kafka shows of it; None: Kafka refuses it."""

    key: str
    text: str
    shown: str | None

    def is_shown_as(self, value: str | None) -> bool:
        """Whether a broker's text is the recorded one; of a list that holds an item twice, 4.2 and later drop one."""
        if self.shown is None or value is None or self.key != "cleanup.policy":
            return value == self.shown
        return list(dict.fromkeys(value.split(","))) == list(dict.fromkeys(self.shown.split(",")))


SWITCHES = ("preallocate", "remote.log.copy.disable", "remote.log.delete.on.disable", "unclean.leader.election.enable")
NUMBERS = {
    "compression.gzip.level": 7, "compression.lz4.level": 7, "compression.zstd.level": 7, "flush.messages": 7,
    "min.insync.replicas": 1,
}  # fmt: skip
TIMES_AND_SIZES = {
    "delete.retention.ms": 7, "file.delete.delay.ms": 7, "flush.ms": 7, "index.interval.bytes": 7,
    "local.retention.bytes": 7, "local.retention.ms": 7, "max.compaction.lag.ms": 7, "max.message.bytes": 7,
    "message.timestamp.after.max.ms": 7, "message.timestamp.before.max.ms": 7, "min.compaction.lag.ms": 7,
    "retention.bytes": 777, "retention.ms": 777, "segment.bytes": 1048577, "segment.index.bytes": 7,
    "segment.jitter.ms": 7, "segment.ms": 777,
}  # fmt: skip
OF_A_SWITCH = {
    "True": "true", "TRUE": "true", " tRuE ": "true", "true\n": "true", "False": "false", "FALSE": "false",
    "yes": None, "1": None, "on": None, "": None, "tru": None, "\u00a0true": None,
}  # fmt: skip
OF_A_NUMBER = {
    "{}": "{}", " {} ": "{}", "\t{}": "{}", "+{}": "{}", "00{}": "{}", "-0": None, "{}.0": None, "{}e0": None,
    "0x{}": None, "{}_0": None, "{},0": None, "{}L": None, "\u00a0{}": None, "": None,
}  # fmt: skip
OTHERS = {
    "min.cleanable.dirty.ratio": {
        "0": "0.0", "1": "1.0", "0.50": "0.5", "0.0001": "1.0E-4", ".5": "0.5", "0.": "0.0", "00.50": "0.5",
        "+0.5": "0.5", "-0.0": "-0.0", " 0.5 ": "0.5", "5e-1": "0.5", "0.5f": "0.5", "+.5e0D": "0.5", "0x1p-1": "0.5",
        "0X.8P0": "0.5", "NaN": "NaN", "1e-400": "0.0", "0.1000000000000000055": "0.1", "1e-3": "0.001",
        "9.999e-4": "9.999E-4", "2e-323": "2.0E-323", "Infinity": None, "0x1p9999": None, "50%": None, "0,5": None,
        "1_0": None, "0.5 f": None, "1/2": None, "": None, "\u0661": None,
    },
    "cleanup.policy": {
        "compact, delete": "compact,delete", "delete,compact": "delete,compact", " compact,\tdelete": "compact,delete",
        "compact,compact": "compact,compact", "delete, delete, compact": "delete,delete,compact", "": "", " ": "",
        ",": None, "compact,": None, "compact,,delete": None, "Compact": None, "DELETE": None, "compact;delete": None,
        "compact delete": None, "[compact,delete]": None, "compact\u00a0,delete": None, "none": None,
    },
    "compression.type": {" gzip ": "gzip", "\tzstd": "zstd", "GZIP": None, "Zstd": None, "none": None, "": None},
    "message.timestamp.type": {
        " LogAppendTime ": "LogAppendTime", "CreateTime\n": "CreateTime", "createtime": None, "LOGAPPENDTIME": None,
    },
}  # fmt: skip


def spellings() -> Iterator[Spelling]:
    """Yield each spelling, in order."""
    for key in SWITCHES:
        yield from (Spelling(key, text, shown) for text, shown in OF_A_SWITCH.items())
    for key, number in {**NUMBERS, **TIMES_AND_SIZES}.items():
        for text, shown in OF_A_NUMBER.items():
            if text.startswith("\u00a0") and key in TIMES_AND_SIZES:
                continue  # files read it as the number, as they do with a unit, and send the number alone
            is_zero = text == "-0" and key in ZERO_IS_TAKEN
            yield Spelling(key, text.format(number), "0" if is_zero else shown and shown.format(number))
    for key, known in OTHERS.items():
        yield from (Spelling(key, text, shown) for text, shown in known.items())


ZERO_IS_TAKEN = {
    "compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms", "flush.ms", "index.interval.bytes",
    "local.retention.bytes", "local.retention.ms", "max.message.bytes", "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms", "min.compaction.lag.ms", "retention.bytes", "retention.ms", "segment.jitter.ms",
}  # fmt: skip


class Trial:
    """A cluster's folder with two topics a spelling, each named by a prefix and its number."""

    prefixes = ("new-", "old-")
    """The topics of the second prefix exist before, without overrides. Their values have quotes only where needed."""

    def __init__(self, program: Program, folder: Path, step: int = 1) -> None:
        self.program, self.folder = program, folder
        self.tried = dict([*enumerate(spellings())][::step])

    @property
    def existing(self) -> list[str]:
        """The names of the topics that exist before."""
        return [f"old-{number}" for number in self.tried]

    def declare(self, numbers: set[int]) -> None:
        """Write the topics of these spellings, those of each spelling into a file of its own."""
        for old in self.folder.glob("spelling-*.yaml"):
            old.unlink()
        for number in sorted(numbers):
            key, text, _ = self.tried[number]
            scalars = json.dumps(text), text if re.fullmatch(r"[\w.+-]+", text, re.ASCII) else json.dumps(text)
            shape = "partitions: 1, replicationFactor: 1"
            documents = [
                document("Topic", f"{prefix}{number}", f"{{{shape}, config: {{{key}: {scalar}}}}}")
                for prefix, scalar in zip(self.prefixes, scalars, strict=True)
            ]
            (self.folder / f"spelling-{number}.yaml").write_text("---\n".join(documents), "utf-8")

    def refused_by(self, verb: str) -> set[int]:
        """Return the numbers of the spellings that a verb refuses, each with file, line and column."""
        ended = self.program(verb)
        refusals = (line for line in (ended.out + ended.err).splitlines() if "refuse" in line or "(KR1" in line)
        found = {int(place[1]) for line in refusals if (place := re.match(r".*spelling-(\d+)\.yaml:\d+:\d+: ", line))}
        assert (ended.code, bool(found)) in {(0, False), (1, True)}, ended
        return found

    def made(self) -> set[int]:
        """Refuse, plan and apply all spellings; return the numbers of those applied, whose plan afterwards is empty."""
        left = {*self.tried}
        for verb in ("validate", "plan"):
            self.declare(left)
            left -= self.refused_by(verb)
        self.declare(left)
        assert (ended := self.program("plan", "--out", "plan.json")).code == 0, ended
        assert (ended := self.program("apply", "plan.json", "--yes")).code == 0, ended
        for look in ("plan", "diff"):
            assert (ended := self.program(look, "--detailed-exitcode")).code == 0, ended
        return left

    def wrong(self, applied: set[int], overrides: Callable[[str], Mapping[str, str]]) -> list[str]:
        """Return what is not as recorded: an override, or a refusal of what Kafka takes, a sign aside."""
        found = []
        for number, spelling in self.tried.items():
            if number not in applied and spelling.shown is not None and not is_signed(spelling):
                found.append(f"{spelling} is refused")
            for name in [f"{prefix}{number}" for prefix in self.prefixes if number in applied]:
                value = overrides(name).get(spelling.key)
                if spelling.shown is None or not spelling.is_shown_as(value):
                    found.append(f"{spelling} is {value} on {name}")
        return found


def is_signed(spelling: Spelling) -> bool:
    """Whether Kafka takes it and files do not: times and sizes have no sign there but that of -1 and -2."""
    return spelling.key in TIMES_AND_SIZES and spelling.text.startswith("+")
