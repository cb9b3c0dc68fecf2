"""What each verb of the program needs: the most memory and processor time that any of its processes took.

    usage = Usage()
    usage.add("status", reconciler("status", cwd=folder))
    figures("what verbs need", str(usage))

Memory has a bound, since a reader of what others write must not be made to fill it. Processor time is only printed.
"""

from dataclasses import dataclass, field

from helpers.program.warm import Ended

MOST_BYTES = 200 * 10**6
"""A verb's process, with all that the program can load without Spark."""


@dataclass
class Usage:
    """The largest figures of each verb so far."""

    peaks: dict[str, int] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)

    def add(self, verb: str, ended: Ended) -> None:
        """Count a process that has ended; fail where it took more memory than a verb may."""
        assert 0 < ended.peak_bytes <= MOST_BYTES, f"{verb} took {ended.peak_bytes:,} bytes\n{ended.out}\n{ended.err}"
        self.peaks[verb] = max(ended.peak_bytes, self.peaks.get(verb, 0))
        self.times[verb] = max(ended.cpu_seconds, self.times.get(verb, 0.0))

    def __str__(self) -> str:
        rows = (
            f"{verb} {peak / 10**6:.0f} MB and {self.times[verb]:.2f} s" for verb, peak in sorted(self.peaks.items())
        )
        return f"at most {', '.join(rows)} of memory and processor"
