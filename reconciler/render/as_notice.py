"""Writes what `diff --notify` tells of drift: one message for all clusters, as JSON for programs, as text for Slack."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.model.change import Changes, Difference
from reconciler.model.cluster import Topic
from reconciler.model.notice import Notice, NoticeOfCluster, ToldDifference, Whose
from reconciler.model.problem import UNDECLARED_TOPIC
from reconciler.model.several import ClusterOutcome
from reconciler.model.words import counted, in_brackets, number
from reconciler.render import as_json
from reconciler.render.escape import visible
from reconciler.render.facts import place
from reconciler.render.labels import DESTROYS, IRREVERSIBLE
from reconciler.render.rows import Row, difference_rows, gravest_first

MOST_TOLD = 20
"""How many things are told of one cluster, half of them topics that no file declares, where there are so many."""
MOST_CLUSTERS = 10
"""How many clusters with something to tell stand in the text."""
_WIDEST = 160
_MOST_CHARACTERS = 20_000
"""From where no cluster is added. Slack cuts a text behind 40,000; one cluster has 17,000 at most, signs spelled."""
WHO = (
    "What differs is what the next plan would do. Kafka does not record who changed something: a difference was made "
    "by hand, or its file was changed and not applied. The log of the brokers' authorizer tells who, where it is kept."
)


def of_cluster(
    outcome: ClusterOutcome,
    found: Changes,
    fields: Sequence[Difference],
    undeclared: Sequence[Topic],
    owners: Mapping[str, Whose],
) -> NoticeOfCluster:
    """Return what to tell of a cluster that was compared."""
    rows = gravest_first(difference_rows(found, fields))
    stays = [problem for problem in found.stays if problem.code != UNDECLARED_TOPIC]
    spoken_of = {*found.deleted, *(one.topic for one in found.spared)}
    lone = [topic for topic in undeclared if topic.name not in spoken_of]
    told = [*(_of_row(row, owners) for row in rows), *(ToldDifference("", one.message, at=one.at) for one in stays)]
    others = [_of_undeclared(topic, owners) for topic in lone]
    first = told[: max(MOST_TOLD // 2, MOST_TOLD - len(others))]
    shown = (*first, *others[: MOST_TOLD - len(first)])
    return NoticeOfCluster(
        outcome.cluster,
        outcome.result,
        outcome.exit_code,
        len(rows) + len(found.stays),
        len(undeclared),
        tuple(shown),
        len(told) + len(others) - len(shown),
    )


def of_failure(outcome: ClusterOutcome, reason: str) -> NoticeOfCluster:
    """Return what to tell of a cluster that could not be looked at."""
    return NoticeOfCluster(outcome.cluster, outcome.result, outcome.exit_code, reason=reason)


def notice(clusters: Iterable[NoticeOfCluster]) -> Notice:
    """Return the message about all of them."""
    made = Notice("", tuple(clusters))
    return replace(made, text=_text(made, lambda text: text, "{}", "{}"))


def as_bytes(told: Notice, *, is_for_slack: bool) -> bytes:
    """Return what is sent: the whole message, or its text alone as Slack's incoming webhooks take it."""
    if not is_for_slack:
        return as_json.line(told).encode("utf-8", "backslashreplace")
    text = _text(told, _inert, "*{}*", "```{}```")
    return json.dumps({"text": text}, sort_keys=True).encode()


def _inert(text: str) -> str:
    """Return the text with what Slack takes for a link, a mention or the end of a block of code spelled out."""
    spelled = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return spelled.replace("`", "'")


def _text(told: Notice, inert: Callable[[str], str], bold: str, code: str) -> str:
    blocks = [bold.format(inert(_head(told)))]
    drifted = [one for one in told.clusters if one.is_drift]
    for at, one in enumerate(drifted):
        if at == MOST_CLUSTERS or sum(map(len, blocks)) > _MOST_CHARACTERS:
            blocks.append(f"and {counted(len(drifted) - at, 'more cluster')}: reconciler diff shows them")
            break
        title = f"{bold.format(inert(visible(one.cluster)))}: {inert(_result(one))}"
        lines = [f"  {inert(line)}" for line in _lines(one)]
        blocks.append("\n".join([title, *([code.format("\n".join(lines))] if lines else [])]))
    return "\n".join([*blocks, *([inert(WHO)] if any(one.told for one in drifted) else [])])


def _head(told: Notice) -> str:
    drifted = sum(one.is_drift and one.reason is None for one in told.clusters)
    failed = sum(one.reason is not None for one in told.clusters)
    of = f"of {counted(len(told.clusters), 'cluster')}"
    parts = [f"{drifted} {of} {'is' if drifted == 1 else 'are'} not as the files say" if drifted else ""]
    parts += [f"{failed} {'' if drifted else f'{of} '}could not be looked at" if failed else ""]
    return f"Kafka: {', '.join(filter(None, parts)) or f'all {of} are as the files say'}"


def _result(one: NoticeOfCluster) -> str:
    if one.reason is not None:
        first, *more = one.reason.split("\n")
        return _clipped(visible(f"{one.result}: {first}{' …' if more else ''}"), 2 * _WIDEST)
    lone = one.undeclared_topics or 0
    return one.result + (f", {counted(lone, 'topic')} that no file declares" if lone else "")


def _lines(one: NoticeOfCluster) -> Iterator[str]:
    for each in one.told:
        owner = f"owner {each.owner}{in_brackets(each.contact)}" if each.owner else ""
        where = ", ".join(filter(None, (owner, place(each.at))))
        what = f"{each.subject}: {each.what}" if each.subject else each.what
        yield _clipped(visible(f"{what} ({where})" if where else what))
    if one.untold:
        yield f"and {number(one.untold)} more"


def _clipped(line: str, most: int = _WIDEST) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _of_row(row: Row, owners: Mapping[str, Whose]) -> ToldDifference:
    what = f"{row.what}: {row.effect}" if row.kind in {DESTROYS, IRREVERSIBLE} and row.effect else row.what
    whose = owners.get(row.subject) or owners.get(row.subject.rpartition("-")[0])  # of a partition, that of its topic
    owner, contact = whose or (None, None)
    return ToldDifference(row.subject, what, owner, contact, row.at)


def _of_undeclared(topic: Topic, owners: Mapping[str, Whose]) -> ToldDifference:
    what = f"no file declares it, and it stays; {counted(len(topic.partitions), 'partition')}"
    owner, contact = owners.get(topic.name) or (None, None)
    return ToldDifference(topic.name, what, owner, contact)
