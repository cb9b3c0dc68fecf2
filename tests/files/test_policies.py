from pathlib import Path

import pytest

from reconciler.files.load import load_cluster, load_desired
from reconciler.files.policies import read_policies
from reconciler.model.problem import InvalidInput
from reconciler.workflow.inputs import checked_name, cluster_names

QUERY = "SELECT topic FROM topics\n"


def _write(root: Path, **texts: str) -> Path:
    for name, text in texts.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".sql").write_text(text, encoding="utf-8")
    return root


def _refused(root: Path) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        read_policies(root, "prod")
    return [str(problem) for problem in refused.value.problems]


def test_the_policies_of_the_root_come_before_those_of_the_cluster_each_by_name(tmp_path: Path) -> None:
    _write(tmp_path, policies__b=QUERY, policies__a=QUERY, prod__policies__a=QUERY, test__policies__z=QUERY)
    found = [str(policy.at) for policy in read_policies(tmp_path, "prod")]
    assert found == ["policies/a.sql:1", "policies/b.sql:1", "prod/policies/a.sql:1"]


CLUSTER = "apiVersion: reconciler/v1\nkind: Cluster\nmetadata: {name: policies}\nspec: {}\n"


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        ("policies/notes.yaml", CLUSTER, "the root's folder policies is no cluster"),
        ("policies/cluster.yaml", CLUSTER, "the root's folder policies is no cluster"),
        ("policies/notes.yml", '{"kind": "Cluster"}', "the root's folder policies is no cluster"),
        ("policies/Notes.YAML", "kind: !!str Cluster", "the root's folder policies is no cluster"),
        ("policies/.hidden.yaml", CLUSTER, "the root's folder policies is no cluster"),
        ("policies/owners.yaml", "kind: Owner", "move it into a cluster's folder"),
        ("policies/empty.yaml", "", "move it into a cluster's folder"),
        ("policies/deep/cluster.yaml", CLUSTER, "is a folder, and policies in it are not read"),
        ("policies/b.SQL", QUERY, "looks like a policy"),
        ("policies/.b.sql", QUERY, "looks like a policy"),
        ("prod/policies/.b.sql", QUERY, "looks like a policy"),
        ("policies/team/b.sql", QUERY, "is a folder, and policies in it are not read"),
        ("policies/.team/b.sql", QUERY, "is a folder, and policies in it are not read"),
        ("prod/policies/team/b.sql", QUERY, "is a folder, and policies in it are not read"),
        ("Policies/b.sql", QUERY, "looks like a folder of policies"),
        (".policies/b.sql", QUERY, "looks like a folder of policies"),
        ("prod/POLICIES/b.sql", QUERY, "looks like a folder of policies"),
        ("policies/empty.sql", "", "the policy asks nothing"),
        ("policies/empty.sql", "-- SELECT 1", "the policy asks nothing"),
    ],
)
def test_no_file_of_the_root_switches_policies_off_unseen(
    tmp_path: Path, path: str, content: str, sentence: str
) -> None:
    """The policy of the root holds, or each verb that asks policies says what is in its way."""
    _write(tmp_path, policies__a=QUERY)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(content, "utf-8")
    (problem,) = _refused(tmp_path)
    assert problem.startswith(path.rpartition("/")[0])
    assert sentence in problem


@pytest.mark.parametrize(
    "path", ["README.md", "a.sql.off", "prod/README.md", "prod/x.yaml", "prod/policies/topics.yaml"]
)
def test_other_files_leave_the_policies_as_they_are(tmp_path: Path, path: str) -> None:
    _write(tmp_path, policies__a=QUERY)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(CLUSTER, "utf-8")
    assert [policy.at.file for policy in read_policies(tmp_path, "prod")] == ["policies/a.sql"]


@pytest.mark.parametrize("folder", ["policies", "prod/policies"])
@pytest.mark.parametrize("target", ["nowhere", "../..", "/"])
def test_a_folder_of_policies_that_leads_away_is_an_error(tmp_path: Path, folder: str, target: str) -> None:
    root = tmp_path / "root"
    (root / folder).parent.mkdir(parents=True)
    (root / folder).symlink_to(target)
    (problem,) = _refused(root)
    assert problem.startswith(folder)


def test_the_roots_policies_are_no_link_and_a_clusters_may_be(tmp_path: Path) -> None:
    _write(tmp_path, prod__shared=QUERY, prod__policies__a=QUERY)
    (tmp_path / "policies").symlink_to("prod")
    assert "is a link" in _refused(tmp_path)[0]
    (tmp_path / "policies").unlink()
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "policies").symlink_to("../prod/policies")
    assert len(read_policies(tmp_path, "test")) == 1


@pytest.mark.parametrize("name", ["policies", "Policies"])
def test_no_cluster_is_called_policies(tmp_path: Path, name: str) -> None:
    for cluster in (name, "prod"):
        (tmp_path / cluster).mkdir()
        (tmp_path / cluster / "cluster.yaml").write_text(CLUSTER.replace("policies", cluster), "utf-8")
    assert cluster_names(str(tmp_path)) == ("prod",)
    for read in (load_desired, load_cluster):
        with pytest.raises(InvalidInput, match="is never a cluster"):
            read(tmp_path, name)
    with pytest.raises(InvalidInput, match="and not policies"):
        checked_name(name)


def test_a_limit_holds_however_the_ending_of_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "cluster.yaml").write_text(CLUSTER.replace("policies", "prod"), "utf-8")
    (tmp_path / "prod" / "owners.YAML").write_text(
        "apiVersion: reconciler/v1\nkind: Owner\nmetadata: {name: a}\nspec: {topics: ['*'], limits: {topics: 1}}\n"
    )
    assert [owner.name for owner in load_desired(tmp_path, "prod").owners] == ["a"]


@pytest.mark.parametrize(
    ("text", "title", "line"),
    [
        ("-- No topic is lost. More of it.\nSELECT 1", "No topic is lost", 2),
        ("--No topic\n--   is lost:\n\n-- other\nSELECT 1", "No topic is lost", 5),
        ("/* not this */ SELECT 1 -- nor this", "policy a", 1),
        ("\n\n  with x as (select 1) select * from x", "policy a", 3),
    ],
)
def test_the_first_sentence_of_the_comment_above_is_the_rule(tmp_path: Path, text: str, title: str, line: int) -> None:
    policy = read_policies(_write(tmp_path, policies__a=text), "prod")[0]
    assert (policy.title, policy.at.line) == (title, line)


@pytest.mark.parametrize(
    ("end", "kept"), [(";", " "), (" ; -- done; ", "   -- done; "), (";\n;\n/* ; */\n", " \n \n/* ; */\n")]
)
def test_semicolons_at_the_end_are_left_out_and_nothing_else(tmp_path: Path, end: str, kept: str) -> None:
    policy = read_policies(_write(tmp_path, policies__a=f"SELECT ';' AS a{end}"), "prod")[0]
    assert policy.query == f"SELECT ';' AS a{kept}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "1:1: the policy asks nothing"),
        ("-- only words\n;", "1:1: the policy asks nothing"),
        ("\nDROP TABLE topics", "2:1: a policy only asks: begin it with SELECT or WITH, not with DROP"),
        ("select 1;\nselect 2", "1:1: a policy is one query"),
    ],
)
def test_what_is_not_one_query_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    found = _refused(_write(tmp_path, policies__a=text))
    assert len(found) == 1
    assert found[0].startswith("policies/a.sql:")
    assert sentence in found[0]
    assert "KR182" in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "select 'drop table topics; now() rand()' as now, `rand` from topics",
        "select transform(array(1), x -> x + 1), topic from topics join moves using (topic)",
        "with reflect as (select 1) select * from reflect",
    ],
)
def test_words_in_texts_and_names_harm_nobody(tmp_path: Path, text: str) -> None:
    assert read_policies(_write(tmp_path, policies__a=text), "prod")


def test_every_wrong_file_is_told(tmp_path: Path) -> None:
    _write(tmp_path, policies__a="DELETE FROM topics", prod__policies__b="x")
    (tmp_path / "policies" / "c.sql").write_bytes(b"\xff\xfe")
    (tmp_path / "policies" / "d.sql").mkdir()
    (tmp_path / "policies" / "e.sql").write_text("-" * (1 << 21))
    codes = [line.rpartition("(")[2] for line in _refused(tmp_path)]
    assert codes == ["KR182)", "KR181)", "KR181)", "KR181)", "KR182)"]
