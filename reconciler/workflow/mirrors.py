"""Puts the topics that mirrors ask for among the declared ones: reads the source's files, and the source or a snapshot.

Files of other clusters are read as far as they can be understood: what is wrong with them is told where they are meant.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from reconciler.admin.port import Admin, ProgressHook
from reconciler.diff.mirror_growth import after_copies, ahead_of_source
from reconciler.diff.mirror_loops import loops
from reconciler.diff.mirrors import Copy, Sources, copies, source_topics, with_copies
from reconciler.model.change import CreatePartitions, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster, DesiredMirror
from reconciler.model.plan import MirrorSource
from reconciler.model.problem import InvalidInput, Problem, ReconcilerError, first_line
from reconciler.model.words import in_brackets
from reconciler.workflow.inputs import Inputs, NotNamed, cluster_names
from reconciler.workflow.sources import cluster_admin

NO_SOURCE, UNREAD, OTHER_CLUSTER = "KR117", "KR232", "KR233"


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What is declared, with the copies that mirrors want; these, by name; and what they were made from."""

    desired: Desired
    copies: Mapping[str, Sequence[Copy]] = field(default_factory=dict)
    sources: tuple[MirrorSource, ...] = ()


def with_mirrors(inputs: Inputs, desired: Desired, observed: Cluster, progress: ProgressHook | None = None) -> Mirrored:
    """Return the desired state with the copies that its mirrors want.

    Raises InvalidInput where mirrors cannot be meant, contradict other documents, or where a source cannot be read.
    """
    if not desired.mirrors:
        return Mirrored(desired)
    root, clusters = Path(inputs.root), cluster_names(inputs.root)
    family = _family(root, desired)
    by_files = _by_files(family, clusters)
    problems = tuple(_problems(desired, family, by_files, clusters))
    if problems:
        raise InvalidInput(problems)
    read = {name: read_source(inputs, desired, name, progress) for name in source_names(desired)}
    wanted = copies(desired, {name: source_topics(by_files[name], read[name]) for name in read}, clusters)
    found, problems = with_copies(desired, wanted, observed)
    problems = problems or tuple(_not_meant(desired, found))
    if problems:
        raise InvalidInput(problems)
    sources = tuple(_stood_on(name, cluster, wanted) for name, cluster in read.items())
    return Mirrored(found, wanted, sources)


def file_problems(root: str, desired: Desired) -> Iterator[Problem]:
    """Yield what files alone show to be wrong with a cluster's mirrors: sources, loops, contradictions."""
    if desired.mirrors:
        family, known = _family(Path(root), desired), cluster_names(root)
        yield from _problems(desired, family, _by_files(family, known), known)


def _problems(
    desired: Desired, family: Mapping[str, Desired], by_files: Mapping[str, Desired], known: Sequence[str]
) -> Iterator[Problem]:
    for mirror in desired.mirrors:
        if mirror.source not in known:
            close = get_close_matches(mirror.source, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
            message = f"mirror {mirror.name} copies from {mirror.source}, which is no cluster of this root{hint}"
            yield Problem(NO_SOURCE, message, mirror.at.get("source"))
    own = frozenset(mirror.at.get("") for mirror in desired.mirrors)
    found = [problem for problem in loops({name: each.mirrors for name, each in family.items()}) if problem.at in own]
    yield from found
    if not found:
        yield from with_copies(desired, copies(desired, _topics(by_files), known))[1]


def growth_of_mirrors(
    inputs: Inputs, mirrored: Mirrored
) -> Callable[[Cluster, tuple[TopicChange, ...]], tuple[Problem, ...]]:
    """Return what tells of growing topics which cluster's plan goes first: this one's, or those that copy from it."""
    name = mirrored.desired.cluster.name
    others = cache(lambda: mirrors_of(inputs.root, [each for each in cluster_names(inputs.root) if each != name]))

    def told(_observed: Cluster, changes: tuple[TopicChange, ...]) -> tuple[Problem, ...]:
        is_growing = any(isinstance(change, CreatePartitions) for change in changes)
        after = after_copies(name, changes, others()) if is_growing else ()
        return (*ahead_of_source(mirrored.copies, changes), *after)

    return told


def mirrors_of(root: str, names: Sequence[str]) -> Mapping[str, Sequence[DesiredMirror]]:
    """Return the mirrors of these clusters, by target."""
    from reconciler.files.load import load_mirrors

    return {name: load_mirrors(Path(root), name) for name in names}


def source_names(desired: Desired) -> Sequence[str]:
    """Return the clusters that mirrors copy from."""
    return sorted({mirror.source for mirror in desired.mirrors})


def is_simulated(root: str, cluster: str) -> bool:
    """Return whether that cluster is simulated; a cluster whose document is broken counts as a real one."""
    from reconciler.files.load import load_cluster

    with suppress(InvalidInput):
        return load_cluster(Path(root), cluster).simulation is not None
    return False


def _family(root: Path, desired: Desired) -> Mapping[str, Desired]:
    """Return what is declared of the cluster, of those it copies from, and on through their mirrors."""
    from reconciler.files.load import read_declared

    found, waiting = {desired.cluster.name: desired}, list(source_names(desired))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = Desired(DesiredCluster(name))
            with suppress(InvalidInput):
                found[name] = read_declared(root, name).desired
            waiting += source_names(found[name])
    return found


def _topics(family: Mapping[str, Desired]) -> Sources:
    return {name: source_topics(desired, None) for name, desired in family.items()}


def _by_files(family: Mapping[str, Desired], clusters: Sequence[str]) -> Mapping[str, Desired]:
    """Return the same with the copies of declared topics, over as many clusters as a topic goes through.

    So what is to grow at the first of them grows at the last.
    """
    reached = family
    for _ in family:
        sources, before = _topics(reached), reached
        reached = {name: with_copies(each, copies(each, sources, clusters))[0] for name, each in family.items()}
        if reached == before:
            break
    return reached


def read_source(
    inputs: Inputs,
    desired: Desired,
    name: str,
    progress: ProgressHook | None = None,
    beside: Callable[[Admin, Cluster], object] | None = None,
) -> Cluster:
    """Return the source as its snapshot has it or, where none is named, as it shows itself now.

    `beside` is called with a source that shows itself: it may ask for more. Raises InvalidInput where the source cannot
    be read.
    """
    from reconciler.files.load import load_cluster
    from reconciler.files.snapshot import read_snapshot

    mirror = next(each for each in desired.mirrors if each.source == name)
    file = source_state(inputs, desired, name)
    declared = None
    with suppress(InvalidInput):
        declared = load_cluster(Path(inputs.root), name)
    if file is not None:
        observed = read_snapshot(file)
    else:
        own = replace(inputs, cluster=name, state=None, client=None, bootstrap_server=None)
        try:
            with cluster_admin(own, Desired(load_cluster(Path(inputs.root), name))) as admin:
                observed = admin.observe(progress=progress)
                if beside is not None:
                    beside(admin, observed)
        except ReconcilerError as error:
            message = f"mirror {mirror.name} copies from {name}, which cannot be read: {first_line(error)}"
            way_out = f"make it reachable, or name a snapshot of {name} with --source-state FILE"
            raise InvalidInput([Problem(UNREAD, f"{message}; {way_out}", mirror.at.get("source"))]) from error
    if declared is not None and declared.cluster_id not in {None, observed.cluster_id}:
        message = f"{name} declares clusterId {declared.cluster_id}{in_brackets(declared.cluster_id_at)}"
        message += f", and what was read for mirror {mirror.name} is {observed.cluster_id}: name a snapshot of {name}"
        raise InvalidInput([Problem(OTHER_CLUSTER, message, mirror.at.get("source"))])
    return observed


def source_state(inputs: Inputs, desired: Desired, name: str) -> str | None:
    """Return the snapshot that is named for that source; a file without a name is of the only source."""
    names = source_names(desired)
    for given in inputs.source_states:
        source, sign, file = given.partition("=")
        if sign and source in names:
            if source == name:
                return file
        elif len(names) > 1:
            raise NotNamed(f"mirrors copy from {', '.join(names)}: say whose --source-state it is: NAME={given}")
        else:
            return given
    return None


def _not_meant(desired: Desired, found: Desired) -> Iterator[Problem]:
    """Yield what files that declared the copies would be refused for: their names, above all."""
    from reconciler.files.semantics import semantic_problems

    known = set(semantic_problems(desired))
    yield from (problem for problem in semantic_problems(found) if problem not in known)


def _stood_on(name: str, cluster: Cluster, wanted: Mapping[str, Sequence[Copy]]) -> MirrorSource:
    said = [
        [copy, each.topic, each.source.partitions, dict(each.followed)]
        for copy, asked in wanted.items()
        for each in asked
        if each.mirror.source == name
    ]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    return MirrorSource(name, cluster.cluster_id, digest, cluster.observed_at)
