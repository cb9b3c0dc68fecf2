"""Moves inside brokers stand in every form of a plan, with their bytes, and apart from what goes between brokers."""

from dataclasses import replace

import pytest
from helpers.plans.sample_plan import sample_plan

from reconciler.files.plan_file import plan_from_json, with_id
from reconciler.model.change import Changes, DirDifference
from reconciler.model.codec import to_json
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Location
from reconciler.model.stage import LogDirsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_json, as_markdown, as_plan_html, as_text
from reconciler.render.labels import labels

GIB = 1 << 30
AT = Location("prod/cluster.yaml", 12)


def moves(count: int, brokers: int = 1) -> tuple[DirMove, ...]:
    return tuple(
        DirMove(
            TopicPartition("clicks", number), number % brokers, "/d1", "/d2", GIB, Reason.DRAINING, AT, replicas=(0, 1)
        )
        for number in range(count)
    )


def plan(inside: tuple[DirMove, ...], least: int | None = None) -> Plan:
    stages = (LogDirsStage(1, inside, 50 << 20, 60),)
    return with_id(replace(sample_plan(), topic_changes=(), stages=stages, least_dir_bytes=least))


def test_the_text_has_a_line_for_each_pair_of_log_dirs_and_the_bytes_apart() -> None:
    text = as_text.plan(plan(moves(3), 3 * GIB))
    assert "~ broker 0  log dirs: 3 replicas from /d1 to /d2  prod/cluster.yaml:12  3.0 GiB, inside the broker" in text
    total = (
        "3 replicas between log dirs, 3.0 GiB inside their brokers (no plan can copy less there, by the planner's own"
        " bound), 1 stage, about 1 min"
    )
    assert total in text
    assert "at 50 MiB/s per broker" in text


def test_a_gap_is_told() -> None:
    assert "(at most 25% of that could be saved, by the planner's own bound)" in as_text.plan(plan(moves(4), 3 * GIB))


def test_very_many_pairs_are_one_line() -> None:
    text = as_text.plan(plan(moves(60, 30)))
    assert "log dirs: 60 replicas between the log dirs of 30 brokers" in text
    assert text.count("log dirs:") == 1


def test_all_stages_name_each_move() -> None:
    text = as_text.plan(plan(moves(2)), has_stages=True)
    assert "~ clicks-1  broker 0: /d1 -> /d2  prod/cluster.yaml:12  draining, 1.0 GiB" in text


def test_markdown_and_page_tell_the_same() -> None:
    told = as_markdown.plan(plan(moves(3), 3 * GIB))
    assert "3.0 GiB inside brokers · about 1 min" in told
    assert "| **Inside brokers** | 3 replicas between log dirs, 3.0 GiB inside their brokers; no plan can copy" in told
    assert "1 of moves between log dirs" in told
    assert "| `clicks-2` | 0 | `/d1` | `/d2` | 1.0\u00a0GiB | draining `prod/cluster.yaml:12` |" in told
    page = as_plan_html.plan(plan(moves(3)))
    assert "Copied between log dirs" in page
    assert "broker 0 /d1" in page


def test_a_plan_of_them_moves_data() -> None:
    assert labels(plan(moves(1))) == ("moves data",)


def test_the_file_is_read_back() -> None:
    written = plan(moves(2), 2 * GIB)
    assert plan_from_json(to_json(written)).stages == written.stages
    assert (written.summary.dir_moves, written.summary.dir_bytes, written.summary.bytes) == (2, 2 * GIB, 0)


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_difference_is_told_by_diff(form: str) -> None:
    changes = Changes(log_dirs=(DirDifference(9, "/d1", "draining: it holds 2 replicas, 2.0 GiB", AT),))
    told = {
        "text": as_text.changes(changes),
        "json": as_json.changes(changes, ()),
        "markdown": as_markdown.changes(changes, (), "prod"),
    }[form]
    assert "draining: it holds 2 replicas, 2.0 GiB" in told
    assert "9" in told
