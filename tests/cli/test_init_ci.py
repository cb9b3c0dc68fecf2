"""`init --ci`: what it writes is what runs here, twice changes nothing, and what a person wrote is kept."""

import hashlib
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.test_json_outputs import check
from helpers.program.call import Ended, Program, captured
from workflows.planted import wheel

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
RECORD = ".reconciler-ci.json"
PIN = ".github/locks/reconciler.txt"
PLAN = ".github/workflows/plan.yml"
INDEX = ("--index", "https://packages.invalid/simple")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
WHEEL = f"kafka_reconciler-{VERSION}-py3-none-any.whl"


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("prod-eu", "prod-us"):
        add_cluster(Path("desired-state"), name)


def add_cluster(root: Path, name: str) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "cluster.yaml").write_text("not looked at")


def contents(top: Path = Path()) -> dict[str, bytes]:
    """Return all files below that folder, but the desired state."""
    files = (file for file in sorted(top.rglob("*")) if file.is_file())
    found = {file.relative_to(top).as_posix(): file.read_bytes() for file in files}
    return {name: content for name, content in found.items() if not name.endswith("cluster.yaml")}


def written(reconciler: Program, *more: str, ci: str = "github") -> dict[str, Any]:
    """Return what `init --ci -o json` prints."""
    ended = reconciler(*more, "init", "--ci", ci, *INDEX, "-o", "json")
    assert ended.code == 0, ended
    check("pipelines", ended.out)
    told: dict[str, Any] = json.loads(ended.out)
    return told


def refused(reconciler: Program, *more: str) -> Ended:
    before = contents()
    ended = reconciler(*more, "init", "--ci", "github", *INDEX)
    assert (ended.code, contents()) == (1, before)
    return ended


def test_what_is_written_for_github_is_what_runs_in_this_repository(reconciler: Program) -> None:
    told = written(reconciler)
    found = contents()
    assert set(found) == {RECORD, *told["files"]} == {RECORD, *told["written"]}
    assert told["clusters"] == ["prod-eu", "prod-us"]
    assert found.pop(PIN) == f"--index-url {INDEX[1]}\nkafka-reconciler=={VERSION}\n".encode()
    del found[RECORD]
    assert {name for name, content in found.items() if content != (ROOT / name).read_bytes()} == set()
    assert {name for name in found if os.access(name, os.X_OK) != os.access(ROOT / name, os.X_OK)} == set()


def test_what_the_workflows_call_is_written(reconciler: Program) -> None:
    written(reconciler)
    texts = {name: content.decode() for name, content in contents().items() if name.endswith(".yml")}
    called = {
        found for text in texts.values() for found in re.findall(r"(?<![\w/])\.github/[\w./-]+|\./\.github/\S+", text)
    }
    assert len(called) >= 5
    assert {one for one in called if not Path(one).exists()} == set()


def project() -> Any:  # noqa: ANN401 - TOML
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_package_carries_what_is_written(reconciler: Program) -> None:
    targets = project()["tool"]["hatch"]["build"]["targets"]
    files = set(contents()) if written(reconciler) else set()
    ours = files - {RECORD, PIN}
    included = targets["wheel"]["force-include"]
    assert {source: goal for source, goal in included.items() if source != "schemas"} == {
        name: f"reconciler/files/pipelines/github/{name}" for name in ours
    }
    assert ours <= set(targets["sdist"]["only-include"])


def test_another_root_is_named_in_its_place(reconciler: Program) -> None:
    add_cluster(Path("kafka/state"), "prod-eu")
    assert written(reconciler, "-C", "kafka/state")["clusters"] == ["prod-eu"]
    texts = {name: content.decode() for name, content in contents().items()}
    assert "paths: [kafka/state/**]" in texts[PLAN]
    assert {name for name, text in texts.items() if "desired-state" in text} == set()


def test_again_and_with_another_folder_nothing_changes(reconciler: Program) -> None:
    written(reconciler)
    before = contents()
    add_cluster(Path("desired-state"), "ninth")
    told = written(reconciler)
    assert (told["written"], told["clusters"]) == ([], ["ninth", "prod-eu", "prod-us"])
    assert contents() == before
    assert "Nothing to write: 23 files for github are there." in reconciler("init", "--ci", "github", *INDEX).err


def test_an_edited_file_is_kept_while_there_is_nothing_new(reconciler: Program) -> None:
    written(reconciler)
    Path(PLAN).write_text("mine")
    before = contents()
    assert (written(reconciler)["kept"], contents()) == ([PLAN], before)
    assert f"Left as you edited them: {PLAN}." in reconciler("init", "--ci", "github", *INDEX).err


def from_an_earlier_version(text: str) -> None:
    """Have the plan's workflow be as an earlier version wrote it."""
    remember(PLAN, text)
    Path(PLAN).write_text(text)


def remember(name: str, text: str) -> None:
    """Have that text be what an earlier version wrote into that file."""
    record = json.loads(Path(RECORD).read_text())
    record["github"][name] = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    Path(RECORD).write_text(json.dumps(record))


def test_what_an_earlier_version_wrote_is_brought_up_to_date(reconciler: Program) -> None:
    written(reconciler)
    before = contents()
    from_an_earlier_version("as it was\n")
    assert (written(reconciler)["written"], contents()) == ([PLAN], before)


def test_what_was_edited_and_would_be_new_is_shown_and_nothing_is_written(reconciler: Program) -> None:
    written(reconciler)
    from_an_earlier_version("as it was\n")
    Path(PLAN).write_text("as it was\nand mine\n")
    Path(".github/workflows/apply.yml").unlink()
    ended = refused(reconciler)
    assert "-and mine\n" in ended.err
    assert f"+++ {PLAN} (init)\n" in ended.err
    assert f"error: {PLAN}: init did not write this text" in ended.err
    assert "(KR033)" in ended.err
    Path(PLAN).rename("mine.yml")
    assert sorted(written(reconciler)["written"]) == [".github/workflows/apply.yml", PLAN]


def test_a_file_that_was_there_before_is_not_written_over(reconciler: Program) -> None:
    Path(PLAN).parent.mkdir(parents=True)
    Path(PLAN).write_text("name: terraform\n")
    assert "-name: terraform\n" in refused(reconciler).err


def test_what_the_pipelines_no_longer_have_goes_unless_it_was_edited(reconciler: Program) -> None:
    written(reconciler)
    for name, text in (("old.py", "as it was\n"), ("edited.py", "and mine\n")):
        remember(name, "as it was\n")
        Path(name).write_text(text)
    assert written(reconciler)["removed"] == ["old.py"]
    assert (Path("old.py").exists(), Path("edited.py").exists()) == (False, True)
    assert written(reconciler)["removed"] == []


@pytest.mark.parametrize("text", ["[", "[]", '{"github": []}', '{"github": {"a": 1}}'])
def test_a_record_that_is_none_is_an_error(reconciler: Program, text: str) -> None:
    Path(RECORD).write_text(text)
    assert "(KR031)" in refused(reconciler).err


@pytest.mark.parametrize("root", ["..", ".", "../elsewhere", "a b", "x;y", "$(id)"])
def test_a_root_that_no_pipeline_can_name_is_refused(reconciler: Program, root: str) -> None:
    assert "(KR032)" in refused(reconciler, "-C", root).err


def test_a_link_out_of_the_repository_is_not_written_through(reconciler: Program, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    top = tmp_path / "top"
    add_cluster(top / "desired-state", "prod-eu")
    (top / ".github").symlink_to(tmp_path / "outside")
    ended = reconciler("-C", str(top / "desired-state"), "init", "--ci", "github", *INDEX, str(top))
    assert (ended.code, "(KR132)" in ended.err) == (1, True), ended
    assert list((tmp_path / "outside").iterdir()) == []


def test_pipelines_are_for_all_clusters(reconciler: Program) -> None:
    assert reconciler("init", "--ci", "github", "--cluster", "prod-eu").code == 64
    assert reconciler("init", "--ci", "github", "--demo").code == 64
    assert contents() == {}


@pytest.mark.parametrize(("ci", "home"), [("github", ".github/locks"), ("gitlab", ".gitlab/reconciler")])
def test_a_wheel_is_kept_and_installed_by_its_hash_and_no_other_file_is(
    reconciler: Program, tmp_path: Path, ci: str, home: str
) -> None:
    given = wheel(tmp_path, Path("/bin/true"))
    for _ in range(2):
        assert reconciler("init", "--ci", ci, "--wheel", str(given)).code == 0
    assert Path(home, WHEEL).read_bytes() == given.read_bytes()
    lock = Path(home, "reconciler.txt").read_text()
    assert f"--hash=sha256:{hashlib.sha256(given.read_bytes()).hexdigest()}" in lock
    goal = [
        "--target",
        str(tmp_path / "goal"),
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        "--only-binary=:all:",
    ]
    pip: list[str | Path] = [sys.executable, "-m", "pip", "install", *goal, "-r", f"{home}/reconciler.txt"]
    assert captured(pip).returncode == 0
    assert (tmp_path / "goal" / "reconciler_shim.py").exists()
    Path(home, WHEEL).write_bytes(given.read_bytes() + b"\0")
    swapped = captured(pip)
    assert (swapped.returncode, "HASHES" in swapped.stderr) == (1, True), swapped.stderr
    ended = reconciler("init", "--ci", ci, "--wheel", str(given))
    assert f"Left as you edited them: {home}/{WHEEL}." in ended.err


@pytest.mark.parametrize("ci", ["github", "gitlab"])
@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        ((), 64, "needs --wheel FILE or --index URL: no release is published"),
        ((*INDEX, "--wheel", WHEEL), 64, "needs --wheel FILE or --index URL"),
        (("--index", "http://packages.invalid/simple"), 1, "(KR034)"),
        (("--index", "https://eve:hunter-4711@packages.invalid/simple"), 1, "(KR034)"),
        (("--index", "https://packages.invalid/simple --trusted-host x"), 1, "(KR034)"),
        (("--index", "https://packages.invalid/simple\nrequests"), 1, "(KR034)"),
        (("--wheel", "other-1.0-py3-none-any.whl"), 1, f"give the file {WHEEL} (KR034)"),
        (("--wheel", WHEEL), 1, "(KR034)"),  # it is not there
    ],
)
def test_where_jobs_install_from_has_to_be_said(
    reconciler: Program, ci: str, source: tuple[str, ...], code: int, words: str
) -> None:
    ended = reconciler("init", "--ci", ci, *source)
    assert (ended.code, words in ended.err, contents()) == (code, True, {}), ended


def test_kubernetes_runs_an_image_and_a_layout_installs_nothing(reconciler: Program) -> None:
    assert reconciler("init", "--ci", "kubernetes", *INDEX).code == 64
    assert reconciler("init", *INDEX).code == 64
    assert contents() == {}


def test_nobody_is_sent_to_a_name_on_the_public_index() -> None:
    places = [
        *(ROOT / "reconciler").rglob("*.*"),
        *(ROOT / ".github").rglob("*.*"),
        *(ROOT / "desired-state").rglob("*.md"),
    ]
    texts = {
        path: path.read_text("utf-8")
        for path in [*places, ROOT / "README.md"]
        if path.suffix in {".py", ".md", ".sh", ".yml"}
    }
    install = re.compile(r"pip[^\n]*install[^\n]*kafka-reconciler|kafka-reconciler==")
    history = ROOT / ".github" / "CHANGELOG.md"
    assert [path for path, text in texts.items() if path != history and install.search(text)] == []


def of_workflows() -> dict[str, Any]:
    """Return the workflows for GitHub as they were written, by name."""
    return {path.name: yaml.safe_load(path.read_text()) for path in Path(".github/workflows").glob("*.yml")}


def jobs_of_clusters() -> list[Any]:
    """Return each job that has the environment of a cluster."""
    jobs = [job for workflow in of_workflows().values() for job in workflow["jobs"].values()]
    return [job for job in jobs if str(job.get("environment", "")).startswith("kafka-")]


def test_jobs_get_the_secrets_that_are_named_and_no_others(reconciler: Program) -> None:
    told = reconciler("init", "--ci", "github", *INDEX, "--secret", "KAFKA_KEY", "--secret", "KEY_PASSWORD")
    assert told.code == 0, told
    texts = [content.decode() for name, content in contents().items() if name.startswith(".github/workflows/")]
    assert {name for text in texts for name in re.findall(r"secrets\.(\w+)", text)} == {
        *("KAFKA_KEY", "KEY_PASSWORD", "DRIFT_WEBHOOK"),
    }
    assert not [text for text in texts if "KAFKA_USERNAME" in text or "KAFKA_PASSWORD" in text]
    called = of_workflows()["apply-cluster.yml"][True]["workflow_call"]["secrets"]
    assert (
        set(called) == {"KAFKA_KEY", "KEY_PASSWORD"} == set(of_workflows()["apply.yml"]["jobs"]["cluster"]["secrets"])
    )
    for job in jobs_of_clusters():
        (given,) = [step["env"] for step in job["steps"] if "KAFKA_KEY" in step.get("env", {})]
        assert "${{ secrets.KEY_PASSWORD }}" in given.values()


def test_only_where_asked_jobs_of_clusters_and_no_others_get_a_token(reconciler: Program) -> None:
    for arguments, level in (((), None), (("--id-token", "sts.amazonaws.com", "--extras", "aws"), "write")):
        assert reconciler("init", "--ci", "github", *INDEX, *arguments).code == 0
        jobs = jobs_of_clusters()
        assert len(jobs) == 5
        assert {job["permissions"].get("id-token") for job in jobs} == {level}
        others = [
            (name, job_name)
            for name, workflow in of_workflows().items()
            for job_name, job in workflow["jobs"].items()
            if job not in jobs and "id-token" in job.get("permissions", {})
        ]
        assert others == ([("apply.yml", "cluster")] if level else [])
    install = Path(".github/actions/install.sh").read_text()
    assert "\naudience=sts.amazonaws.com\n" in install
    assert "\nextras=aws\n" in install


def test_jobs_run_on_the_runners_that_are_named_after_merges_to_the_default_branch(reconciler: Program) -> None:
    for command in (["init", "-q"], ["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk/9"]):
        assert captured(["git", *command]).returncode == 0
    told = reconciler("init", "--ci", "github", *INDEX, "--runs-on", "self-hosted", "--runs-on", "kafka")
    assert "The default branch: trunk/9." in told.err, told
    workflows = of_workflows()
    jobs = [job for workflow in workflows.values() for job in workflow["jobs"].values() if "runs-on" in job]
    assert [job["runs-on"] for job in jobs if job["runs-on"] != ["self-hosted", "kafka"]] == []
    assert workflows["apply.yml"][True]["push"]["branches"] == ["trunk/9"]
    assert workflows["plan.yml"][True]["merge_group"] is None


def test_on_gitlab_jobs_get_tags_a_token_and_the_lock_of_an_extra(reconciler: Program) -> None:
    arguments = ("--runs-on", "kafka", "--id-token", "https://sso.example.com", "--extras", "aws")
    assert reconciler("init", "--ci", "gitlab", *INDEX, *arguments).code == 0
    texts = {name: content.decode() for name, content in contents().items() if name.endswith(".yml")}
    for name, text in texts.items():
        jobs = text.count("  image: ")
        assert (text.count('  tags: ["kafka"]\n'), text.count("  id_tokens: ")) == (
            jobs,
            jobs if "\n  environment:\n" in text else 0,
        ), name
    assert "botocore==" in Path(".gitlab/reconciler/base.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("github", *INDEX, "--secret", "no-name"), 1),
        (("github", *INDEX, "--secret", "GITHUB_TOKEN"), 1),
        (("github", *INDEX, "--secret", "A: x\nB"), 1),
        (("github", *INDEX, "--runs-on", "a b"), 1),
        (("github", *INDEX, "--runs-on", "]\n"), 1),
        (("github", *INDEX, "--id-token", "$(id)"), 1),
        (("github", *INDEX, "--extras", "test"), 1),
        (("gitlab", *INDEX, "--extras", "spark"), 1),
        (("gitlab", *INDEX, "--secret", "KAFKA_KEY"), 64),
        (("kubernetes", "--secret", "KAFKA_KEY"), 64),
        (("kubernetes", "--runs-on", "kafka"), 64),
        (("kubernetes", "--id-token", "x"), 64),
        (("kubernetes", "--extras", "aws"), 64),
    ],
)
def test_a_setting_that_no_pipeline_can_have_is_refused(
    reconciler: Program, arguments: tuple[str, ...], code: int
) -> None:
    ended = reconciler("init", "--ci", *arguments)
    assert (ended.code, "(KR035)" in ended.err, contents()) == (code, code == 1, {}), ended


def test_a_branch_that_no_pipeline_can_name_is_refused(reconciler: Program) -> None:
    for command in (["init", "-q"], ["symbolic-ref", "refs/remotes/origin/HEAD", 'refs/remotes/origin/a"$(id)']):
        assert captured(["git", *command]).returncode == 0
    assert "(KR035)" in refused(reconciler).err
