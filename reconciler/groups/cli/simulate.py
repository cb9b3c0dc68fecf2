"""Declares `reconciler groups simulate`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked
from reconciler.command.terminal import write
from reconciler.command.values import STATISTICS
from reconciler.command.verbs import option, verb
from reconciler.model.loads import Statistic

if TYPE_CHECKING:
    from reconciler.groups.workflow.simulate import Question

Value = TypeVar("Value")

MOST_PARTITIONS = 1_000_000


@verb(
    "simulate",
    outputs=(TEXT, JSON, MARKDOWN),
    examples="""
        reconciler groups simulate --group billing --remove-member consumer-3
        reconciler groups simulate --group billing --add-member consumer-4 --assignor sticky
        reconciler groups simulate --state snapshot.json --partitions orders=18
        reconciler groups simulate --scenario scenario.json -o json
    """,
)
@option("--scenario", metavar="FILE", help="Simulate that file (- for stdin), not a cluster.")
@option("--group", metavar="ID", multiple=True, help="This group [default: all with members].")
@option("--add-member", metavar="ID[:TOPIC,...]", multiple=True, help="Who joins.")
@option("--remove-member", metavar="ID", multiple=True, help="Who leaves.")
@option("--subscribe", metavar="ID=TOPIC,...", multiple=True, help="What a member reads then.")
@option("--partitions", metavar="TOPIC=N", multiple=True, help="How far a topic grows.")
@option(
    "--assignor", metavar="NAME", multiple=True,
    help="range, roundrobin, sticky, cooperative-sticky, server-range, server-uniform, or a class of your own, "
    "package.module:Class [default: all six].",
)  # fmt: skip
@option("--loads", metavar="DIR", help="Measured loads: adds what each member reads.")
@option(
    "--statistic", type=STATISTICS, default=Statistic.PEAK.value, show_default=True,
    help="Which of the measured rates counts.",
)  # fmt: skip
def command(
    asked: Asked,
    *,
    scenario: str | None,
    group: tuple[str, ...],
    add_member: tuple[str, ...],
    remove_member: tuple[str, ...],
    subscribe: tuple[str, ...],
    partitions: tuple[str, ...],
    assignor: tuple[str, ...],
    loads: str | None,
    statistic: str,
) -> int:
    """Show who would get what after a change, assignor beside assignor. Nothing is changed.

    A member is named by its member id, its instance id, or its client id where only one has it.
    """
    if scenario is not None:
        if group or add_member or remove_member or subscribe or partitions or loads or asked.inputs.state:
            raise click.UsageError("--scenario holds its own members and topics: it goes with --assignor and -o alone.")
        _simulate_scenarios(asked, scenario, assignor)
        return Exit.DONE
    from reconciler.groups.simulate.change import GroupChange
    from reconciler.groups.workflow.loads import LoadsFolder
    from reconciler.groups.workflow.simulate import Question

    at = None if loads is None else LoadsFolder(loads, Statistic(statistic))

    change = GroupChange(
        _each_once("--add-member", (_with_topics("--add-member", text, ":", is_needed=False) for text in add_member)),
        tuple(_each_once("--remove-member", ((name, name) for name in remove_member))),
        _each_once("--subscribe", (_with_topics("--subscribe", text, "=", is_needed=True) for text in subscribe)),
        _each_once("--partitions", map(_with_count, partitions)),
    )
    _simulate_groups(asked, Question(group, change, assignor, at))
    return Exit.DONE


def _simulate_groups(asked: Asked, question: "Question") -> None:
    from reconciler.command.progress import reading
    from reconciler.groups.model.simulation import Simulated
    from reconciler.groups.render.as_simulation import comparisons
    from reconciler.groups.workflow.simulate import compare_groups
    from reconciler.render.as_json import document

    with reading():
        compared = compare_groups(asked.inputs, question)
    shown = comparisons(compared)
    asked.write(text=shown.text, json=lambda: document(Simulated(tuple(compared))), markdown=shown.markdown)


def _simulate_scenarios(asked: Asked, path: str, assignors: Sequence[str]) -> None:
    from reconciler.groups.files.scenario import outcomes_text
    from reconciler.groups.render.as_simulation import scenario
    from reconciler.groups.workflow.simulate import run_scenarios

    read, simulated = run_scenarios(path, assignors)
    if asked.is_json:
        write(outcomes_text(read, [each.outcomes for each in simulated]))
        # The form of the JSON has no place for doubts.
        asked.tell(f"note: {each.title}: {doubt}" for each in simulated for doubt in each.doubts)
        return
    for each in simulated:
        shown = scenario(each.title, each.changes, each.outcomes, each.doubts)
        asked.write(text=shown.text, markdown=shown.markdown)


def _each_once(option: str, given: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in given:
        if name in found:
            raise click.UsageError(f"{option}: {name} stands there twice; give it once.")
        found[name] = value
    return found


def _with_topics(option: str, text: str, sign: str, *, is_needed: bool) -> tuple[str, tuple[str, ...]]:
    name, found, topics = text.rpartition(sign)
    if not found:
        name, topics = text, ""
    names = tuple(dict.fromkeys(topic.strip() for topic in topics.split(",") if topic.strip()))
    if not name or (not names and (is_needed or found)):
        raise click.UsageError(f"{option} {text}: write it as MEMBER{sign}TOPIC,TOPIC.")
    return name, names


def _with_count(text: str) -> tuple[str, int]:
    topic, _, count = text.rpartition("=")
    if not topic or not count.isascii() or not count.isdigit() or not 0 < int(count[:9]) <= MOST_PARTITIONS:
        raise click.UsageError(
            f"--partitions {text}: write it as TOPIC=N, N being the new count, {MOST_PARTITIONS} at most."
        )
    return topic, int(count)
