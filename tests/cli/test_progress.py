import pytest

from reconciler.cli.progress import progress_text, reading, running
from reconciler.model.run import RunProgress

GIB = 1024**3


def test_progress_tells_moves_bytes_rate_and_time_left() -> None:
    seen = RunProgress(2, 3, 8, 12, 16 * GIB, 24 * GIB, 48.0 * 1024**2, 170.0)
    assert progress_text(seen) == "8/12   16.0 GiB of 24.0 GiB   48MiB/s   about 3 min left"
    assert progress_text(RunProgress(2, 3, 0, 12, 0, 0)) == "0/12"


def test_where_nobody_watches_a_stage_is_told_once_at_its_start_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with running("demo") as hook:
        for done in (0, 1, 2, 2):
            hook(RunProgress(1, 2, done, 2, done * GIB, 2 * GIB))
    assert capsys.readouterr().err == (
        "demo  stage 1/2  0/2   0 B of 2.0 GiB\ndemo  stage 1/2  2/2   2.0 GiB of 2.0 GiB\n"
    )


def test_where_nobody_watches_reading_says_nothing() -> None:
    with reading() as hook:
        assert hook is None
