"""Declares `reconciler topics key`."""

import click

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import option, verb


@verb(
    "key",
    outputs=(TEXT, JSON),
    examples="""
        reconciler topics key orders customer-42 --cluster prod-eu
        reconciler topics key orders customer-42 --partitions 24 --state snapshot.json
        reconciler topics key orders 000000000000002a --hex --cluster prod-eu
    """,
    notes="""
        It is the default partitioner of the Java client (murmur2). Clients on librdkafka hash
        with CRC32 unless partitioner=murmur2_random is set, and place keys elsewhere.
    """,
)
@click.argument("topic", metavar="TOPIC")
@click.argument("key", metavar="KEY")
@option(
    "--partitions",
    metavar="N",
    type=click.IntRange(1, (1 << 31) - 1),
    help="Where it would go with so many partitions, and what share of all keys would move.",
)
@option("--hex", "is_hex", is_flag=True, envvar="RECONCILER_TOPICS_KEY_HEX", help="KEY is bytes in hexadecimal.")
def command(asked: Asked, topic: str, key: str, *, partitions: int | None, is_hex: bool) -> int:
    """Tell which partition of a topic a key goes to, and what becomes of keys when the topic grows.

    KEY is a text, in UTF-8 as StringSerializer has it. A key of another serializer, such as a long of eight bytes, is
    given with --hex.
    """
    from reconciler.command.several import of_one_or_each, tell_failed
    from reconciler.model.topic_report import KeyReport
    from reconciler.render import as_topics
    from reconciler.render.as_json import document
    from reconciler.workflow.topics import partition_of_key

    data = _bytes(key) if is_hex else key.encode("utf-8", "surrogateescape")
    found = of_one_or_each(asked, lambda inputs: partition_of_key(inputs, topic, data, partitions))
    asked.write(
        text=lambda: "".join(
            f"{name}: {as_topics.key(one, key)}" if name else as_topics.key(one, key)
            for name, one in found.made.items()
        ),
        json=lambda: document(KeyReport(tuple(found.made.values()), found.reasons)),
    )
    return tell_failed(asked, found.failed)


def _bytes(key: str) -> bytes:
    try:
        return bytes.fromhex(key)
    except ValueError:
        raise click.BadParameter(f"{key!r} is not hexadecimal: write two digits a byte.", param_hint="KEY") from None
