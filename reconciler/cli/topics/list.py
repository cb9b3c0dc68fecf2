"""Declares `reconciler topics list`."""

from reconciler.cli.topics.showing import show_topics, topic_arguments
from reconciler.command.options import CSV, JSON, TEXT, Asked
from reconciler.command.verbs import verb


@verb(
    "list",
    outputs=(TEXT, JSON, CSV),
    examples="""
        reconciler topics list --cluster prod-eu
        reconciler topics list 'orders.*' --state snapshot.json --since last-week.json
        reconciler topics list --cluster '*' -o csv > topics.csv
    """,
)
@topic_arguments
def command(asked: Asked, patterns: tuple[str, ...], since: str | None, loads: str | None) -> int:
    """List topics: partitions, size, how many groups read them, who owns and who declares them.

    Without a TOPIC, all of them. A dash is what is not known. A size is that of one replica of each partition; of a
    tiered topic it is what lies on the brokers.
    """
    from reconciler.model.topic_report import TopicList
    from reconciler.render import as_topics

    root = asked.inputs.root
    return show_topics(
        asked,
        patterns,
        since,
        loads,
        has_settings=False,
        text=lambda seen: as_topics.listed(seen.listed, root=root),
        report=lambda seen, failed: TopicList(tuple(each.listed for each in seen), failed),
        csv=lambda seen: as_topics.listed_csv(each.listed for each in seen),
    )
