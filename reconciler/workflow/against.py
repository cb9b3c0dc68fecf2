"""`diff --against`: reads two clusters, and what MirrorMaker 2 has written down between them, and compares them.

What MirrorMaker 2 wrote is read first and the ends of logs last, so that no offset lies behind an end that was seen.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from reconciler.admin.port import EARLIEST, LATEST, Admin, ProgressHook
from reconciler.diff.against import MirrorMaker, Seen, compared_groups, compared_topics, pairs
from reconciler.diff.mirror_offsets import ForeignRecord, SyncHistory, Syncs, checkpoint, offset_sync
from reconciler.model.against import Checkpoint, Comparison, OffsetSync, RecordsRead, Side
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster
from reconciler.model.problem import ClusterUnavailable, InvalidInput, MissingRight, Problem, first_line, warning
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import counted, few, in_brackets
from reconciler.workflow.inputs import Inputs, NotNamed, cluster_name, cluster_names
from reconciler.workflow.mirrors import OTHER_CLUSTER, UNREAD
from reconciler.workflow.sources import cluster_admin, declared_as_far

logger = logging.getLogger(__name__)

NO_MIRROR, OFFSETS_UNKNOWN, FOREIGN = "KR236", "KR237", "KR238"
OFFSET_SYNCS, CHECKPOINTS = "mm2-offset-syncs.{}.internal", "{}.checkpoints.internal"
_TRIES = 50
"""How often in a row a partition may answer with nothing before its end; a broker takes a tenth of a second each."""
_SYNCS_BEGIN = "mm2-offset-syncs"
_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"

Record = TypeVar("Record")
Parse = Callable[[bytes | None, bytes], Record]


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two: what is declared of it, and the cluster itself or a snapshot of it."""

    declared: DesiredCluster
    read: Admin | Cluster
    is_source: bool

    @property
    def name(self) -> str:
        return self.declared.name

    def asked(self) -> AbstractContextManager[None]:
        """Say within the block which of the two cannot be read, where it is not the cluster that was named first."""
        return _told_as_unread(self.name) if self.is_source else nullcontext()


def compare_clusters(inputs: Inputs, against: str, *, progress: ProgressHook | None = None) -> Comparison:
    """Return both clusters side by side: `against` is the one that is copied from.

    Files of topics may be in any state: of the target's files, the Cluster document and the mirrors are read.
    """
    names, own = cluster_names(inputs.root), cluster_name(inputs)
    _check_names(own, against, names)
    from reconciler.files.load import load_cluster, load_mirrors

    root, (desired, wrong) = Path(inputs.root), declared_as_far(inputs, own)
    if desired is None or wrong is not None:
        desired = Desired(load_cluster(root, own), mirrors=load_mirrors(root, own))
        logger.warning("mirrors are taken as far as they can be read: %s", wrong)
    of_source = replace(inputs, cluster=against, state=_state_of(inputs, against), client=None, bootstrap_server=None)
    with ExitStack() as stack:
        target = _opened(stack, inputs, desired.cluster, is_source=False)
        with _told_as_unread(against):
            source = _opened(stack, of_source, load_cluster(root, against), is_source=True)
        return _compared(source, target, desired, names, progress)


@contextmanager
def _told_as_unread(source: str) -> Iterator[None]:
    """Say which of the two clusters cannot be read."""
    try:
        yield
    except (ClusterUnavailable, MissingRight) as error:
        message = f"{source}, to compare with, cannot be read: {first_line(error)}"
        way_out = f"make it reachable, or name a snapshot of {source} with --source-state FILE"
        raise InvalidInput([Problem(UNREAD, f"{message}; {way_out}")]) from error


def _check_names(own: str, against: str, names: Sequence[str]) -> None:
    known = f"known are {', '.join(names)}"
    if against == own:
        raise NotNamed(f"--against names {against}, the cluster itself: name another one; {known}")
    for option, name in (("--cluster", own), ("--against", against)):
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else known
            raise NotNamed(f"{option} names {name}, which is no cluster of this root; {hint}")


def _state_of(inputs: Inputs, source: str) -> str | None:
    """Return the snapshot that is named for the source; one without a name is its own."""
    for given in inputs.source_states:
        name, sign, file = given.partition("=")
        if not sign:
            return given
        if name == source:
            return file
    return None


def _opened(stack: ExitStack, inputs: Inputs, declared: DesiredCluster, *, is_source: bool) -> _Side:
    if inputs.state is None:
        return _Side(declared, stack.enter_context(cluster_admin(inputs, Desired(declared))), is_source)
    from reconciler.files.snapshot import read_snapshot

    return _Side(declared, read_snapshot(inputs.state), is_source)


def _compared(
    source: _Side, target: _Side, desired: Desired, names: Sequence[str], progress: ProgressHook | None
) -> Comparison:
    told, of_syncs, of_checkpoints = _mirror_maker(source, target, progress)
    there, here = _observed(target, progress), _observed(source, progress)
    found = pairs(desired, here, there, source.name, names)
    if told.is_without_syncs:
        told = _with_other_names(told, source, target, here, there)
        of_syncs = replace(of_syncs, unknown=told.why_no_syncs)
    # The target first: what is copied meanwhile makes the lag larger than it is, and never smaller.
    seen_target = _seen(target, there, {pair.copy for pair in found})
    seen_source = _seen(source, here, {pair.topic for pair in found})
    mirrors = tuple(sorted(each.name for each in desired.mirrors if each.source == source.name))
    warnings = _warnings(source, target, told, (of_syncs, of_checkpoints), has_mirror=bool(mirrors))
    return Comparison(
        Side(source.name, here.cluster_id, here.observed_at),
        Side(target.name, there.cluster_id, there.observed_at),
        mirrors,
        of_syncs,
        of_checkpoints,
        tuple(compared_topics(found, seen_source, seen_target, told)),
        compared_groups(found, seen_source, seen_target, told),
        tuple(warnings),
    )


def _mirror_maker(
    source: _Side, target: _Side, progress: ProgressHook | None
) -> tuple[MirrorMaker, RecordsRead, RecordsRead]:
    """Return what MirrorMaker 2 has written down of copying from source to target, and what was read of it."""
    checkpoints: dict[tuple[str, TopicPartition], Checkpoint] = {}

    def keep(one: Checkpoint) -> None:
        checkpoints[one.group_id, one.copy] = one

    of_checkpoints = _read(target, CHECKPOINTS.format(source.name), checkpoint, keep, progress)
    # Only whoever copies writes checkpoints to where it copies to: they tell the two directions apart.
    is_this_way = _has(target, CHECKPOINTS.format(source.name))
    is_other_way = _has(source, CHECKPOINTS.format(target.name))
    syncs, of_syncs = _offset_syncs(source, target, progress, is_this_way=is_this_way, is_other_way=is_other_way)
    # Whoever writes checkpoints has offset syncs: not to see them is no reason to compare offsets as they are.
    is_without = of_syncs.unknown == _no_syncs(source, target) and not is_this_way
    told = MirrorMaker(
        syncs if of_syncs.unknown is None else None,
        checkpoints if of_checkpoints.unknown is None else None,
        of_syncs.unknown or "",
        is_without,
    )
    return told, of_syncs, of_checkpoints


def _offset_syncs(
    source: _Side, target: _Side, progress: ProgressHook | None, *, is_this_way: bool, is_other_way: bool
) -> tuple[Syncs, RecordsRead]:
    """Return the offset syncs: they are on the source or, with `offset-syncs.topic.location=target`, on the target.

    A topic of the same name may hold those of the other direction, wherever these are kept.
    """
    on_source, on_target = OFFSET_SYNCS.format(target.name), OFFSET_SYNCS.format(source.name)
    syncs: dict[TopicPartition, SyncHistory] = {}

    def take(one: OffsetSync) -> None:
        syncs.setdefault(one.topic_partition, SyncHistory()).take(one)

    is_there = _has(source, on_source)
    if is_there and is_other_way and not is_this_way:
        return {}, _unread(
            f"{on_source} of {source.name} may tell of copying the other way: {_no_checkpoints(source, target)}"
        )
    if is_there:
        return syncs, _read(source, on_source, offset_sync, take, progress)
    if not _has(target, on_target):
        return {}, _unread(_no_syncs(source, target))
    if is_other_way or not is_this_way:
        return {}, _unread(
            f"{on_target} of {target.name} may tell of copying the other way, and {_missing(source, on_source)}"
        )
    return syncs, _read(target, on_target, offset_sync, take, progress)


def _has(side: _Side, topic: str) -> bool:
    with side.asked():
        return topic in (side.read.topics if isinstance(side.read, Cluster) else side.read.topics([topic]))


def _no_syncs(source: _Side, target: _Side) -> str:
    on_source, on_target = OFFSET_SYNCS.format(target.name), OFFSET_SYNCS.format(source.name)
    return f"{_missing(source, on_source)}; {_missing(target, on_target)}"


def _no_checkpoints(source: _Side, target: _Side) -> str:
    return _missing(target, CHECKPOINTS.format(source.name))


def _missing(side: _Side, topic: str) -> str:
    return f"{side.name} has no topic {topic}"


def _read(
    side: _Side, topic: str, parse: Parse[Record], keep: Callable[[Record], None], progress: ProgressHook | None
) -> RecordsRead:
    """Hand each record of that topic to `keep`; MirrorMaker 2 writes to its partition 0 alone."""
    if isinstance(side.read, Cluster):
        return _unread(f"{side.name} was read from a snapshot, which holds no records")
    taken = foreign = 0
    try:
        if not _has(side, topic):
            return _unread(_missing(side, topic))
        for key, value in records_of(side.read, TopicPartition(topic, 0), progress):
            try:
                keep(parse(key, value))
                taken += 1
            except ForeignRecord:
                foreign += 1
    except (MissingRight, ClusterUnavailable) as error:
        return _unread(f"{topic} of {side.name} cannot be read: {first_line(error)}")
    return RecordsRead(side.name, topic, taken, foreign, None)


def _unread(why: str) -> RecordsRead:
    return RecordsRead(None, None, 0, 0, why)


def records_of(
    admin: Admin, key: TopicPartition, progress: ProgressHook | None, last: int | None = None
) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield key and value of each record from the log's beginning to where it ends now; `last`: of so many offsets."""
    begin, end = (admin.log_offsets([key], at).get(key) for at in (EARLIEST, LATEST))
    if begin is None or end is None:
        raise ClusterUnavailable(f"No leader tells where {key} begins and ends")
    begin = begin if last is None else max(begin, end - last)
    position, tries = begin, 0
    while position < end:
        told = admin.records({key: position}).get(key)
        if told is not None and told.error == _OUT_OF_RANGE:
            position = max(position, admin.log_offsets([key], EARLIEST).get(key) or 0)
        if told is None or told.error is not None or told.next_offset <= position:
            tries += 1
            if tries >= _TRIES:
                answer = told.error if told is not None and told.error is not None else "nothing"
                raise ClusterUnavailable(f"Its leader answers with {answer} at offset {position} of {end}")
            continue
        tries = 0
        yield from ((name, value) for name, (_, value) in zip(told.keys, told.values, strict=True))
        position = told.next_offset
        if progress is not None:
            progress(key.topic, min(position, end) - begin, end - begin)


def _observed(side: _Side, progress: ProgressHook | None) -> Cluster:
    with side.asked():
        found = side.read if isinstance(side.read, Cluster) else side.read.observe(has_groups=True, progress=progress)
    if side.declared.cluster_id not in {None, found.cluster_id}:
        message = f"{side.name} declares clusterId {side.declared.cluster_id}{in_brackets(side.declared.cluster_id_at)}"
        raise InvalidInput([Problem(OTHER_CLUSTER, f"{message}, and what was read of it is {found.cluster_id}")])
    return found


def _seen(side: _Side, observed: Cluster, names: Collection[str]) -> Seen:
    """Return the cluster with where the logs of these topics begin and end now: behind all that was read before."""
    if isinstance(side.read, Cluster):
        return Seen(observed)
    keys = [
        TopicPartition(name, partition.partition)
        for name in sorted(names)
        if name in observed.topics
        for partition in observed.topics[name].partitions
    ]
    with side.asked():
        return Seen(observed, side.read.log_offsets(keys, EARLIEST), side.read.log_offsets(keys, LATEST))


def _with_other_names(told: MirrorMaker, source: _Side, target: _Side, here: Cluster, there: Cluster) -> MirrorMaker:
    """Return the same; where other offset syncs are there, they may be those that were looked for: their names say."""
    found = [
        f"{topic} of {side.name}"
        for side, observed in ((source, here), (target, there))
        for topic in sorted(observed.topics)
        if topic.startswith(_SYNCS_BEGIN)
    ]
    if not found:
        return told
    names = "MirrorMaker 2's names of the clusters must be those of the root"
    why = f"{told.why_no_syncs}, but there is {few(found)}: {names}"
    return replace(told, why_no_syncs=why, is_without_syncs=False)


def _warnings(
    source: _Side, target: _Side, told: MirrorMaker, read: Sequence[RecordsRead], *, has_mirror: bool
) -> Iterator[Problem]:
    if not has_mirror:
        message = f"no mirror of {target.name} copies from {source.name}: topics of equal name are compared"
        yield warning(NO_MIRROR, f"{message}, and where their offsets lie is not known")
        return
    if told.syncs is None:
        instead = "offsets are compared where both logs begin at 0" if told.is_without_syncs else "lags are not known"
        yield warning(OFFSETS_UNKNOWN, f"no offset syncs of MirrorMaker 2 were read: {told.why_no_syncs}; {instead}")
    if told.checkpoints is None:
        instead = f"groups go on by what they have committed on {target.name}, or by offset syncs"
        yield warning(OFFSETS_UNKNOWN, f"no checkpoints of MirrorMaker 2 were read: {read[1].unknown}; {instead}")
    for each in read:
        if each.foreign:
            some = counted(each.foreign, "record")
            message = f"{some} of {each.topic} of {each.cluster} are not MirrorMaker 2's, and passed over"
            yield warning(FOREIGN, message)
