"""The test bed itself: brokers never outlive their tests. How they come, go and come back, the live tests show."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.brokers import kafka_jars
from helpers.waiting import wait_for

TESTS = Path(__file__).parents[1]
STARTS_A_BROKER = """
import signal, sys
from helpers.brokers.cluster import KafkaCluster
cluster = KafkaCluster(version=sys.argv[1], broker_ids=(1,))
print(cluster.pid(1), cluster.log_dirs(1)[0].parent.parent, flush=True)
signal.pause()
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/status").read_text().split("State:")[1][:4]


def wait_until_ended(pid: int) -> None:
    wait_for(lambda: not is_running(pid), f"the end of process {pid}")


@pytest.mark.brokers
def test_brokers_and_their_data_go_when_the_test_process_is_killed(kafka_version: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", STARTS_A_BROKER, kafka_version]
    said = tmp_path / "said"
    with (
        said.open("wb") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors) as tests,
    ):
        assert tests.stdout is not None
        line = tests.stdout.readline().decode()
        assert line, said.read_text()
        pid, folder = line.split()
        assert is_running(int(pid))
        tests.kill()
    wait_until_ended(int(pid))
    wait_for(lambda: not Path(folder).exists(), "its data to be gone")


def test_an_incomplete_folder_of_jars_is_noticed(tmp_path: Path) -> None:
    jar = tmp_path / "kafka_2.13-9.9.9.jar"
    jar.write_bytes(b"1234")
    assert not kafka_jars.is_complete(tmp_path, "9.9.9")
    (tmp_path / kafka_jars.MANIFEST).write_text(json.dumps({jar.name: 4}))
    assert kafka_jars.is_complete(tmp_path, "9.9.9")
    assert not kafka_jars.is_complete(tmp_path, "9.9.8")
    jar.write_bytes(b"12")
    assert not kafka_jars.is_complete(tmp_path, "9.9.9")


def test_a_missing_java_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        kafka_jars.KafkaMissingError, match=r"need Java 17 or later, and there is no `java` on the PATH"
    ):
        kafka_jars.java()
