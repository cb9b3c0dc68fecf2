"""Computes the geometry of stages over time: as wide as it takes, as high as it copies; its area is its bytes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.model.move import DirMove, Move, Reason
from reconciler.model.stage import CopyingStage, TopicsStage
from reconciler.model.words import duration, rate, size
from reconciler.render.facts import stage_title
from reconciler.render.html_charts import BINARY, Mark, axis_top
from reconciler.render.plan_figures import StageFigures

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 1920, 260, 128, 12, 44
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - LEFT - 16, HEIGHT - TOP - BOTTOM
_STEPS = 4
_MOST_LABELS = 12
_GAP, _WIDE = 1.5, 6.0
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_NICE = (
    *(1, 2, 5, 10, 15, 30),
    *(_MINUTE * step for step in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * step for step in (1, 2, 4, 6, 12)),
    *(_DAY * step for step in (1, 2, 5, 10, 20, 50, 100, 1000)),
)
KINDS = {"repair": "repairs", "drain": "draining", "factor": "replication factor", "balance": "balance"}
_KIND_OF = {
    Reason.DRAINING: "drain",
    Reason.REPLICATION_FACTOR: "factor",
    Reason.BALANCE: "balance",
    Reason.LEADERS: "balance",
    Reason.LOG_DIRS: "balance",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A stage of moves, or what it copies for one reason, in the drawing's own units."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A stage that takes no time of its own: topic changes, elections, new orders."""

    x: float
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing; `kinds` are those in it, with their words."""

    summary: str
    blocks: tuple[Block, ...]
    moments: tuple[Moment, ...]
    ticks: tuple[Mark, ...]
    labels: tuple[Mark, ...]
    kinds: tuple[tuple[str, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    floor: int = HEIGHT - BOTTOM


def timeline(stages: Sequence[StageFigures]) -> Timeline | None:
    """Return the drawing of these stages, None where none takes any time."""
    whole = stages[-1].start_seconds + stages[-1].seconds if stages else 0
    rates = [each.bytes / each.seconds for each in stages if each.seconds]
    if not whole or not max(rates):
        return None
    top = axis_top(max(rates), BINARY)
    scale = _PLOT_WIDTH / whole
    blocks = tuple(block for each in stages if each.seconds for block in _blocks(each, scale, top))
    moments = tuple(
        Moment(_x(each.start_seconds, scale), _instant(each), words_of(each)) for each in stages if not each.seconds
    )
    step = next((nice for nice in _NICE if whole / nice <= _MOST_LABELS), _NICE[-1])
    used = {block.kind for block in blocks}
    return Timeline(
        summary=f"{duration(whole)} in all, by the plan's estimates; up to {rate(max(rates))} in all.",
        blocks=blocks,
        moments=moments,
        ticks=tuple(
            Mark(LEFT - 8, _y(top * part / _STEPS, top), rate(top * part / _STEPS)) for part in range(_STEPS + 1)
        ),
        labels=tuple(Mark(_x(at, scale), HEIGHT - 6, _clock(at)) for at in range(0, whole + 1, step)),
        kinds=tuple((kind, words) for kind, words in KINDS.items() if kind in used),
    )


def words_of(each: StageFigures) -> str:
    """Return what a pointer shows of a stage."""
    return f"stage {each.stage.number}: {stage_title(each.stage)}"


def _blocks(each: StageFigures, scale: float, top: float) -> Iterator[Block]:
    """Yield a stage's block, or one on the other where its bytes are for several reasons."""
    parts = _parts(each)
    width = each.seconds * scale
    below = 0.0
    for kind, part in parts:
        floor, below = below, below + part
        low, high = _y(floor / each.seconds, top), _y(below / each.seconds, top)
        yield Block(
            x=_x(each.start_seconds, scale),
            y=high,
            width=round(max(width - _GAP if width > _WIDE else width, 0.4), 2),
            height=round(low - high, 2),
            kind=kind,
            words=f"{words_of(each)}; {KINDS[kind]} {size(part)}" if len(parts) > 1 else words_of(each),
        )


def _parts(each: StageFigures) -> list[tuple[str, int]]:
    """Return the bytes of a stage by what they are for; where it copies none, what most of its moves are for."""
    moves = each.stage.moves if isinstance(each.stage, CopyingStage) else ()
    copied: Counter[str] = Counter()
    for move in moves:
        copied[_kind_of(move)] += move.bytes
    parts = [(kind, copied[kind]) for kind in KINDS if copied[kind]]
    counts = Counter(map(_kind_of, moves))
    return parts or [(min(KINDS, key=lambda kind: (-counts[kind], list(KINDS).index(kind))), each.bytes)]


def _kind_of(move: Move | DirMove) -> str:
    return _KIND_OF.get(move.reason, "repair")


def _instant(each: StageFigures) -> str:
    return "topics" if isinstance(each.stage, TopicsStage) else "order"


def _clock(seconds: int) -> str:
    """Return a time since the start exactly, so that no two labels of an axis read the same."""
    parts = ((seconds // _DAY, "d"), (seconds % _DAY // _HOUR, "h"), (seconds % _HOUR // _MINUTE, "m"))
    told = "".join(f"{count}{unit}" for count, unit in (*parts, (seconds % _MINUTE, "s")) if count)
    return told or "0"


def _x(seconds: float, scale: float) -> float:
    return round(LEFT + seconds * scale, 2)


def _y(value: float, top: float) -> float:
    return round(TOP + _PLOT_HEIGHT * (1 - value / top), 2)
