"""Prints what an import wrote, as text for people."""

from collections.abc import Iterator, Sequence

from reconciler.model.imported import Deviation, Imported
from reconciler.model.words import MANY, counted, named_some
from reconciler.render.escape import visible


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
    found = [f"{name} {target}" for name, target in made.targets.items() if target != "off"]
    words = "balance of " + ", ".join(found) if found else "no balance"
    stays = " (not written: cluster.yaml was there, and stays)" if found and made.is_cluster_file_kept else ""
    yield words + stays


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
