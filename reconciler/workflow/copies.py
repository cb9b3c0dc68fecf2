"""Looks at the copies that mirrors declare, and at their topics in the clusters they copy from, for a doctor.

Files are read as far as they can be understood; a source that cannot be read is a finding, and hides no other.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from reconciler.admin.port import LATEST, Admin, ProgressHook
from reconciler.diff.doctor.copies import (
    Behind,
    MadeAgain,
    Pair,
    Parts,
    Times,
    behind,
    findings,
    longer,
    made_again,
    not_told,
    parts_of,
)
from reconciler.diff.mirror_loops import loops
from reconciler.diff.mirror_offsets import ForeignRecord, offset_sync
from reconciler.diff.mirrors import copies, source_topics
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster
from reconciler.model.diagnosis import Finding
from reconciler.model.problem import ClusterUnavailable, InvalidInput, MissingRight, Problem, Severity, first_line
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import counted, in_brackets
from reconciler.workflow.against import CHECKPOINTS, OFFSET_SYNCS, records_of
from reconciler.workflow.inputs import Inputs, cluster_names
from reconciler.workflow.mirrors import mirrors_of, read_source, source_names, source_state

PAUSE_SECONDS = 5
"""Between two looks at what may stand still: MirrorMaker 2 polls each second, and writes at once."""

MOST_SYNCS = 200_000
"""Of MirrorMaker 2's offset syncs so many are read, the last ones: of all partitions together there may be millions."""


@dataclass(slots=True)
class CopiesSeen:
    """What is wrong with copies, and what could not be looked at."""

    findings: list[Finding] = field(default_factory=list)
    unexamined: list[str] = field(default_factory=list)


def look_at_copies(
    inputs: Inputs, cluster: DesiredCluster, here: Cluster, admin: Admin | None, progress: ProgressHook | None = None
) -> CopiesSeen:
    """Return what is found of the copies in that cluster; without `admin`, of snapshots alone."""
    seen = CopiesSeen()
    mirrors = mirrors_of(inputs.root, [cluster.name])
    if not mirrors[cluster.name]:
        return seen
    desired = Desired(cluster, mirrors=tuple(mirrors[cluster.name]))
    declared = {**mirrors_of(inputs.root, cluster_names(inputs.root)), **mirrors}
    places = {mirror.at.get("") for mirror in desired.mirrors}
    seen.findings += [_told(problem) for problem in loops(declared) if problem.at in places]
    for name in source_names(desired):
        is_given = source_state(inputs, desired, name) is not None
        if admin is None and not is_given:
            seen.unexamined.append(f"copies of topics of {name}: name a snapshot of it with --source-state")
            continue
        try:
            _look_at_source(_Target(inputs, desired, here, admin), name, seen, progress)
        except InvalidInput as error:
            if is_given:
                raise
            seen.findings += map(_told, error.problems)
    return seen


@dataclass(frozen=True, slots=True)
class _Target:
    """The cluster that is copied to."""

    inputs: Inputs
    desired: Desired
    here: Cluster
    admin: Admin | None


def _look_at_source(target: _Target, name: str, seen: CopiesSeen, progress: ProgressHook | None) -> None:
    """Add what is found of the copies of one source's topics."""
    newest: dict[TopicPartition, int | None] = {}
    again: list[MadeAgain] = []

    def ask(source: Admin, there: Cluster) -> None:
        parts = parts_of(_pairs(target, name, there), there, target.here)
        with _noted(f"how new records of {name} are", seen):
            newest.update(source.newest_records({each.topic for each in parts}))
        with _noted(f"whether topics of {name} were made again", seen):
            again.extend(_made_again(target, (name, source, there), parts, seen))

    there = read_source(target.inputs, target.desired, name, progress, ask)
    pairs = _pairs(target, name, there)
    missing = {pair.copy for pair in pairs if pair.copy not in target.here.topics}
    hidden = target.admin.rights(sorted(missing)).hidden if target.admin is not None and missing else frozenset[str]()
    if hidden:
        seen.unexamined.append(f"{counted(len(hidden), 'copy', 'copies')} of topics of {name}: a right is missing")
    still = _standing_still(target, name, parts_of(pairs, there, target.here), newest, seen)
    seen.findings += findings(name, pairs, there, target.here, hidden=hidden, still=still, again=again)


def _made_again(
    target: _Target, of_source: tuple[str, Admin, Cluster], parts: Sequence[Parts], seen: CopiesSeen
) -> Sequence[MadeAgain]:
    """Return the partitions of topics that are shorter than what was copied of them, as far as offset syncs tell."""
    source_name, source, there = of_source
    if target.admin is None:
        return ()
    here = target.admin.log_offsets([each.copy for each in parts], LATEST)
    suspects = longer(parts, source.log_offsets([each.topic for each in parts], LATEST), here)
    if not suspects:
        return ()
    name, syncs, checkpoints = target.desired.cluster.name, OFFSET_SYNCS.format, CHECKPOINTS.format
    if checkpoints(name) in there.topics:
        # Where topics are copied back, too, offset syncs of both ways may have one name, and none is proof.
        seen.unexamined.append(f"whether topics of {source_name} were made again: offset syncs may be of the other way")
        return ()
    copied: Mapping[TopicPartition, int] = {}
    if syncs(name) in there.topics:
        copied = _copied(source, syncs(name))
    elif checkpoints(source_name) in target.here.topics and syncs(source_name) in target.here.topics:
        copied = _copied(target.admin, syncs(source_name))
    return made_again(suspects, copied, source.log_offsets([each.topic for each in suspects], LATEST))


def _copied(admin: Admin, topic: str) -> Mapping[TopicPartition, int]:
    """Return the offset of the last record of each partition that an offset sync of MirrorMaker 2 tells as copied."""
    found: dict[TopicPartition, int] = {}
    for key, value in records_of(admin, TopicPartition(topic, 0), None, MOST_SYNCS):
        with suppress(ForeignRecord):
            sync = offset_sync(key, value)
            found[sync.topic_partition] = sync.upstream
    return found


def _pairs(target: _Target, name: str, there: Cluster) -> Sequence[Pair]:
    """Return the copies that mirrors want of topics that this source has now, whatever its files want of them."""
    sources = {name: source_topics(Desired(DesiredCluster(name)), there)}
    wanted = copies(target.desired, sources, cluster_names(target.inputs.root))
    return sorted({Pair(copy, each.topic) for copy, asked in wanted.items() for each in asked})


def _standing_still(
    target: _Target, name: str, parts: Sequence[Parts], there: Times, seen: CopiesSeen
) -> Sequence[Behind]:
    """Return the partitions of copies that are behind, and get nothing while one looks."""
    copied = sorted({each.copy for each in parts})
    if target.admin is None or not there:
        if parts:
            seen.unexamined.append(f"whether copies of topics of {name} stand still: nobody tells how new records are")
        return ()
    with _noted(f"whether copies of topics of {name} stand still", seen):
        here, ends = target.admin.newest_records(copied), target.admin.log_offsets(copied, LATEST)
        found = behind(parts, there, here, ends, int(target.admin.clock.now().timestamp() * 1000))
        unknown = not_told(parts, there, here, ends)
        if unknown:
            what = f"whether {counted(unknown, 'partition')} of copies of topics of {name} stand still"
            seen.unexamined.append(f"{what}: they hold no records now, or nobody tells how new these are")
        if found:
            target.admin.clock.sleep(PAUSE_SECONDS)
            later = target.admin.log_offsets([each.parts.copy for each in found], LATEST)
            return [each for each in found if later.get(each.parts.copy) == ends.get(each.parts.copy)]
    return ()


@contextmanager
def _noted(what: str, seen: CopiesSeen) -> Iterator[None]:
    """Keep why something could not be looked at, and go on."""
    try:
        yield
    except MissingRight:
        seen.unexamined.append(f"{what}: a right is missing")
    except ClusterUnavailable as error:
        seen.unexamined.append(f"{what}: {first_line(error)}")


def _told(problem: Problem) -> Finding:
    return Finding(problem.code, Severity.WARNING, f"{problem.message}{in_brackets(problem.at)}")
