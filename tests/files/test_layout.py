"""Which file a new topic goes to, which class those named alike have, and documents added so that every byte stays."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.program.documents import document

from reconciler.files.layout import LaidFile, class_home, homes, laid_files, usual_classes, with_added
from reconciler.files.strict_yaml import read_yaml

A = document("Topic", "a")
NEW = document("Topic", "new", "{partitions: 1}")
SHOP = {"shop.yaml": ["shop.orders", "shop.returns"], "web.yaml": ["web.clicks", "pages"]}


def laid(topics: Mapping[str, list[str]]) -> list[LaidFile]:
    return [LaidFile(name, b"", dict.fromkeys(held), {}) for name, held in topics.items()]


@pytest.mark.parametrize(
    ("topic", "there", "home"),
    [
        ("shop.carts", SHOP, "shop.yaml"),
        ("shop-carts", SHOP, "shop.yaml"),
        ("SHOP_CARTS", SHOP, "shop.yaml"),
        ("web.clicks.late", SHOP, "web.yaml"),
        ("pages", SHOP, "web.yaml"),
        ("lonely", SHOP, "other.yaml"),
        ("lonely", {**SHOP, "other.yaml": []}, "other-2.yaml"),
        ("lonely", {"shop.yaml": ["shop.orders", "shop.returns"]}, "shop.yaml"),
        ("lonely", {"example.yaml": ["example"]}, "other.yaml"),
        ("shop.a", {"a.yaml": ["shop.x", "shop.y"], "b.yaml": ["shop.z"]}, "a.yaml"),
        ("shop.a.new", {"a.yaml": ["shop.x", "shop.y"], "b.yaml": ["shop.a.z"]}, "b.yaml"),
        ("shop.new", {"b.yaml": ["shop.x"], "a.yaml": ["shop.y"]}, "a.yaml"),
        ("x.c", {"t/x.a.yaml": ["x.a"], "t/x.b.yaml": ["x.b"], "u/y.yaml": ["y"]}, "t/x.c.yaml"),
        ("lonely", {"t/x.yaml": ["x"], "t/y.yaml": ["y"]}, "t/lonely.yaml"),
        (".x", {"t/x.yaml": ["x"], "t/y.yaml": ["y"]}, "t/x.yaml"),
        ("lonely", {"t/shop/x.yaml": ["x"], "t/web/y.yaml": ["y"]}, "t/other.yaml"),
        ("lonely", {"t/shop/x.yaml": ["x"], "y.yaml": ["y"]}, "other.yaml"),
    ],
)
def test_a_topic_goes_where_those_are_that_share_most_words_with_it(
    topic: str, there: Mapping[str, list[str]], home: str
) -> None:
    assert homes([topic], laid(there)) == {topic: home}


def test_new_topics_that_share_a_word_go_to_one_new_file() -> None:
    names = ["cdc.a", "cdc.b", "cdc.c", "lonely"]
    assert homes(names, laid(SHOP)) == {**dict.fromkeys(names, "cdc.yaml"), "lonely": "other.yaml"}


def test_the_class_of_most_topics_that_share_most_words_is_the_usual_one() -> None:
    files = [LaidFile("a.yaml", b"", {"x.a": "gold", "x.b": "gold", "x.c": "tin", "x.c.d": None, "y": "tin"}, {})]
    assert usual_classes(["x.new", "x.c.new", "y-new", "z"], files) == {
        "x.new": "gold",
        "x.c.new": "tin",
        "y-new": "tin",
    }


def test_what_a_folder_declares_is_read_and_a_file_behind_a_link_is_no_home(tmp_path: Path) -> None:
    folder = tmp_path / "prod"
    (folder / "sub").mkdir(parents=True)
    (folder / "cluster.yaml").write_text(document("Cluster", "prod"))
    classes = document("TopicClass", "gold", "{replicationFactor: 3}")
    (folder / "sub" / "c.yaml").write_text(f"{classes}---\n{document('Topic', 'x.a', '{class: gold}')}")
    (tmp_path / "shared.yaml").write_text(document("Topic", "y.a"))
    (folder / "linked.yaml").symlink_to(tmp_path / "shared.yaml")
    read = {file.name: file for file in laid_files(tmp_path, "prod")}
    assert [*read] == ["cluster.yaml", "linked.yaml", "sub/c.yaml"]
    assert (dict(read["sub/c.yaml"].topics), [*read["sub/c.yaml"].classes]) == ({"x.a": "gold"}, ["gold"])
    assert read["sub/c.yaml"].classes["gold"].replication_factor == 3
    assert (read["linked.yaml"].is_own, read["sub/c.yaml"].is_own) == (False, True)
    files = list(read.values())
    assert homes(["y.b", "x.b"], files) == {"x.b": "sub/c.yaml", "y.b": "sub/other.yaml"}
    assert class_home(files) == "sub/c.yaml"
    assert class_home([read["cluster.yaml"]]) == "classes.yaml"
    assert class_home(laid({"classes.yaml": ["x"]})) == "classes-2.yaml"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "# only a comment",
        A,
        A.rstrip("\n") + "   # no line end, a comment",
        A.replace("\n", "\r\n"),
        "\ufeff" + document("Topic", "é"),
        f"---\n{A}---\n",
        f"{A}...\n",
        f"{A}# the end\n\n\n",
        "{kind: Topic,\n metadata: {name: a}}",
        "a: |+\n  text\n\n",
        "a: |-\n  text",
    ],
)
def test_documents_are_added_behind_what_is_there_and_every_byte_stays(content: str) -> None:
    before = content.encode()
    after = with_added(before, NEW)
    assert after is not None
    assert after.startswith(before)
    assert read_yaml(after, "").documents == [*read_yaml(before, "").documents, *read_yaml(NEW.encode(), "").documents]
    assert (b"\r" in after) == (b"\r" in before)
    assert after.count(b"\n") == after.count(b"\r\n") or b"\r" not in before


@pytest.mark.parametrize("content", ["a: |\n  text", 'a: "open', "a: [1,"])
def test_nothing_is_added_where_what_is_declared_would_change(content: str) -> None:
    assert with_added(content.encode(), NEW) is None
