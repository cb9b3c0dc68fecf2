"""Kafka's own jars, fetched once from Maven Central into the user's cache folder.

`jars("4.3.0")` returns a folder with everything a broker needs. The first call for a version takes about a minute
and needs the network; later ones take none. The Ivy jar that PySpark ships does the fetching; without PySpark, `mvn`.
"""

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from helpers.waiting import HANG, asked_again

DEFAULT_VERSION = "4.3.0"
SLF4J_BINDING = "1.7.36"
MANIFEST = "manifest.json"
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Flags of a Java that lives for seconds: to compile for speed costs it more than it gains."""
TEST_JARS = (
    '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="tests" module="kafka"/>'
    "<dependencies>{}</dependencies></ivy-module>"
)
TEST_JAR = (
    '<dependency org="org.apache.kafka" name="{name}" rev="{version}" transitive="false">'
    '<artifact name="{name}" type="jar" ext="jar" m:classifier="test"/></dependency>'
)


class KafkaMissingError(RuntimeError):
    """Kafka cannot be assembled here; the text says what to install."""


def jars(version: str) -> Path:
    """Return the folder of a version's jars, fetching them first if it is missing or incomplete."""
    target = cache_folder() / f"kafka-{version}"
    if is_complete(target, version):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".kafka-{version}-") as workspace:
        fetched = Path(workspace) / "libs"
        fetched.mkdir()
        _fetch(version, fetched, Path(workspace))
        sizes = {jar.name: jar.stat().st_size for jar in sorted(fetched.glob("*.jar"))}
        (fetched / MANIFEST).write_text(json.dumps(sizes, indent=1, sort_keys=True) + "\n")
        if not is_complete(fetched, version):
            raise KafkaMissingError(
                f"Kafka {version} came incomplete: {len(sizes)} jars without kafka_2.13-{version}.jar."
            )
        _publish(fetched, target, version)
    return target


def tools_jar(version: str) -> Path:
    """Return the jar of a version's command-line tools, fetching it first; it runs on the class path of `jars`."""
    name = f"kafka-tools-{version}.jar"
    target = cache_folder() / "tools" / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{version}-") as workspace:
            fetched = Path(workspace) / "libs"
            fetched.mkdir()
            # The rest is in `jars`.
            fetch_alone(("org.apache.kafka", "kafka-tools", version), fetched, Path(workspace))
            (fetched / name).replace(target)
    return target


def fetch_alone(module: tuple[str, str, str], into: Path, workspace: Path) -> None:
    """Fetch the jar of a module into that folder, without what it depends on."""
    ivy = _ivy_jar()
    if ivy is None:
        raise KafkaMissingError(f"Fetching {module[1]} needs PySpark (`pip install 'kafka-reconciler[test]'`).")
    _fetch_with_ivy(ivy, module, into, workspace, "-notransitive")


def fetch_all(module: tuple[str, str, str], into: Path, workspace: Path) -> None:
    """Fetch the jars of a module and of what it depends on into that folder."""
    ivy = _ivy_jar()
    if ivy is None:
        raise KafkaMissingError(f"Fetching {module[1]} needs PySpark (`pip install 'kafka-reconciler[test]'`).")
    _fetch_with_ivy(ivy, module, into, workspace)


def tiered_storage_jars(version: str) -> Path:
    """Return the folder of Kafka's own test jars with a remote tier in a local folder, fetching them first."""
    target = cache_folder() / f"tiered-{version}"
    ivy = _ivy_jar()
    if not target.exists():
        if ivy is None:
            raise KafkaMissingError(
                "Fetching Kafka's test jars needs PySpark (`pip install 'kafka-reconciler[test]'`)."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".tiered-{version}-") as workspace:
            wanted = "".join(TEST_JAR.format(name=name, version=version) for name in ("kafka-storage", "kafka-clients"))
            (Path(workspace) / "ivy.xml").write_text(TEST_JARS.format(wanted))
            fetched = Path(workspace) / "libs"
            command = [java(), "-jar", str(ivy), "-cache", f"{workspace}/ivy", "-ivy", f"{workspace}/ivy.xml"]
            _run([*command, "-retrieve", f"{fetched}/[artifact]-[revision]-test.[ext]"], "fetching Kafka's test jars")
            with contextlib.suppress(OSError):  # another run put them there meanwhile
                fetched.rename(target)
    return target


def mirror_maker_jars(version: str) -> Path:
    """Return the folder of a version's Connect with MirrorMaker 2, fetching it first; `jars` hold what logs."""
    target = cache_folder() / f"mirror-maker-{version}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".mirror-maker-{version}-") as workspace:
            fetched = Path(workspace) / "libs"
            fetch_all(("org.apache.kafka", "connect-mirror", version), fetched, Path(workspace))
            with contextlib.suppress(OSError):  # another run put them there meanwhile
                fetched.rename(target)
    return target


def is_complete(folder: Path, version: str) -> bool:
    """Whether the folder holds exactly the jars its manifest names, Kafka's own among them."""
    try:
        wanted = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return False
    present = {jar.name: jar.stat().st_size for jar in folder.glob("*.jar")}
    return bool(present == wanted) and f"kafka_2.13-{version}.jar" in present


def cache_folder() -> Path:
    """Return the folder under the user's cache where jars are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kafka-reconciler"


def java() -> str:
    """Return the path of a Java that can run Kafka 4: 17 or later."""
    found = shutil.which("java")
    if found is None:
        raise KafkaMissingError("Tests marked `brokers` need Java 17 or later, and there is no `java` on the PATH.")
    told = _version_told_by(found)
    number = re.search(r'version "(\d+)', told)
    if number is None or int(number.group(1)) < 17:
        first = told.splitlines()[0] if told else "nothing"
        raise KafkaMissingError(f"Tests marked `brokers` need Java 17 or later; `java -version` says {first}.")
    return found


def java_release() -> str:
    """Return what tells one release of Java from another, short enough for a file's name."""
    return hashlib.sha256(_version_told_by(java()).encode()).hexdigest()[:12]


@functools.cache
def _version_told_by(path: str) -> str:
    return subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr


def _fetch(version: str, into: Path, workspace: Path) -> None:
    ivy = _ivy_jar()
    if ivy is not None:
        _fetch_with_ivy(ivy, ("org.apache.kafka", "kafka_2.13", version), into, workspace)
        _fetch_with_ivy(ivy, ("org.slf4j", "slf4j-simple", SLF4J_BINDING), into, workspace)
    elif shutil.which("mvn"):
        _fetch_with_maven(version, into, workspace)
    else:
        raise KafkaMissingError(
            "Fetching Kafka needs PySpark (`pip install 'kafka-reconciler[test]'`) or `mvn` on the PATH."
        )


def _ivy_jar() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


def _fetch_with_ivy(ivy: Path, module: tuple[str, str, str], into: Path, workspace: Path, *options: str) -> None:
    # No `-types jar`: it would drop the jars that are packed as OSGi bundles.
    command = [java(), "-jar", str(ivy), "-cache", str(workspace / "ivy"), "-dependency", *module, "-confs", "default"]
    _run(
        [*command, *options, "-retrieve", f"{into}/[artifact]-[revision].[ext]"],
        f"fetching {':'.join(module)} with Ivy",
    )


def _fetch_with_maven(version: str, into: Path, workspace: Path) -> None:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
        for group, name, number in (
            ("org.apache.kafka", "kafka_2.13", version),
            ("org.slf4j", "slf4j-simple", SLF4J_BINDING),
        )
    )
    (workspace / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>kafka</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
    command = ["mvn", "-q", "-f", str(workspace / "pom.xml"), "dependency:copy-dependencies"]
    _run([*command, f"-DoutputDirectory={into}"], f"fetching Kafka {version} with Maven")


def _run(command: list[str], what: str) -> None:
    """Run a command that fetches; a name that does not resolve, or a line that breaks, may be there a moment later."""

    def fetch() -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
        if done.returncode != 0:
            raise KafkaMissingError(f"{what} failed: {(done.stdout + done.stderr)[-1500:]}")

    asked_again(fetch, KafkaMissingError, pause=8, at_most=4)


def _publish(fetched: Path, target: Path, version: str) -> None:
    """Rename into place; a complete folder that another run put there meanwhile is as good."""
    if target.exists() and not is_complete(target, version):
        shutil.rmtree(target)
    try:
        fetched.rename(target)
    except OSError:
        if not is_complete(target, version):
            raise
