"""Whatever text reaches the two streams does nothing there, and JSON says the same as before."""

import json

import click
import pytest
from render.payloads import PAYLOADS
from render.test_inert import is_plain

from reconciler.command.terminal import tell, write


def test_json_on_the_terminal_steers_nothing_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    value = {name: [name, f"\\{name}", "\U0001f600 日本 é"] for name in PAYLOADS.values()}
    write(json.dumps(value, ensure_ascii=False, indent=1))
    out = capsys.readouterr().out
    assert is_plain(out)
    assert json.loads(out) == value
    assert "日本 é" in out


def test_a_text_that_nobody_spelled_out_is_spelled_out_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    for name in PAYLOADS.values():
        write(f"move {name}", "always")
        tell(f"error: {name.replace(chr(10), ' ')}", "always")
    out, err = capsys.readouterr()
    assert all(each.isprintable() or each in "\n\t" for each in click.unstyle(out + err))
    assert "##[" not in out + err
