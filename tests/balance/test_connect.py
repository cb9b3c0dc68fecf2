"""`loads` and `balance` as clients of a Spark Connect server, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from balance.any_spark import make_lake
from helpers.program.call import ROOT, run_program
from helpers.waiting import HANG

pytest.importorskip("grpc", reason="the packages of Spark Connect are not installed: pip install 'pyspark[connect]'")
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("lake")
    make_lake(home)
    return home


def test_loads_and_balance_run_there_and_a_file_that_the_server_does_not_see_is_named(
    connect_url: str, lake: Path
) -> None:
    environ = {"SPARK_REMOTE": connect_url}
    made = run_program("loads", "--samples", "even", "--out", "loads", "-o", "json", cwd=lake, env=environ)
    assert made.code == 0, made.err
    assert sum(cluster["partitions"] for cluster in json.loads(made.out)["clusters"]) > 100
    assert made.err.splitlines()[-1].startswith("Wrote loads:")
    asked = ("balance", "--cluster", "far", "--state", "states/far.json", "--loads", "loads", "-o", "json")
    told = run_program("-C", "root", *asked, "--master", connect_url, cwd=lake)
    assert told.code == 0, told.err
    assert json.loads(told.out)["clusters"][0]["cluster"] == "far"
    # To the server, this is a place in the folder that it was started in itself.
    unseen = run_program("loads", "--samples", "/proc/self/cwd/even", "--out", "none", cwd=lake, env=environ)
    assert unseen.code == 1
    assert unseen.err.startswith(
        "error: /proc/self/cwd/even/part-0.parquet: the Spark Connect server does not see it: "
    )
    assert unseen.err.count("\n") == 1


# The client's protobuf reads no message nested deeper than 100, which some fifty steps are.
SETTLES_MANY_STEPS = """
import sys
from functools import reduce
from reconciler.balance.spark.connect import connected, lent
from reconciler.balance.spark.spellings import settled

with connected(sys.argv[1]) as whole, lent(whole) as spark:
    found = settled(reduce(lambda table, step: table.where(f"id <> {step}"), range(80), spark.range(100)))
    print(found.where("id > 90").count(), *(table.name for table in spark.catalog.listTables()))
"""


def test_a_table_of_many_steps_is_settled_there_and_leaves_no_name(connect_url: str) -> None:
    command = [sys.executable, "-c", SETTLES_MANY_STEPS, connect_url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.stdout, done.returncode) == ("9\n", 0), done.stderr[-3000:]


# Nothing answers there, however long it is waited for.
IN_A_SECOND = """
import sys
from reconciler.balance.spark import connect
from reconciler.cli.main import main

connect._ANSWER_SECONDS = 1
sys.exit(main(sys.argv[1:]))
"""


def test_a_server_that_does_not_answer_is_told_in_one_sentence_without_what_follows_its_port(lake: Path) -> None:
    url = "sc://127.0.0.1:1/;token=s3cret"
    command = [sys.executable, "-c", IN_A_SECOND, "loads", "--samples", "even", "--out", "none", "--master", url]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, cwd=lake, env=environment, capture_output=True, text=True, timeout=HANG, check=False)
    assert told.returncode == 1
    assert told.stderr.startswith("error: no Spark Connect server answers at sc://127.0.0.1:1 within 1 s")
    assert "s3cret" not in told.stderr
    assert not (lake / "none").exists()
