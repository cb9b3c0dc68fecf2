"""Names the searches: a plan, and what may happen to it, kind by kind, as in `moves death+kill` or `factors 2 kill`."""

from exhaustive.cases import CASES
from exhaustive.environment import DEATH, FAULT, KILL, KINDS, OTHERS, SHRINK, STALE, Bounds
from exhaustive.search import Report, Search

NOTHING = "nothing"


def bounds_of(what: str) -> Bounds:
    """Return what may happen; of each kind named once, or as often as its number says."""
    kinds: dict[str, int] = {}
    for part in [] if what == NOTHING else what.split("+"):
        number, _, kind = part.rpartition(" ")
        assert kind in KINDS, f"{kind} is none of {KINDS}"
        kinds[kind] = int(number or 1)
    return Bounds(sum(kinds.values()), kinds)


def searched(name: str, most_states: int | None = None) -> Report:
    """Return what a search found."""
    case, _, what = name.partition(" ")
    return Search(CASES[case], bounds_of(what), most_states).run()


def told(name: str, report: Report) -> str:
    """Return what was visited, in words."""
    ends = ", ".join(f"{end or 'under way'} {count:,}" for end, count in sorted(report.ends.items()))
    counts = f"{report.states:,} states, {report.transitions:,} transitions, {report.depth} deep"
    return f"{name}: {counts}; ends: {ends}"


def _named(*whats: str) -> tuple[str, ...]:
    return tuple(f"{case} {what}" for case in CASES for what in whats)


QUICK = _named(NOTHING)
LONG = (*(f"factors {what}" for what in (STALE, KILL, FAULT)), f"moves {KILL}")
ONE_EACH = _named(NOTHING, KILL, FAULT, STALE, SHRINK, OTHERS, DEATH)
"""One thing of each kind, the smallest search first."""
PAIRS = (
    *_named("stale+kill", "fault+kill", "fault+stale", "shrink+kill"),
    *(f"factors {what}" for what in ("shrink+fault", "stale+shrink", "others+kill", "others+stale", "others+fault")),
)
"""Two things of two kinds, as far as that takes ten CPU minutes together: see decision 23."""
