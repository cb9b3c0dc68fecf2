import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.plans.drawn_plans import drawn_plan
from helpers.plans.sample_plan import sample_plan
from helpers.program.call import Program, run_program

from reconciler.files.plan_file import plan_text, write_plan
from reconciler.render import as_markdown, as_plan_html

pytestmark = pytest.mark.long


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """Return the path of a saved plan."""
    write_plan(sample_plan(), tmp_path / "plan.json")
    return "plan.json"


def test_a_saved_plan_shows_stage_by_stage(reconciler: Program, saved: str) -> None:
    ended = reconciler("show", saved)
    assert ended.code == 0
    assert "Stage 2: 2 moves, 2 replicas to copy, 3.0 GiB" in ended.out
    assert "violation: 27.0 GiB would move" in ended.out


def test_json_is_the_file_byte_for_byte(reconciler: Program, saved: str) -> None:
    assert reconciler("show", saved, "-o", "json").out == Path(saved).read_text("utf-8")


def test_markdown_is_the_comment_for_a_review(reconciler: Program, saved: str) -> None:
    from reconciler.files.plan_file import read_plan

    assert reconciler("show", saved, "-o", "markdown").out == as_markdown.plan(read_plan(saved))


def test_html_is_one_page(reconciler: Program, saved: str) -> None:
    from reconciler.files.plan_file import read_plan

    ended = reconciler("show", saved, "-o", "html")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == as_plan_html.plan(read_plan(saved))


def test_a_plan_comes_from_stdin_too(reconciler: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(plan_text(sample_plan()).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content))
    assert "Stage 4: 5 preferred-leader elections" in reconciler("show", "-").out


def test_kafkas_tools_get_their_files(reconciler: Program, saved: str) -> None:
    ended = reconciler("show", saved, "-o", "kafka-json", "--out", "kafka")
    assert (ended.code, ended.out) == (0, "")
    assert "Wrote 5 files to kafka." in ended.err
    assert "3 topic changes have no such file" in ended.err
    names = sorted(file.name for file in Path("kafka").iterdir())
    assert names[0] == "stage-02-reassign.json"
    assert json.loads(Path("kafka", names[0]).read_text("utf-8"))["version"] == 1


@pytest.mark.parametrize("arguments", [("-o", "kafka-json"), ("--out", "kafka"), ("-o", "json", "--out", "kafka")])
def test_kafka_json_and_its_folder_belong_together(reconciler: Program, saved: str, arguments: tuple[str, ...]) -> None:
    ended = reconciler("show", saved, *arguments)
    assert ended.code == 64
    assert not Path("kafka").exists()


def test_kafkas_files_name_log_dirs_where_asked(reconciler: Program, saved: str) -> None:
    assert reconciler("show", saved, "-o", "kafka-json", "--out", "kafka", "--log-dirs").code == 0
    assert '"log_dirs":["any","any","/d2"]' in Path("kafka/stage-03-reassign.json").read_text("utf-8")
    assert reconciler("show", saved, "--log-dirs").code == 64
    write_plan(replace(sample_plan(), predicted_log_dirs={}), "plain.json")
    assert "(KR827)" in reconciler("show", "plain.json", "-o", "kafka-json", "--out", "plain", "--log-dirs").err


def test_a_changed_plan_is_refused(reconciler: Program, saved: str) -> None:
    Path(saved).write_text(Path(saved).read_text("utf-8").replace("[2, 4, 6]", "[2, 4, 5]", 1))
    ended = reconciler("show", saved)
    assert ended.code == 1
    assert ended.out == ""
    assert "plan.json" in ended.err


def test_nobody_to_ask_means_no_apply(reconciler: Program, saved: str) -> None:
    ended = reconciler("apply", saved)
    assert ended.code == 64
    assert "--yes" in ended.err


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_the_same_plan_is_shown_in_the_same_bytes_whatever_the_hash_seed(tmp_path: Path, form: str) -> None:
    write_plan(drawn_plan(30, 12, 20), tmp_path / "plan.json")
    shown = {
        run_program("show", "plan.json", "-o", form, cwd=tmp_path, env={"PYTHONHASHSEED": seed}).out
        for seed in ("1", "2")
    }
    assert len(shown) == 1
    assert len(shown.pop()) > 10_000
