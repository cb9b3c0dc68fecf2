"""A newcomer's first five minutes: the wheel, an empty folder, and the demo, by nothing but the installed command."""

import csv
import json
import re
import subprocess
from pathlib import Path

import pytest
from helpers.program.command_line import reconciler
from journeys.installed import ROOT, Installed
from jsonschema import Draft7Validator

pytestmark = pytest.mark.long


def test_the_wheel_holds_all_that_the_program_reads_and_nothing_else(installed: Installed) -> None:
    held = installed.files()
    assert package_files() - held == set()
    schemas = {f"reconciler/schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")}
    assert schemas <= held
    assert {name.partition("/")[0] for name in held if ".dist-info/" not in name} == {"reconciler"}
    assert [name for name in held if name.endswith((".pyc", ".pyi"))] == []


def package_files() -> set[str]:
    """Return what the package holds; in a checkout, without what somebody is just writing."""
    listed = subprocess.run(("git", "ls-files", "reconciler"), cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    found = (ROOT / "reconciler").rglob("*")
    return {str(path.relative_to(ROOT)) for path in found if path.is_file() and "__pycache__" not in path.parts}


def test_what_runs_is_the_wheel_without_any_extra(installed: Installed, tmp_path: Path) -> None:
    where = Path(installed.python("import reconciler; print(reconciler.__file__)"))
    assert where.is_relative_to(installed.environment)
    for library in ("pyspark", "pyarrow", "pytest"):
        assert installed.python(f"from importlib.util import find_spec; print(find_spec({library!r}))") == "None"
    assert re.fullmatch(r"reconciler \d+\.\d+\.\d+\S*\n", installed.run("--version", cwd=tmp_path).out)


@pytest.mark.parametrize("system", ["github", "gitlab", "kubernetes"])
def test_the_wheel_writes_the_pipelines_that_a_checkout_writes(
    installed: Installed, tmp_path: Path, system: str
) -> None:
    for name in ("wheel", "checkout"):
        (tmp_path / name / "desired-state" / "prod-eu").mkdir(parents=True)
        (tmp_path / name / "desired-state" / "prod-eu" / "cluster.yaml").touch()
    source = () if system == "kubernetes" else ("--index", "https://packages.invalid/simple")
    installed.run("init", "--ci", system, *source, cwd=tmp_path / "wheel")
    reconciler("init", "--ci", system, *source, cwd=tmp_path / "checkout")
    written, here = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("wheel", "checkout")
    )
    assert (len(written) > 6, written) == (True, here)


def test_from_an_empty_folder_to_a_cluster_that_is_as_declared(installed: Installed, tmp_path: Path) -> None:
    def run(*arguments: str, expect: int = 0) -> str:
        return installed.run(*arguments, cwd=tmp_path, expect=expect).out

    run("init", "--demo")
    run("validate")
    run("diff", "--detailed-exitcode", expect=2)
    run("plan", "--out", "plan.json", "--detailed-exitcode", expect=2)
    plan = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    schema = json.loads(installed.python(READ_THE_PLANS_SCHEMA))
    assert list(Draft7Validator(schema).iter_errors(plan)) == []
    assert "clicks" in run("show", "plan.json")
    assert "`clicks`" in run("show", "plan.json", "-o", "markdown")
    assert json.loads(run("show", "plan.json", "-o", "json")) == plan
    assert "<html" in run("show", "plan.json", "-o", "html")
    run("show", "plan.json", "-o", "kafka-json", "--out", "kafka")
    assert "Proved" in run("show", "plan.json", "--prove")
    assert "3 of 3 stages" in run("apply", "plan.json", "--yes")
    assert "done" in run("status")
    assert "No changes" in run("plan", "--detailed-exitcode")
    assert "3 of 3 stages" in run("apply", "plan.json", "--yes")  # again: nothing is left to do, and that is no error
    assert {path.name for path in tmp_path.iterdir()} == {"desired-state", "kafka", "plan.json", "runs"}


READ_THE_PLANS_SCHEMA = """
from importlib.resources import files
print(files("reconciler").joinpath("schemas", "plan.json").read_text("utf-8"))
"""


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("collect", "--out", "samples"), "loads"),
        (("plan", "--loads", "loads"), "loads"),
        (("loads", "--samples", "samples.csv", "--out", "loads"), "spark"),
        (("balance", "--samples", "samples.csv"), "spark"),
    ],
)
def test_a_verb_whose_extra_is_missing_says_in_one_line_how_to_get_it(
    arguments: tuple[str, ...], extra: str, installed: Installed, tmp_path: Path
) -> None:
    installed.run("init", "--demo", cwd=tmp_path)
    with (tmp_path / "samples.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("ts", "cluster", "topic", "partition", "bytes_in"))
        table.writerow(("2026-03-29T00:00:00Z", "demo", "clicks", 0, 1000))
    told = installed.run(*arguments, cwd=tmp_path, expect=1)
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert f"pip install 'WHEEL[{extra}]'" in line
