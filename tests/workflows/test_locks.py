"""The locks hold what pyproject.toml asks for, with hashes, for every machine that the program is made for."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.figures import Tell
from helpers.program.call import captured
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / ".github" / "locks"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = {"aws": "aws", "base": None, "loads": "loads", "spark": "all"}
MACHINES = [
    {
        "sys_platform": "linux",
        "platform_machine": machine,
        "python_version": version,
        "python_full_version": f"{version}.1",
    }
    for machine in ("x86_64", "aarch64")
    for version in ("3.11", "3.12", "3.13")
]
PIN = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[\w.]+)(?: ; (?P<marker>[^\\]+?))?(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)"
)


@dataclass(frozen=True)
class Pin:
    """One line of a lock."""

    name: str
    version: str
    marker: str
    hashes: int

    def holds_on(self, machine: Mapping[str, str]) -> bool:
        return not self.marker or Marker(self.marker).evaluate(dict(machine))


def pins(lock: str) -> list[Pin]:
    """Return the lines of a lock; one that names anything but a version and its hashes is a failure."""
    text = (LOCKS / f"{lock}.txt").read_text("ascii")
    found = []
    for line in re.sub(r" \\\n +", " ", text).splitlines():
        if not line.startswith("#"):
            pin = PIN.fullmatch(line)
            assert pin, f"{lock}.txt: {line}"
            found.append(Pin(pin["name"], pin["version"], pin["marker"] or "", pin["hashes"].count("sha256:")))
    return found


def asked_for(lock: str) -> Iterator[Requirement]:
    """Yield what pyproject.toml asks for in that lock; extras of the project itself are followed."""
    if lock in PROJECT["dependency-groups"]:
        yield from map(Requirement, PROJECT["dependency-groups"][lock])
        return
    yield from map(Requirement, PROJECT["project"]["dependencies"])
    extra = EXTRAS[lock]
    if extra is not None:
        yield from of_extra(extra)


def of_extra(extra: str) -> Iterator[Requirement]:
    for one in map(Requirement, PROJECT["project"]["optional-dependencies"][extra]):
        if one.name == PROJECT["project"]["name"]:
            for other in one.extras:
                yield from of_extra(other)
        else:
            yield one


ALL = sorted([*EXTRAS, *PROJECT["dependency-groups"]])


def test_there_is_a_lock_for_each_set_and_no_other(figures: Tell) -> None:
    assert sorted(path.stem for path in LOCKS.glob("*.txt")) == ALL
    counts = {lock: pins(lock) for lock in ALL}
    figures(
        "locks",
        "; ".join(f"{lock}: {len(c)} packages, {sum(pin.hashes for pin in c)} hashes" for lock, c in counts.items()),
    )


@pytest.mark.parametrize("lock", ALL)
def test_a_lock_holds_what_pyproject_asks_for(lock: str) -> None:
    by_name = {pin.name: pin for pin in pins(lock)}
    for one in asked_for(lock):
        pin = by_name.get(canonicalize_name(one.name))
        assert pin is not None, f"{one} is not in {lock}.txt: run .github/locks/renew"
        assert one.specifier.contains(pin.version), f"{one} is {pin.version} in {lock}.txt: run .github/locks/renew"


@pytest.mark.parametrize("lock", ALL)
def test_a_lock_gives_every_machine_one_version_of_a_package(lock: str) -> None:
    for machine in MACHINES:
        names = [pin.name for pin in pins(lock) if pin.holds_on(machine)]
        assert sorted(set(names)) == names


def test_a_package_has_one_version_with_spark_and_without() -> None:
    spark = set(pins("spark"))
    assert set(pins("base")) < set(pins("loads")) < spark
    assert set(pins("base")) < set(pins("aws")) < spark
    assert set(of_extra("all")) == set(of_extra("spark")) | set(of_extra("aws"))


def test_the_build_backend_is_locked() -> None:
    assert set(PROJECT["build-system"]["requires"]) <= set(PROJECT["dependency-groups"]["build"])


def test_extras_without_a_lock_are_refused_in_one_sentence(tmp_path: Path) -> None:
    for extras in ("test", "base", "tools", "loads,spark", "../locks/base"):
        done = installing(extras, tmp_path)
        assert done.returncode == 1
        assert done.stderr == (
            f"::error::extras: '{extras}' has no lock in .github/locks; give aws, loads, spark, all, or nothing.\n"
        )
    assert list(tmp_path.iterdir()) == []


def installing(extras: str, temp: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RUNNER_TEMP": str(temp), "GITHUB_PATH": str(temp / "path")}
    return captured([ROOT / ".github" / "actions" / "install.sh", extras], env=environment)


@pytest.mark.deep
@pytest.mark.parametrize("extras", ["", "all"])
def test_what_is_locked_is_enough_and_fits_together(extras: str, tmp_path: Path) -> None:
    done = installing(extras, tmp_path)
    assert done.returncode == 0, done.stderr
    programs = Path((tmp_path / "path").read_text().strip())
    subprocess.run([programs / "pip", "check"], check=True)
    listed = captured([programs / "pip", "freeze"], check=True).stdout.splitlines()
    locked = {(pin.name, pin.version) for pin in [*pins("spark" if extras else "base"), *pins("build")]}
    ours = PROJECT["project"]["name"]
    installed = {(canonicalize_name(name), version) for name, _, version in (line.partition("==") for line in listed)}
    assert {one for one in installed if not one[0].startswith(ours)} <= locked
    help_text = captured([programs / "reconciler", "--help"], tmp_path, check=True)
    assert help_text.stdout.startswith("Usage: reconciler")


@pytest.mark.deep
def test_every_machine_finds_a_wheel_of_each_package_but_pyspark(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    subprocess.run([sys.executable, "-m", "venv", tools], check=True)
    wheels = ["--require-hashes", "--only-binary", ":all:"]
    subprocess.run([tools / "bin" / "pip", "install", "-q", *wheels, "-r", LOCKS / "tools.txt"], check=True)
    # Asked for a platform, uv does not install, and fetches no more than what a package says of itself.
    dry: list[str | Path] = ["pip", "install", "--no-config", "--dry-run", "--target", tmp_path / "none", *wheels]
    for machine in MACHINES:
        platform = f"{machine['platform_machine']}-manylinux_2_28"
        where = ["--python-platform", platform, "--python-version", machine["python_version"]]
        for lock in EXTRAS:
            command: list[str | Path] = [
                tools / "bin" / "uv",
                *dry,
                "--no-binary",
                "pyspark",
                *where,
                "-r",
                LOCKS / f"{lock}.txt",
            ]
            told = captured(command)
            held = len([pin for pin in pins(lock) if pin.holds_on(machine)])
            assert f"Would install {held} packages" in told.stderr, told.stderr


@pytest.mark.deep
def test_renewing_twice_changes_nothing_and_keeps_what_fits(tmp_path: Path) -> None:
    shutil.copytree(LOCKS, tmp_path / ".github" / "locks")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    states = []
    for _ in range(2):
        subprocess.run([tmp_path / ".github" / "locks" / "renew"], check=True)
        states.append({path.name: path.read_bytes() for path in sorted((tmp_path / ".github" / "locks").iterdir())})
    assert states[0] == states[1]
    # Whoever maintains a package may add a file to a version, and so a hash: versions alone are compared with ours.
    version = re.compile(rb"^\S+==\S+", re.MULTILINE)
    assert {name: version.findall(text) for name, text in states[0].items()} == {
        path.name: version.findall(path.read_bytes()) for path in sorted(LOCKS.iterdir())
    }
