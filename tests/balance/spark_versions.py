"""Environments of Python with other versions of PySpark, made once and kept in the user's cache folder.

Such an environment has PySpark, and what Spark Connect's client needs, of its own; all else is that of these tests.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from helpers.brokers.kafka_jars import cache_folder
from helpers.waiting import HANG

VERSIONS = ("4.0.5", "4.1.4", "4.3.0")
_OF_CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "protobuf", "zstandard")


def python_with(version: str) -> Path:
    """Return the Python of an environment with that PySpark, made first if it is missing."""
    target = _folder() / f"pyspark-{version}"
    if not target.exists():
        _folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_folder(), prefix=f".pyspark-{version}-") as workspace:
            made = Path(workspace) / "env"
            _run(sys.executable, "-m", "venv", "--without-pip", str(made))
            pip = (sys.executable, "-m", "pip", "--python", str(made / "bin" / "python"), "install", "--quiet")
            _run(*pip, "--ignore-installed", "--no-deps", f"pyspark=={version}", "py4j<0.10.9.10", *_OF_CONNECT)
            made.rename(target)
    # Other packages are those of the running environment; the one that made this may be gone.
    packages = target / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    (packages / "tests.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return target / "bin" / "python"


def _folder() -> Path:
    named = os.environ.get("SPARK_VERSIONS")
    return Path(named) if named else cache_folder() / "spark"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, f"{command}: {(done.stdout + done.stderr)[-1500:]}"
