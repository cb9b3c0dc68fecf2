"""The helper that asks Kafka's classes: what it says where they cannot be asked, and that its groups stay the same."""

from pathlib import Path

import pytest
from groups.java_assignors import why_not
from groups.scenarios import KINDS, scenario, scenarios


def test_a_java_without_compiler_is_a_reason_to_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "java"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 || echo java.base@17.0.1\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert "needs a JDK" in (why_not.__wrapped__() or "")


def test_the_same_seed_gives_the_same_group() -> None:
    assert scenarios(20) == [scenario(seed) for seed in range(20)]
    assert {each["class"] for each in scenarios(len(KINDS))} == set(KINDS)
    assert scenario(3)["topics"] != scenario(13)["topics"]
