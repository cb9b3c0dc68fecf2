"""Plants what a program takes for its own where it is started; nothing of it may be run or believed.

`RUN`: files that a shell, Python, pip, git, Java or Spark runs, or reads its settings from, where it starts, beside a
program, or in an environment. `BELIEVED`: what a job writes for another job or step, committed beforehand.
"""

import importlib.util
import marshal
import zipfile
from pathlib import Path

CANARY = "planted-c4n4ry"
_MODULES = (
    "venv",
    "json",
    "runpy",
    "zipfile",
    "urllib",
    "re",
    "sitecustomize",
    "usercustomize",
    "conftest",
    "yaml",
    "pip",
)
_BESIDE = ("", "desired-state/", ".github/actions/", ".github/actions/plan/", ".gitlab/reconciler/", "kubernetes/")
_PROGRAMS = ("reconciler", "python3", "python", "pip", "git", "bash", "sed", "tee", "awk")
_ENVIRONMENTS = ("venv", ".venv", "reconciler-job")
_SHELL = (".bashrc", ".bash_profile", ".profile", ".bash_env", ".envrc", ".gitlab/reconciler/.bashrc")
_SETTINGS = (
    *("pip.conf", ".config/pip/pip.conf", ".pip/pip.conf", "setup.cfg", ".pydistutils.cfg"),
    *(".gitconfig", ".config/git/config", "pyvenv.cfg", ".python-version", "python3._pth"),
    *("spark-defaults.conf", "conf/spark-defaults.conf", "log4j2.properties", "client.properties", ".env"),
)
_SETTING = "[global]\nindex-url = http://127.0.0.1:9/{canary}\n[core]\nhooksPath = hooks\nfsmonitor = ./bin/python3\n"
RUN = frozenset(
    [
        *(f"{folder}{name}.py" for folder in _BESIDE for name in _MODULES),
        *(
            f"{folder}{name}/__init__.py"
            for folder in _BESIDE
            for name in ("github_api", "latest_artifact", "reconciler")
        ),
        *(f"{folder}__pycache__/github_api.cpython-3{minor}.pyc" for folder in _BESIDE for minor in range(11, 15)),
        *_PROGRAMS[1:],
        *(f"bin/{name}" for name in _PROGRAMS),
        *(f"{folder}/bin/{name}" for folder in _ENVIRONMENTS for name in _PROGRAMS),
        *(f"{folder}/lib/python3.11/site-packages/{CANARY}.pth" for folder in _ENVIRONMENTS),
        *(f"{folder}/{name}" for folder in _ENVIRONMENTS for name in ("pyvenv.cfg", "pip.conf")),
        *("hooks/post-checkout", "hooks/pre-commit", ".githooks/post-checkout", "setup.py", "pyproject.toml"),
        *_SHELL,
        *_SETTINGS,
    ]
)
BELIEVED = frozenset(
    [
        *(f"{folder}{name}" for folder in ("", "reconciler-job/", "planned/") for name in ("plan.json", "plan.md")),
        *(
            f"{folder}{name}"
            for folder in ("", "reconciler-job/")
            for name in ("result", "log", "snapshot.json", "apply.yml")
        ),
        *("told.log", "clusters.yml", "plans/proposed-plan-demo/plan.md", "plan/plan.json", "plan/next-stage.txt"),
        "states/state-demo/snapshot.json",
        *(f"results/result-{verb}-demo/result" for verb in ("plan", "apply")),
        *("runs/demo/0ld.jsonl", "runs/demo/0ld.plan.json", "runs/journal.jsonl", "reconciler-job/journal.jsonl"),
    ]
)


def plant(top: Path, canary: str) -> None:
    """Write all of it below that folder; what runs makes the file `canary`, and what is believed holds CANARY."""
    python = f"open({canary!r}, 'a').write(globals().get('__file__', 'compiled'))"
    for name in sorted(RUN | BELIEVED):
        path = top / name
        if path.exists():
            raise AssertionError(f"{name} is a file of the project")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_content(name, python, canary))
        path.chmod(0o755)


def _content(name: str, python: str, canary: str) -> bytes:  # noqa: PLR0911 - a row of a table each
    end = Path(name).suffix
    if name in BELIEVED:
        return (
            f"<!-- reconciler plan {CANARY} -->\n<!-- reconciler labels: no changes -->\n3\nerror: {CANARY}\n".encode()
        )
    if name.endswith((".conf", "config", ".cfg", ".properties", ".env", "._pth")):
        return _SETTING.format(canary=CANARY).encode()
    if end == ".py":
        return python.encode()
    if end == ".pth":
        return f"import sys; open({canary!r}, 'a').write('pth')\n".encode()
    if end == ".pyc":
        # The second word says that no source is compared.
        header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
        return header + marshal.dumps(compile(python, name, "exec"))
    if end == ".toml":
        return b'[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
    return f'#!/bin/sh\necho "$0" >>{canary}\nexit 1\n'.encode()


def wheel(folder: Path, program: Path) -> Path:
    """Write a wheel of the project's name, whose `reconciler` becomes that program; return it."""
    info = "kafka_reconciler-0.1.0.dist-info"
    script = f"import os, sys\ndef main():\n    os.execv({str(program)!r}, ['reconciler', *sys.argv[1:]])\n"
    files = {
        "reconciler_shim.py": script,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: kafka-reconciler\nVersion: 0.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nreconciler = reconciler_shim:main\n",
    }
    path = folder / "kafka_reconciler-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": "".join(f"{name},,\n" for name in files)}.items():
            archive.writestr(name, text)
    return path
