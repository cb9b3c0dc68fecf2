"""Prints what an import wrote, as text for people and as JSON for programs; schema `schemas/import.json`."""

from collections.abc import Iterator, Sequence

from reconciler.model.desired import BalanceTarget, Even, Placement, Within
from reconciler.model.imported import Deviation, Imported
from reconciler.model.problem import Problem
from reconciler.model.words import MANY, counted, named_some, percent
from reconciler.render.as_json import document
from reconciler.render.escape import visible

FORMAT_VERSION = "1.0"


def summary(made: Imported) -> list[str]:
    """Return the import in a few lines: what was written, which rules hold, what the next step is."""
    topics = made.adopted.topics
    partitions = sum(topic.partitions or 0 for topic in topics.values())
    counts = (
        f"{counted(len(topics), 'topic')}, {counted(partitions, 'partition')}, "
        f"{counted(len(made.adopted.classes), 'class', 'classes')}, {counted(len(made.files), 'file')}"
    )
    lines = [f"Wrote {visible(made.folder)}: {counts}."]
    if made.source != "files":
        lines.append(f"Kept today: {'; '.join([*_racks(made), *_factors(made), *_balance(made)])}.")
    if made.is_plan_empty:
        lines.append("A plan of these files is empty.")
    return lines


def _racks(made: Imported) -> Iterator[str]:
    spreads = [topic.placement.racks_spread for topic in made.adopted.topics.values()]
    for spread in sorted({each.value for each in spreads if each is not None}):
        yield f"racks {spread} by {sum(each == spread for each in spreads)} of {counted(len(spreads), 'topic')}"


def _factors(made: Imported) -> Iterator[str]:
    factors = [topic.replication_factor for topic in made.adopted.topics.values()]
    found = sorted({each for each in factors if each is not None}, reverse=True)
    if found:
        yield "replicationFactor " + ", ".join(f"{each} by {factors.count(each)}" for each in found)


def _balance(made: Imported) -> Iterator[str]:
    found = [f"{name} {_target(target)}" for name, target in _measures(made) if _target(target) != "off"]
    words = "balance of " + ", ".join(found) if found else "no balance"
    stays = " (not written: cluster.yaml was there, and stays)" if found and made.is_cluster_file_kept else ""
    yield words + stays


def _measures(made: Imported) -> Sequence[tuple[str, BalanceTarget]]:
    return [("replicas", made.kept.replicas), ("leaders", made.kept.leaders), ("topics", made.kept.topics)]


def _target(target: BalanceTarget) -> str:
    match target:
        case Even():
            return "even"
        case Within(fraction):
            return f"within {percent(fraction)}"
        case _:
            return "off"


def deviations(made: Imported) -> list[str]:
    """Return what could not be written as a rule has it, one line for what is alike, with its code."""
    alike: dict[tuple[str, str], list[Deviation]] = {}
    for each in made.adopted.deviations:
        alike.setdefault((each.code, each.message if each.topic is None else ""), []).append(each)
    return [_line(code, found) for (code, _), found in sorted(alike.items())]


def _line(code: str, found: Sequence[Deviation]) -> str:
    first = found[0]
    said = f"{visible(first.message)} ({code})"
    if first.topic is None:
        return f"warning: {said}"
    names = [visible(each.topic or "") for each in found]
    if len(found) == 1:
        out = "left out: " if first.is_left_out else ""
        return f"warning: topic {names[0]}: {out}{said}"
    out = "are left out" if first.is_left_out else "are written as they are"
    return f"warning: {len(names)} topics {out}: {named_some(names, MANY)}; such as {names[0]}: {said}"


def imported_json(made: Imported) -> str:
    """Return all of it; lists of topics are whole."""
    adopted = made.adopted
    return document(
        {
            "formatVersion": FORMAT_VERSION,
            "cluster": made.cluster,
            "folder": made.folder,
            "source": made.source,
            "files": list(made.files),
            "isClusterFileKept": made.is_cluster_file_kept,
            "isPlanEmpty": made.is_plan_empty,
            "topics": len(adopted.topics),
            "partitions": sum(topic.partitions or 0 for topic in adopted.topics.values()),
            "ignored": made.ignored,
            "leftOut": sorted(adopted.left_out),
            "classes": [
                {
                    "name": each.name,
                    "topics": sorted(name for name, found in adopted.class_of.items() if found == each.name),
                    "replicationFactor": each.replication_factor,
                    "racks": _racks_json(each.placement),
                    "config": dict(each.config),
                }
                for each in adopted.classes
            ],
            "balance": {name: _target(target) for name, target in _measures(made)},
            "exceptions": [
                {"code": each.code, "topic": each.topic, "message": each.message, "isLeftOut": each.is_left_out}
                for each in adopted.deviations
            ],
            "warnings": [_warning(each) for each in made.warnings],
        }
    )


def _racks_json(placement: Placement) -> dict[str, object]:
    return {
        "spread": placement.racks_spread.value if placement.racks_spread else None,
        "only": sorted(placement.racks_only) if placement.racks_only is not None else None,
        "leader": sorted(placement.racks_leader) if placement.racks_leader is not None else None,
    }


def _warning(problem: Problem) -> dict[str, object]:
    at = problem.at
    return {
        "code": problem.code,
        "message": problem.message,
        "file": at.file if at else None,
        "line": at.line if at else None,
        "column": at.column if at else None,
    }
