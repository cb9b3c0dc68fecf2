"""Declares `reconciler topics describe`."""

from reconciler.cli.topics.showing import show_topics, topic_arguments
from reconciler.command.options import CSV, JSON, TEXT, Asked
from reconciler.command.verbs import verb


@verb(
    "describe",
    outputs=(TEXT, JSON, CSV),
    examples="""
        reconciler topics describe orders --cluster prod-eu
        reconciler topics describe 'orders.*' --state snapshot.json --since last-week.json
        reconciler topics describe orders --bootstrap-server kafka-1:9092 -o json
    """,
    notes="""
        -o csv has a row a partition. From a snapshot, Configs are the topic's overrides; a
        live cluster also tells what its brokers set for all topics, as kafka-topics does.
    """,
)
@topic_arguments
def command(asked: Asked, patterns: tuple[str, ...], since: str | None, loads: str | None) -> int:
    """Describe topics: the lines of kafka-topics --describe, then who declares, owns and reads them, and their size.

    Without a TOPIC, all of them. A dash is what is not known.
    """
    from reconciler.model.topic_report import TopicDescriptions
    from reconciler.render import as_topics

    root = asked.inputs.root
    return show_topics(
        asked,
        patterns,
        since,
        loads,
        has_settings=True,
        text=lambda seen: as_topics.described(seen.described, root=root),
        report=lambda seen, failed: TopicDescriptions(tuple(each.described for each in seen), failed),
        csv=lambda seen: as_topics.described_csv(each.described for each in seen),
    )
