"""No path and no link in the desired state leads out of its root: nothing outside is read, and nothing is written."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.escapes import ALL, CANARY, ESCAPES, OUT, Escape, link, spec, write_world
from helpers.program.call import Ended, Program
from helpers.program.documents import document

pytestmark = pytest.mark.long

VERBS = {
    "validate": ("validate", "--cluster", "prod"),
    "sarif": ("validate", "--cluster", "prod", "-o", "sarif"),
    "plan": ("plan", "--cluster", "prod", "--out", "new.json"),
    "diff": ("diff", "--cluster", "prod"),
    "apply": ("apply", "plan.json", "--yes"),
    "status": ("status", "--cluster", "prod"),
    "snapshot": ("snapshot", "--cluster", "prod"),
    "doctor": ("doctor", "--cluster", "prod"),
}
FEWEST = 40


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_world(tmp_path)


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a plan of the root as it is."""
    from reconciler.cli.main import main

    folder = tmp_path_factory.mktemp("planned")
    assert main(["-C", str(write_world(folder)), "plan", "--cluster", "prod", "--out", str(folder / "plan.json")]) == 0
    return folder / "plan.json"


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return all there is in a folder: its bytes, and when they were written."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("escape", ESCAPES, ids=[each.name for each in ESCAPES])
def test_there_is_no_way_out(escape: Escape, reconciler: Program, root: Path, plan: Path, tmp_path: Path) -> None:
    shutil.copy(plan, "plan.json")
    escape.happens(root)
    before = contents(tmp_path / "outside")
    for verb in ALL:
        ended = reconciler(*VERBS[verb])
        assert CANARY not in ended.out + ended.err, verb
        assert contents(tmp_path / "outside") == before, verb
        assert not Path("new.json").exists() or CANARY not in Path("new.json").read_text("utf-8"), verb
        if verb in escape.verbs:
            assert ended.code in {1, 3}, (verb, ended)
            assert any(code in ended.out + ended.err for code in escape.codes), (verb, ended)


def test_the_table_has_many_ways() -> None:
    assert len({each.name for each in ESCAPES}) == len(ESCAPES) >= FEWEST


def test_the_error_says_where_and_what_next(reconciler: Program, root: Path) -> None:
    spec("simulation: ../../outside/state.json")(root)
    assert reconciler("plan", "--cluster", "prod").err == (
        "error: desired-state/prod/cluster.yaml:4:20: simulation leads out of the root: move the file inside, "
        f"or give a snapshot on the command line with --state ({OUT})\n"
    )


def test_a_way_out_is_told_without_a_name_that_may_be_a_password(reconciler: Program, root: Path) -> None:
    text = f'client: {{{CANARY}: "${{file:../../outside/secret}}", bootstrap.servers: "h:1"}}'
    spec(text)(root)
    for verb in ("validate", "snapshot"):
        ended = reconciler(*VERBS[verb])
        told = "… wants the file ../../outside/secret, which leads out of the root"
        assert (ended.code, told in ended.out + ended.err, CANARY in ended.out + ended.err) == (1, True, False), ended


def _ways_inside() -> dict[str, Callable[[Path], object]]:
    def moved(root: Path) -> None:
        """A folder mounted from a ConfigMap: files are links to a link to the folder of this version."""
        (root / "prod").rename(root / "..2026_11_23")
        (root / "prod").mkdir()
        link(("..data", "../..2026_11_23"))(root)
        for name in ("cluster.yaml", "classes.yaml", "topics.yaml", "state.json"):
            link((name, f"..data/{name}"))(root)

    def shared(root: Path) -> None:
        (root / "prod" / "topics.yaml").rename(root / "shared.yaml")
        link(("topics.yaml", "a"), ("a", "../shared.yaml"))(root)

    def cluster_moved(root: Path) -> None:
        (root / "prod").rename(root / ".of-prod")
        link(("prod", ".of-prod"), below=".")(root)

    def root_moved(root: Path) -> None:
        root.rename(root.parent / "elsewhere")
        root.symlink_to("elsewhere")

    return {
        "a link of a file": shared,
        "a link of the simulation": spec("simulation: s.json", ("s.json", "state.json")),
        "an absolute path inside": lambda root: spec(f'simulation: "{root}/prod/state.json"')(root),
        "out and in again": spec("simulation: ../../desired-state/prod/state.json"),
        "a folder like a ConfigMap's": moved,
        "the cluster's folder": cluster_moved,
        "the root": root_moved,
    }


@pytest.mark.parametrize("name", list(_ways_inside()))
def test_links_inside_the_root_are_followed(name: str, reconciler: Program, root: Path) -> None:
    _ways_inside()[name](root)
    assert reconciler("validate", "--cluster", "prod").code == 0
    assert reconciler("plan", "--cluster", "prod", "--out", "plan.json").code == 0
    applied = reconciler("apply", "plan.json", "--yes")
    assert applied.code == 0, applied
    again = reconciler("plan", "--cluster", "prod", "--detailed-exitcode")
    assert again.code == 0, again


def test_the_root_may_be_the_current_folder(reconciler: Program, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert reconciler("-C", ".", "plan", "--cluster", "prod", "--out", "../plan.json").code == 0
    (root / "runs").mkdir()
    (root / "runs" / "prod").symlink_to(root.parent / "outside")
    before = contents(root.parent / "outside")
    refused = reconciler("-C", ".", "apply", "../plan.json", "--yes")
    assert (refused.code, OUT in refused.err) == (1, True), refused
    assert contents(root.parent / "outside") == before
    assert reconciler("-C", ".", "apply", "../plan.json", "--yes", "--journal", "../j.jsonl").code == 0


def test_a_link_that_comes_while_it_runs_is_not_written_through(
    reconciler: Program, root: Path, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulated cluster's file is looked at again at each write."""
    from reconciler.files import snapshot

    before = contents(root.parent / "outside")
    read = snapshot.read_snapshot

    def read_and_swapped(path: Path) -> object:
        found = read(path)
        if path.name == "state.json" and not path.is_symlink():
            path.unlink()
            path.symlink_to(root.parent / "outside" / "state.json")
        return found

    monkeypatch.setattr(snapshot, "read_snapshot", read_and_swapped)
    ended = reconciler("apply", str(plan), "--yes")
    assert (ended.code, OUT in ended.err) == (1, True), ended
    assert contents(root.parent / "outside") == before


@pytest.mark.parametrize(
    "happens",
    [
        link(("new", "{out}"), below="."),
        link(("new", "{out}/new"), below="."),
        link(("new/topics.yaml", "{out}/new.yaml"), below="."),
        link(("new/classes.yaml", "{out}/new.yaml"), below="."),
        link(("new/cluster.yaml", "{out}/cluster.yaml"), below="."),
    ],
)
def test_import_and_init_write_through_no_link(
    happens: Callable[[Path], None], reconciler: Program, root: Path, tmp_path: Path
) -> None:
    happens(root)
    before = contents(tmp_path / "outside")
    shutil.copy(root / "prod" / "state.json", "seen.json")
    Path("strimzi.yaml").write_text(
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\nmetadata: {name: orders}\nspec: {partitions: 1}\n"
    )
    for verb in (("import", "--state", "seen.json"), ("import", "strimzi.yaml"), ("init",)):
        ended = reconciler("-C", str(root), verb[0], "--cluster", "new", *verb[1:])
        assert ended.code == 1, (verb, ended)
        assert CANARY not in ended.out + ended.err
        assert contents(tmp_path / "outside") == before


def test_import_reads_no_link_out_of_the_folder_that_it_is_given(
    reconciler: Program, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "strimzi").mkdir()
    (tmp_path / "strimzi" / "x.yaml").symlink_to(tmp_path / "outside" / "secret.yaml")
    ended = reconciler("-C", str(root), "import", "--cluster", "new", "strimzi")
    assert (ended.code, OUT in ended.err, CANARY in ended.out + ended.err) == (1, True, False), ended


def test_what_the_command_line_names_may_be_anywhere(reconciler: Program, root: Path, tmp_path: Path) -> None:
    away = tmp_path / "outside"
    shutil.copy(root / "prod" / "state.json", away / "seen.json")
    assert reconciler("plan", "--cluster", "prod", "--state", "outside/seen.json").code == 0
    (away / "user").write_text("me\n", "utf-8")
    (away / "own.properties").write_text("bootstrap.servers=127.0.0.1:1\nsasl.username=${file:nosuch}\n", "utf-8")
    # Relative to the file that was given, wherever that is.
    ended = reconciler("snapshot", "--client", "outside/own.properties")
    assert "wants the file nosuch, which cannot be read: No such file" in ended.err
    (root / "prod" / "cluster.yaml").write_text(document("Cluster", "prod", "{simulation: ../prod/state.json}"))
    assert reconciler("plan", "--cluster", "prod").code == 0


def test_with_a_client_of_the_callers_the_documents_own_is_not_looked_at(
    reconciler: Program, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds credentials and does not trust the files gives --client: no host and no secret is taken from them."""
    monkeypatch.setenv("PASSWORD", CANARY)
    text = 'client: {bootstrap.servers: "127.0.0.1:2", sasl.password: "${env:PASSWORD}${file:/nosuch}"}'
    spec(text)(root)
    (tmp_path / "own.properties").write_text("bootstrap.servers=127.0.0.1:1\nrequest.timeout.ms=nonsense\n", "utf-8")
    ended: Ended = reconciler("snapshot", "--cluster", "prod", "--client", "own.properties")
    assert (ended.code, "nosuch" in ended.err, "127.0.0.1:2" in ended.err) == (1, False, False), ended
    assert CANARY not in ended.out + ended.err
