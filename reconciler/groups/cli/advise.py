"""Declares `reconciler groups advise`."""

from collections.abc import Callable
from fractions import Fraction
from typing import Generic, TypeVar

import click

from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked
from reconciler.command.values import STATISTICS
from reconciler.command.verbs import option, verb
from reconciler.files.units import parse_bytes, parse_percent, parse_rate
from reconciler.model.loads import Statistic
from reconciler.model.words import percent

Value = TypeVar("Value", int, Fraction)

# Above these a figure is a slip of the finger, and the costs that follow from it would be nonsense.
MOST_PARTITIONS, MOST_BROKERS, MOST_REPLICAS = 1_000_000, 10_000, 1_000
MOST_HEADROOM = 100  # times the target


class Figure(click.ParamType[Value], Generic[Value]):
    """A rate, a size or a share with its unit, as the YAML writes it; zero is refused where it is divided by."""

    def __init__(self, name: str, parse: Callable[[str], Value], examples: str, least: int = 1) -> None:
        self.name = name
        self._parse: Callable[[str], Value] = parse
        self._examples = examples
        self._least = least

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Value:
        """Return the figure; a bare number is refused."""
        text = str(value)
        try:
            figure = self._parse(text)
        except ValueError:
            self.fail(f"{text!r} is no {self.name}: write a number and a unit, such as {self._examples}.", param, ctx)
        if figure < self._least:
            self.fail(f"{text!r} is too little: nothing could ever be read or written.", param, ctx)
        return figure


RATE = Figure[int]("rate", parse_rate, "50MiB/s, 10MB/s")
SIZE = Figure[int]("size", parse_bytes, "16KiB, 1GiB")
SHARE = Figure[Fraction]("percentage", parse_percent, "30%", least=0)


@verb(
    "advise",
    outputs=(TEXT, JSON, MARKDOWN),
    examples="""
        reconciler groups advise --target 100MiB/s --producer 10MiB/s --consumer 20MiB/s --headroom 30%
        reconciler groups advise --topic orders --target 100MiB/s --producer 10MiB/s
        reconciler groups advise --topic orders --loads loads --headroom 50%
    """,
)
@option("--topic", metavar="NAME", help="A topic that exists: shows what it has, too.")
@option("--target", type=RATE, metavar="RATE", help="What the whole topic shall carry.")
@option("--producer", type=RATE, metavar="RATE", help="What ONE partition takes in, measured.")
@option("--consumer", type=RATE, metavar="RATE", help="What ONE consumer reads, measured.")
@option("--headroom", type=SHARE, metavar="PERCENT", help="On top of the target, such as 30%.")
@option(
    "--consumers", type=click.IntRange(1, MOST_PARTITIONS), metavar="N",
    help="Members of one group that shall read at once.",
)  # fmt: skip
@option(
    "--brokers", type=click.IntRange(1, MOST_BROKERS), metavar="N",
    help="Brokers that share it [default: those of the cluster].",
)  # fmt: skip
@option(
    "--replication-factor", type=click.IntRange(1, MOST_REPLICAS), metavar="N",
    help="Replicas of each partition [default: the topic's, else 3].",
)  # fmt: skip
@option("--batch-size", type=SIZE, metavar="SIZE", help="The producers' batch.size [16KiB].")
@option("--segment-size", type=SIZE, metavar="SIZE", help="segment.bytes [the topic's, 1GiB].")
@option("--loads", metavar="DIR", help="Measured loads: rates that are not given come from it.")
@option(
    "--statistic", type=STATISTICS, default=Statistic.PEAK.value, show_default=True,
    help="Which of the measured rates counts.",
)  # fmt: skip
def command(
    asked: Asked,
    *,
    topic: str | None,
    target: int | None,
    producer: int | None,
    consumer: int | None,
    headroom: Fraction | None,
    consumers: int | None,
    brokers: int | None,
    replication_factor: int | None,
    batch_size: int | None,
    segment_size: int | None,
    loads: str | None,
    statistic: str,
) -> None:
    """Say how many partitions a topic needs, and what they cost: max(target / producer, target / consumer).

    By figures alone, or with --topic against what exists: its partitions, the groups that read it, the brokers.
    """
    if headroom is not None and headroom > MOST_HEADROOM:
        raise click.UsageError(f"--headroom {percent(headroom)} is more than {percent(MOST_HEADROOM)}: is it meant so?")
    if topic is None and (loads or asked.inputs.state or asked.inputs.is_client_given):
        raise click.UsageError("--state, --loads and a cluster tell of a topic that exists: name it with --topic.")
    from reconciler.command.progress import reading
    from reconciler.groups.advice import Wanted
    from reconciler.groups.render.as_advice import advised
    from reconciler.groups.workflow.advise import advise_by_figures, advise_topic
    from reconciler.groups.workflow.loads import LoadsFolder
    from reconciler.render.as_json import document

    wanted = Wanted(
        target, producer, consumer, headroom or Fraction(0), consumers, brokers, replication_factor, batch_size,
        segment_size,
    )  # fmt: skip
    if topic is None:
        advice = advise_by_figures(wanted)
    else:
        at = None if loads is None else LoadsFolder(loads, Statistic(statistic))
        with reading() as progress:
            advice = advise_topic(asked.inputs, topic, wanted, loads=at, progress=progress)
    shown = advised(advice)
    asked.write(text=shown.text, json=lambda: document(advice), markdown=shown.markdown)
