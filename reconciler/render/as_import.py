"""Prints what an import wrote, as text for people."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from reconciler.model.imported import Deviation, FileChange, Imported
from reconciler.model.words import MANY, counted, named_some
from reconciler.render.escape import visible


def summary(made: Imported) -> list[str]:
    """Return the import in a few lines: what was written, which rules hold, what the next step is."""
    lines = [_headline(made)]
    if made.declared is not None:
        lines += _additions(made)
    elif made.source != "files":
        lines.append(f"Kept today: {'; '.join([*_racks(made), *_factors(made), *_balance(made)])}.")
    if made.is_plan_empty:
        lines.append("A plan of these files is empty.")
    if made.are_schemas_missing:
        lines.append("Editors look for schemas that are not there yet; to write them: reconciler schemas.")
    if made.is_dry:
        lines.append("Nothing was written (--dry-run).")
    return lines


def as_diff(made: Imported) -> str:
    """Return what would be written as a unified diff, the new files against /dev/null."""
    return "".join(line for change in made.changes for line in _diff(made, change))


def _diff(made: Imported, change: FileChange) -> Iterator[str]:
    before, after = (_lines(each) for each in (change.before or b"", change.after))
    name = f"{made.folder}/{change.name}"
    found = unified_diff(before, after, "/dev/null" if change.before is None else name, name)
    yield from (f"{visible(line.rstrip(chr(10)))}\n" for line in found)


def _lines(content: bytes) -> list[str]:
    return [f"{line}\n" for line in content.decode("utf-8", "replace").splitlines()]


def _headline(made: Imported) -> str:
    topics, folder = made.adopted.topics, visible(made.folder)
    if made.declared is not None and not topics:
        return f"Nothing to add to {folder}: {_declared(made)}."
    partitions = sum(topic.partitions or 0 for topic in topics.values())
    counts = f"{counted(len(topics), 'topic')}, {counted(partitions, 'partition')}, "
    if made.adopted.classes or made.declared is None:
        counts += f"{counted(len(made.adopted.classes), 'class', 'classes')}, "
    counts += counted(len(made.files), "file")
    if made.declared is None:
        return f"{'Would write' if made.is_dry else 'Wrote'} {folder}: {counts}."
    return f"{'Would add' if made.is_dry else 'Added'} to {folder}: {counts}; {_declared(made)}."


def _declared(made: Imported) -> str:
    return f"{counted(made.declared or 0, 'topic')} {'is' if made.declared == 1 else 'are'} declared already"


def _additions(made: Imported) -> Iterator[str]:
    """Yield a line for each file that was added to: its topics, by class."""
    for change in made.changes[:MANY]:
        words = [f"class {visible(name)}" for name in change.classes]
        names: dict[str | None, list[str]] = {}
        for each in made.added:
            if each.file == change.name:
                names.setdefault(each.topic_class, []).append(visible(each.topic))
        words += [
            f"{named_some(found, MANY)}{'' if name is None else f' (class {visible(name)})'}"
            for name, found in sorted(names.items(), key=lambda item: item[0] or "")
        ]
        is_new = " (new)" if change.before is None else ""
        yield f"  {visible(change.name)}{is_new}: {'; '.join(words)}"
    if len(made.changes) > MANY:
        yield f"  and {counted(len(made.changes) - MANY, 'more file', 'more files')}"


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
