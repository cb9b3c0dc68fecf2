"""The file of metrics: whole at every moment, right at every turn, and never a reason for a run to fail."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.model.move import Move, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.problem import Problem, ReconcilerError
from reconciler.model.run import RunProgress, RunResult, RunState
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.run_metrics import MetricsFile

PLAN = Plan(
    "prod",
    "cluster-id",
    Source("digest"),
    id="0123abcd",
    stages=(
        ReassignStage(1, (Move(TopicPartition("t", 0), (1,), (1, 2), 100, Reason.BALANCE),), 50, 10),
        ElectStage(2, ()),
        ReassignStage(
            3,
            (
                Move(TopicPartition("t", 1), (1,), (2,), 300, Reason.BALANCE),
                Move(TopicPartition("t", 2), (1,), (2,), 600, Reason.BALANCE),
            ),
            70,
            20,
        ),
    ),
    warnings=(Problem("KR801", "x"),),
)


def values(path: Path) -> dict[str, float]:
    """Return each metric of the file, as Prometheus' own parser reads it."""
    families = text_string_to_metric_families(path.read_text("utf-8"))
    return {sample.name.removeprefix("reconciler_run_"): sample.value for each in families for sample in each.samples}


def started(path: Path, told: list[str] | None = None) -> MetricsFile:
    moments = iter(range(1000, 2000))
    file = MetricsFile(path, PLAN, (told if told is not None else []).append, lambda: float(next(moments)))
    file.begin()
    return file


def test_a_run_begins_with_what_is_planned(tmp_path: Path) -> None:
    started(tmp_path / "run.prom")
    assert values(tmp_path / "run.prom") == {
        "info": 1,
        "active": 1,
        "started_timestamp_seconds": 1000,
        "updated_timestamp_seconds": 1000,
        "stages": 3,
        "stage": 0,
        "stages_done": 0,
        "moves": 3,
        "moves_done": 0,
        "bytes": 1000,
        "copied_bytes": 0,
        "estimated_seconds": 30,
        "warnings": 1,
        "leftover_throttles": 0,
    }


def test_bytes_and_moves_count_over_all_stages(tmp_path: Path) -> None:
    file = started(tmp_path / "run.prom")
    file.progress(RunProgress(3, 3, 1, 2, 400, 950, 25.0, 22.0))
    seen = values(tmp_path / "run.prom")
    assert (seen["stage"], seen["stages_done"]) == (3, 2)
    assert (seen["moves_done"], seen["moves"]) == (2, 3)
    assert (seen["copied_bytes"], seen["bytes"]) == (100 + 400, 100 + 950)
    assert (seen["throttle_bytes_per_second"], seen["copied_bytes_per_second"]) == (70, 25)
    assert seen["stage_remaining_seconds"] == 22


def test_a_done_run_shows_its_success_and_no_rate(tmp_path: Path) -> None:
    file = started(tmp_path / "run.prom")
    file.progress(RunProgress(1, 3, 0, 1, 0, 100, 25.0, 4.0))
    file.end(0, RunResult(RunState.DONE, 3, 3, 5, 30.0))
    seen = values(tmp_path / "run.prom")
    assert (seen["active"], seen["exit_code"], seen["stages_done"], seen["moves_done"]) == (0, 0, 3, 3)
    assert seen["copied_bytes"] == seen["bytes"] == 1000
    assert seen["last_success_timestamp_seconds"] == seen["updated_timestamp_seconds"] == 1002
    assert not {"throttle_bytes_per_second", "copied_bytes_per_second", "stage_remaining_seconds"} & set(seen)


def test_the_last_success_outlives_a_later_failure(tmp_path: Path) -> None:
    started(tmp_path / "run.prom").end(0)
    before = values(tmp_path / "run.prom")["last_success_timestamp_seconds"]
    later = started(tmp_path / "run.prom")
    assert values(tmp_path / "run.prom")["last_success_timestamp_seconds"] == before
    later.progress(RunProgress(1, 3, 0, 1, 40, 100))
    later.end(5, RunResult(RunState.STOPPED, 0, 3, 5, 30.0, leftover_throttles=(Problem("KR703", "x"),)))
    seen = values(tmp_path / "run.prom")
    assert (seen["exit_code"], seen["active"], seen["leftover_throttles"]) == (5, 0, 1)
    assert (seen["stages_done"], seen["copied_bytes"], seen["moves_done"]) == (0, 40, 0)
    assert seen["last_success_timestamp_seconds"] == before


def test_a_file_that_is_no_such_file_is_simply_replaced(tmp_path: Path) -> None:
    (tmp_path / "run.prom").write_bytes(b"\xff\nreconciler_run_last_success_timestamp_seconds x")
    started(tmp_path / "run.prom")
    assert values(tmp_path / "run.prom")["active"] == 1


def test_what_stands_beside_while_writing_is_no_prom_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside: list[str] = []
    monkeypatch.setattr("os.fsync", lambda _handle: beside.extend(path.name for path in tmp_path.iterdir()))
    started(tmp_path / "run.prom")
    assert [name for name in beside if name.endswith(".prom") and name != "run.prom"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["run.prom"]
    assert (tmp_path / "run.prom").stat().st_mode & 0o444 == 0o444  # the collector is another user


def test_where_it_cannot_be_written_nothing_has_begun(tmp_path: Path) -> None:
    (tmp_path / "run.prom").mkdir()
    with pytest.raises(ReconcilerError, match="the file of metrics cannot be written") as refused:
        started(tmp_path / "run.prom")
    assert refused.value.code == "KR019"


def test_where_it_cannot_be_written_any_more_the_run_goes_on_and_says_so_once(tmp_path: Path) -> None:
    told: list[str] = []
    file = started(tmp_path / "run.prom", told)
    (tmp_path / "run.prom").unlink()
    (tmp_path / "run.prom").mkdir()
    file.progress(RunProgress(1, 3, 0, 1, 40, 100))
    file.end(0)
    (warning,) = told
    assert "(KR019); the run goes on without it" in warning
