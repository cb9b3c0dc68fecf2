"""Whether there is a Java that Spark can run on, found where Spark itself looks for it."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from reconciler.model.problem import ReconcilerError

OLDEST_JAVA = 17
NO_JAVA = "KR021"
OLD_JAVA = "KR022"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_TIMEOUT_SECONDS = 60


def require_java(environ: Mapping[str, str]) -> None:
    """Raise ReconcilerError where Java is missing or older than 17, in one sentence that says what to do."""
    program = _java_program(environ)
    version = java_version(_told_version(program))
    if version is None:
        raise ReconcilerError(
            f"{program} does not say which Java it is, so Spark cannot be started: "
            f"install Java {OLDEST_JAVA} or newer, or point JAVA_HOME at one",
            code=NO_JAVA,
        )
    if version < OLDEST_JAVA:
        raise ReconcilerError(
            f"{program} is Java {version}, and Spark needs {OLDEST_JAVA} or newer: "
            "install one, or point JAVA_HOME at it",
            code=OLD_JAVA,
        )


def java_version(told: str) -> int | None:
    """Return the major version in what `java -version` tells, None where there is none: 1.8 is 8."""
    found = _VERSION.search(told)
    return int(found[1]) if found else None


def _java_program(environ: Mapping[str, str]) -> str:
    """Return the java that Spark's own scripts would run: of JAVA_HOME where that is set, else of the PATH."""
    home = environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if program.is_file():
            return str(program)
        raise ReconcilerError(
            f"JAVA_HOME is {home}, which holds no bin/java, so Spark cannot be started: "
            f"point it at Java {OLDEST_JAVA} or newer, or unset it",
            code=NO_JAVA,
        )
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        raise ReconcilerError(
            f"Java is missing, and Spark runs on it: install Java {OLDEST_JAVA} or newer, or point JAVA_HOME at one",
            code=NO_JAVA,
        )
    return found


def _told_version(program: str) -> str:
    try:
        ended = subprocess.run(  # noqa: S603 - the java that Spark is about to run anyway
            [program, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ended.stderr + ended.stdout
