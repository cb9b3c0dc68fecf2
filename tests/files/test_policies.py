from pathlib import Path

import pytest

from reconciler.files.policies import read_policies
from reconciler.model.problem import InvalidInput

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


def test_a_cluster_called_policies_holds_no_policies_for_others(tmp_path: Path) -> None:
    _write(tmp_path, policies__a=QUERY, policies__policies__own=QUERY)
    (tmp_path / "policies" / "main.yaml").write_text("apiVersion: reconciler/v1\nkind: Cluster # one\n")
    assert read_policies(tmp_path, "prod") == ()
    assert [policy.at.file for policy in read_policies(tmp_path, "policies")] == ["policies/policies/own.sql"]


def test_other_files_of_the_folder_are_no_policies(tmp_path: Path) -> None:
    _write(tmp_path, policies__a=QUERY)
    for name in ("README.md", "b.sql.off", ".c.sql"):
        (tmp_path / "policies" / name).write_text("DROP TABLE topics")
    assert len(read_policies(tmp_path, "prod")) == 1


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
