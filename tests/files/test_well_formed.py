"""A document with something wrong in its form: the rest is checked too, and nothing is told that only follows."""

from pathlib import Path

import pytest

from reconciler.files.load import load_desired, read_declared
from reconciler.model.problem import InvalidInput

HEAD = "apiVersion: reconciler/v1\n"
CLUSTER = f"{HEAD}kind: Cluster\nmetadata: {{name: c}}\nspec: {{simulation: s.json}}\n"
CLASS = """---
apiVersion: reconciler/v1
kind: TopicClass
metadata: {name: base}
spec:
  replicationFactor: 1
  protect: [delete]
  placement: {racks: {only: [a]}, brokers: {only: [1]}}
  config: {min.insync.replicas: 3}
"""


def told(root: Path, topics: str = "", cluster: str = CLUSTER) -> set[str]:
    """Return every problem as it is told."""
    folder = root / "c"
    folder.mkdir(exist_ok=True)
    (folder / "cluster.yaml").write_text(f"{cluster}{CLASS}", "utf-8")
    (folder / "topics.yaml").write_text(topics, "utf-8")
    return {f"{problem.at} {problem.code}: {problem.message}" for problem in read_declared(root, "c").problems}


def topic(spec: str, metadata: str = "name: t") -> str:
    return f"---\n{HEAD}kind: Topic\nmetadata: {{{metadata}}}\nspec: {spec}\n"


# Each: what is wrong, the same mended, and the code of something else that must be told of both.
WRONG = [
    ("{partitions: x, class: none}", "{partitions: 3, class: none}", "KR112"),
    ("{partitions: x, config: {segment.bytes: -5}}", "{partitions: 3, config: {segment.bytes: -5}}", "KR104"),
    ("{partitions: x, config: {retention.ms: 7GiB}}", "{partitions: 3, config: {retention.ms: 7GiB}}", "KR104"),
    ("{clazz: 1, replicationFactor: 2, class: base}", "{state: present, replicationFactor: 2, class: base}", ""),
    ("{replicationFactor: x, class: base}", "{replicationFactor: 3, class: base}", ""),
    ("{replicationfactor: 3, class: base}", "{replicationFactor: 3, class: base}", ""),
    ("{protect: [x], state: absent, class: base}", "{protect: [], state: absent, class: base}", ""),
    ("{partitions: x, state: absent, class: base}", "{partitions: 3, state: absent, class: base}", "KR120"),
    (
        "{placement: {racks: {only: b, leader: [b]}}, class: base}",
        "{placement: {racks: {only: [b], leader: [b]}}, class: base}",
        "",
    ),
    (
        "{placement: {brokers: {only: [1, x, 3]}, assignment: [[1, 2, 3]]}}",
        "{placement: {brokers: {only: [1, 2, 3]}, assignment: [[1, 2, 3]]}}",
        "",
    ),
    (
        "{config: {min.insync.replicas: [1]}, replicationFactor: 2, class: base}",
        "{config: {min.insync.replicas: 1}, replicationFactor: 2, class: base}",
        "",
    ),
    (
        "{partitions: x, replicationFactor: 2, class: base}",
        "{partitions: 3, replicationFactor: 2, class: base}",
        "KR126",
    ),
    ("{class: [base], config: {a b: 1}}", "{class: base, config: {a b: 1}}", "KR103"),
]


def without_column(problems: set[str]) -> set[str]:
    return {" ".join([problem.split(" ")[0].rpartition(":")[0], *problem.split(" ")[1:]]) for problem in problems}


@pytest.mark.parametrize(("wrong", "mended", "also"), WRONG)
def test_beside_a_wrong_form_all_is_told_that_stays_once_it_is_mended_and_nothing_else(
    tmp_path: Path, wrong: str, mended: str, also: str
) -> None:
    found, left = (without_column(told(tmp_path, topic(spec))) for spec in (wrong, mended))
    assert len(found - left) == 1, "only the wrong form itself goes"
    assert any(f" {also}: " in problem for problem in found & left) or not also


@pytest.mark.parametrize("metadata", ["name: a b", "labels: {a: b}, nmae: t", "names: [a b]", "name: 5"])
def test_of_a_topic_whose_name_is_wrong_the_rest_is_checked(tmp_path: Path, metadata: str) -> None:
    found = told(tmp_path, topic("{class: none, state: absent, protect: [delete]}", metadata))
    assert sorted(problem.split(" ")[1] for problem in found if "metadata" not in problem) == ["KR112:", "KR120:"]
    assert sum("metadata" in problem for problem in found) == 1


def test_a_second_declaration_is_told_though_one_of_them_is_wrong(tmp_path: Path) -> None:
    found = told(tmp_path, topic("{partitions: x}") + topic("{partitions: 3}"))
    assert {problem.split(" ")[1] for problem in found} == {"KR104:", "KR110:"}


def test_a_class_with_something_wrong_is_still_a_class_and_one_without_a_name_may_be_any(tmp_path: Path) -> None:
    wrong = CLASS.replace("name: base", "name: wide").replace("[delete]", "[x]")
    assert len(told(tmp_path, wrong + topic("{class: wide, config: {min.insync.replicas: 1}}"))) == 1
    nameless = CLASS.replace("name: base", "name: 5")
    assert len(told(tmp_path, nameless + topic("{class: wide}"))) == 1


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        ("{simulation: s, client: {a: b}, moves: 5}", {"KR104", "KR121"}),
        ("{brokers: [{id: 1}, {state: draining}, 5, {id: 1, state: x}]}", {"KR103", "KR104", "KR110"}),
        (
            "{windows: [{days: [x], from: '22:00', to: '05:00'}], moves: {throttle: 0B/s, x: 1}}",
            {"KR103", "KR104", "KR129"},
        ),
        ("{balance: {replicas: {within: 5}}, limits: {diskUse: 120%}}", {"KR104", "KR129"}),
    ],
)
def test_of_a_cluster_the_rest_is_checked(tmp_path: Path, spec: str, codes: set[str]) -> None:
    found = told(tmp_path, cluster=f"{HEAD}kind: Cluster\nmetadata: {{name: c}}\nspec: {spec}\n")
    assert {problem.split(" ")[1].rstrip(":") for problem in found} == codes


@pytest.mark.parametrize("head", ["", "apiVersion: reconciler/v2\n", f"{HEAD}more: 1\n"])
def test_a_document_of_another_version_is_read_as_this_one(tmp_path: Path, head: str) -> None:
    found = told(tmp_path, cluster=f"{head}kind: Cluster\nmetadata: {{name: d}}\nspec: {{}}\n")
    assert len(found) == 2
    assert any("the Cluster is called d, but its folder c" in problem for problem in found)


@pytest.mark.parametrize(
    "wrong", ["kind: Topic\nmetadata: {name: t}", "kind: Topic\nmetadata: 5\nspec: x", "kind: Topic"]
)
def test_a_document_with_nothing_to_check_has_its_form_told_alone(tmp_path: Path, wrong: str) -> None:
    assert {problem.split(" ")[1] for problem in told(tmp_path, f"{HEAD}{wrong}\n")} <= {"KR103:", "KR104:"}


def test_topics_are_counted_that_are_named_rightly_written_or_not(tmp_path: Path) -> None:
    told(tmp_path, topic("{partitions: x}", "name: a") + topic("{}", "name: b") + topic("{}", "names: ['m*']"))
    assert read_declared(tmp_path, "c").topics == 2


def test_what_is_usable_is_never_loaded_while_anything_is_wrong(tmp_path: Path) -> None:
    told(tmp_path, topic("{partitions: x}"))
    with pytest.raises(InvalidInput):
        load_desired(tmp_path, "c")
