from pathlib import Path

import pytest
from helpers.program.call import Program


@pytest.fixture
def reconciler(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Return the program, called in an empty folder, with none of its variables set."""
    import os

    for name in [name for name in os.environ if name.startswith("RECONCILER_")]:
        monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Program(capsys)
