"""`topics list`, `describe` and `key`: topics as they are, of a live cluster or a snapshot; nothing is changed.

Files of topics are read only to tell who declares what, so nothing that is wrong in them stops these verbs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase

from reconciler.admin.port import ProgressHook
from reconciler.diff.compare import other_cluster
from reconciler.diff.topic_facts import not_earlier, topic_facts, untold_readers
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.keys import KeyGrowth, hashes_moved, partition_of
from reconciler.model.problem import InvalidInput, Location, Problem, ReportedProblem, warning
from reconciler.model.topic_report import (
    DescribedTopic,
    DescriptionOfCluster,
    KeyOfCluster,
    ListedTopic,
    ListOfCluster,
    TopicFacts,
)
from reconciler.model.words import named_some
from reconciler.render.escape import MASK, config_value
from reconciler.render.facts import place
from reconciler.workflow.inputs import Inputs, cluster_name, name_meant
from reconciler.workflow.sources import client_cautions, cluster_admin, declared_as_far

NO_SUCH_TOPIC, DECLARED_UNKNOWN, READERS_UNTOLD = "KR206", "KR207", "KR208"


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """The topics of one cluster that were asked for. `name` is None where it is not declared.

    `unmatched`: the patterns that match none of its topics, and where such a topic is declared. `of_client`: what the
    client properties leave open; who connected has told it already.
    """

    name: str | None
    observed: Cluster
    topics: tuple[TopicFacts, ...]
    unmatched: Mapping[str, Location | None] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    of_client: tuple[Problem, ...] = ()

    @property
    def listed(self) -> ListOfCluster:
        """The same as `list -o json` has it."""
        return ListOfCluster(*self._head, tuple(map(ListedTopic, self.topics)), self._told)

    @property
    def described(self) -> DescriptionOfCluster:
        """The same as `describe -o json` has it."""
        return DescriptionOfCluster(*self._head, tuple(map(DescribedTopic, self.topics)), self._told)

    @property
    def _head(self) -> tuple[str | None, str, str | None]:
        return self.name, self.observed.cluster_id, self.observed.observed_at

    @property
    def _told(self) -> tuple[ReportedProblem, ...]:
        return tuple(map(ReportedProblem.of, (*self.warnings, *self.of_client)))


def topics_seen(
    inputs: Inputs,
    patterns: Sequence[str] = (),
    *,
    since: str | None = None,
    loads: str | None = None,
    has_settings: bool = False,
    progress: ProgressHook | None = None,
) -> TopicsSeen:
    """Return the topics whose names match one of these shell patterns, or all.

    `since`: a snapshot of the same cluster from before, to tell growth by; InvalidInput where it is not one. `loads`:
    what `loads` made of its samples, to tell it by instead.
    `has_settings`: of a live cluster, configs that brokers set for all topics are told too, as kafka-topics does.
    """
    from reconciler.files.snapshot import read_snapshot

    earlier = read_snapshot(since) if since is not None else None
    desired, unread = _cluster_and_declared(inputs)
    if inputs.state:
        observed = read_snapshot(inputs.state)
        names, settings = _matching(observed, patterns), None
    else:
        with cluster_admin(inputs, desired) as admin:
            observed = admin.observe(has_groups=True, progress=progress)
            names = _matching(observed, patterns)
            settings = admin.topic_settings(names) if has_settings else None
    problems = [other_cluster(desired, observed) if desired is not None else None]
    problems += [not_earlier(earlier, observed, str(since))] if earlier is not None else []
    if any(problems):
        raise InvalidInput([problem for problem in problems if problem is not None])
    facts = topic_facts(observed, names, desired if unread is None else None, earlier)
    if settings is not None:
        facts = tuple(replace(one, configs=settings.get(one.name, one.configs)) for one in facts)
    if loads is not None:
        from reconciler.files.loads import growth_by_loads

        grown = growth_by_loads(loads, desired.cluster.name if desired is not None else cluster_name(inputs))
        facts = tuple(replace(one, growth=grown.get(one.name)) for one in facts)
    unmatched = (one for one in patterns if not any(fnmatchcase(name, one) for name in names))
    return TopicsSeen(
        desired.cluster.name if desired is not None else None,
        observed,
        tuple(map(_without_secrets, facts)),
        {one: _planned_at(desired, one) for one in unmatched},
        tuple(_warnings(observed, unread)),
        client_cautions(inputs, desired),
    )


def no_such_topics(
    unmatched: Mapping[str, Location | None], seen: Iterable[Cluster], *, root: str = ""
) -> InvalidInput:
    """Return the error that names each pattern that no cluster has a topic for, with the nearest name there is.

    `unmatched`: each with the place where such a topic is declared, if one is: it is yet to be made.
    """
    known = sorted({name for observed in seen for name in observed.topics})
    problems = []
    for pattern, at in unmatched.items():
        near = get_close_matches(pattern, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "`topics list` shows those that there are"
        hint = hint if at is None else f"it is declared at {place(at, root)}, and a plan makes it"
        problems.append(Problem(NO_SUCH_TOPIC, f"there is no topic {pattern}, or this user may not see it: {hint}"))
    return InvalidInput(problems)


def partition_of_key(inputs: Inputs, topic: str, key: bytes, partitions: int | None = None) -> KeyOfCluster:
    """Return the partition that the key goes to in that topic, and where it would go among so many partitions."""
    desired, _ = _cluster_and_declared(inputs)
    if inputs.state:
        from reconciler.files.snapshot import read_snapshot

        observed = read_snapshot(inputs.state)
    else:
        with cluster_admin(inputs, desired) as admin:
            observed = Cluster(admin.cluster_id(), topics=admin.topics([topic]))
    found = observed.topics.get(topic)
    if found is None:
        raise no_such_topics({topic: _planned_at(desired, topic)}, [observed], root=inputs.root)
    count = len(found.partitions)
    after = None
    if partitions is not None:
        after = KeyGrowth(partitions, partition_of(key, partitions), hashes_moved(count, partitions))
    name = desired.cluster.name if desired is not None else None
    return KeyOfCluster(name, observed.cluster_id, topic, count, partition_of(key, count), after)


def _cluster_and_declared(inputs: Inputs) -> tuple[Desired | None, str | None]:
    """Return what is declared of the cluster that is meant, None where the files of none are; and what is unread."""
    name = name_meant(inputs)
    return declared_as_far(inputs, name) if name is not None else (None, None)


def _planned_at(desired: Desired | None, name: str) -> Location | None:
    """Return where a topic that is to exist is declared by its name; None where none is."""
    document = desired.topics.get(name) if desired is not None else None
    return None if document is None or document.is_absent else document.where("")


def _matching(observed: Cluster, patterns: Sequence[str]) -> list[str]:
    return [name for name in observed.topics if not patterns or any(fnmatchcase(name, one) for one in patterns)]


def _warnings(observed: Cluster, unread: str | None) -> Iterator[Problem]:
    if unread is not None:
        yield warning(DECLARED_UNKNOWN, f"who declares and owns topics is not known; not read: {unread}")
    groups = untold_readers(observed)
    if groups:
        yield warning(
            READERS_UNTOLD,
            f"what these groups read is not told, so they are no topic's readers here: {named_some(groups)}",
        )


def _without_secrets(facts: TopicFacts) -> TopicFacts:
    shown = {key: MASK if config_value(key, value) == MASK else value for key, value in facts.configs.items()}
    return replace(facts, configs=shown)
