"""The room in which policies are asked is closed: nothing gets in but the tables, and nothing out but the answers."""

import random
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from balance.policies.hostile_queries import GOOD, LITERAL, hostile
from balance.policies.watched_room import CANARY, Watched, descendants, is_there
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.figures import Tell
from helpers.waiting import wait_for

from reconciler.balance.files.arrow_tables import ArrowTable
from reconciler.balance.policies.plan_tables import plan_tables
from reconciler.files.loads import loads_table
from reconciler.model.desired import Desired, DesiredCluster
from reconciler.model.plan import Plan, Source
from reconciler.model.problem import InvalidInput, Location, Policy
from reconciler.workflow.init import EXAMPLE_POLICIES

pytestmark = pytest.mark.spark
OWN_VARIABLES = re.compile(r"PATH|JAVA_HOME|HOME|TMPDIR|LC_ALL|PWD|OLDPWD|SHLVL|_|PYTHON\w*|_?PYSPARK\w*|_?SPARK\w*")


@pytest.fixture
def watched(one_room: Watched) -> Watched:
    one_room.room.violations([], tables())
    return one_room


def tables() -> dict[str, ArrowTable]:
    cluster = small_cluster("a-0: 1,2")
    plan = Plan("c", cluster.cluster_id, Source(""))
    made = plan_tables(plan, Desired(DesiredCluster("c")), cluster, cluster, {})
    return {**made, "loads": loads_table(None, "c")}


@parts("every", 6, deep=1)
def test_no_hostile_query_is_asked(watched: Watched, every: int) -> None:
    queries = sorted(set(hostile(str(watched.file), watched.port)))[::every]
    before, own = watched.lasting(), sorted(watched.room._folder.iterdir())
    told = {query: watched.told(query) for query in queries}
    assert len(queries) >= 400 // every
    assert {query for query, (end, _) in told.items() if end == "rows"} == set()
    assert not [query for query, (_, answer) in told.items() if CANARY in answer]
    assert watched.lasting() == before
    assert sorted(watched.room._folder.iterdir()) == own
    watched.assert_untouched()


@parts("every", 6, deep=1)
def test_what_people_write_is_asked(watched: Watched, every: int) -> None:
    shipped = [text for name, text in EXAMPLE_POLICIES.items() if name.endswith(".sql")]
    told = {query: watched.told(query) for query in (*GOOD[::every], *shipped)}
    assert len(told) >= 30 // every
    assert {query: answer for query, (end, answer) in told.items() if end != "rows"} == {}


def test_a_text_that_looks_like_a_variable_stays_a_text(watched: Watched) -> None:
    for query in LITERAL:
        end, answer = watched.told(query)
        assert end == "rows"
        assert "${" in answer
        assert CANARY not in answer


def test_a_secret_of_the_environment_is_in_none_of_its_processes(watched: Watched) -> None:
    found = [Path(f"/proc/{pid}/environ").read_bytes().decode() for pid in watched.lasting()]
    assert len(found) == 2  # Python, and Java
    for environ in found:
        assert CANARY not in environ
        names = [entry.partition("=")[0] for entry in environ.split("\0") if entry]
        assert [name for name in names if not OWN_VARIABLES.fullmatch(name)] == []


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.deep)])
def test_no_mutation_of_a_query_gets_out(watched: Watched, count: int, tmp_path: Path, figures: Tell) -> None:
    """System calls are traced where there is `strace`: files and sockets that are opened, programs that are run."""
    seeds = [*GOOD * 12, *sorted(set(hostile(str(watched.file), watched.port)))]
    draw = random.Random(15)
    before = watched.lasting()
    ends = dict.fromkeys(("rows", "refused", "failed"), 0)
    with ExitStack() as tracing:
        log = traced(tracing, watched, tmp_path / "calls") if count > 1000 and shutil.which("strace") else None
        for _ in range(count):
            end, answer = watched.told(mutated(draw, seeds))
            assert CANARY not in answer
            ends[end] += 1
    assert watched.lasting() == before
    watched.assert_untouched()
    calls = log.read_text().splitlines() if log is not None else []
    assert [call for call in calls if is_outside(call, watched)] == []
    figures("policies", f"{count:,} mutations: {ends}; {len(calls):,} system calls traced")


TOKENS = re.compile(r"\w+|\s+|.", re.DOTALL)


def mutated(draw: random.Random, seeds: list[str]) -> str:
    """Return one query with a few of its words exchanged, lost, doubled, or put in from another query."""
    words = TOKENS.findall(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at = draw.choice([at for at, word in enumerate(words) if word.isidentifier()] or [0])
        other = TOKENS.findall(draw.choice(seeds))
        match draw.randrange(8):
            case 0:
                del words[at]
            case 1:
                words.insert(at, words[draw.randrange(len(words))])
            case 2:
                begin = draw.randrange(len(other))
                words[at:at] = other[begin : begin + draw.randint(1, 12)]
            case 3:
                words[at] = draw.choice(("/*", "*/", "'", '"', "`", "--", "\n", "\\", "(", ")", ";", "${", "r'", " "))
            case _:
                words[at] = draw.choice([word for word in other if word.isidentifier()] or [" "])
        words = words or [" "]
    return "".join(words)


def traced(tracing: ExitStack, watched: Watched, log: Path) -> Path:
    """Write down what Java opens, makes, connects to and runs, until the block ends."""
    java = max(watched.lasting(), key=lambda pid: Path(f"/proc/{pid}/comm").read_text().startswith("java"))
    calls = "trace=open,openat,creat,mkdir,unlink,rename,connect,bind,execve,execveat,fork,vfork,ptrace"
    tracer = subprocess.Popen(
        ["strace", "-f", "-q", "-e", calls, "-o", str(log), "-p", str(java)], stderr=subprocess.DEVNULL
    )
    tracing.callback(tracer.wait)
    tracing.callback(tracer.send_signal, signal.SIGINT)
    status = Path(f"/proc/{java}/status")
    wait_for(lambda: log.exists() and "TracerPid:\t0\n" not in status.read_text(), "strace")
    return log


def is_outside(call: str, watched: Watched) -> bool:
    """Whether a traced call makes, runs or reaches what a query over tables in memory has no need of.

    Spark itself asks once how large a page of memory is, by `getconf`, and PySpark hands over each answer on loopback.
    """
    if re.search(r"\b(execve|execveat|fork|vfork|ptrace)\(", call):
        return '"getconf", "PAGESIZE"' not in call and "/lib/jspawnhelper" not in call
    if re.search(r"\b(connect|bind)\(", call):
        return "connect(" in call or not re.search(r'AF_UNIX|"::ffff:127\.0\.0\.1"', call)
    path = re.search(r'"([^"]*)"', call)
    if path is None or path[1].startswith(str(watched.room._folder)):
        return False
    is_written = re.search(r"O_WRONLY|O_RDWR|O_CREAT|\b(creat|mkdir|unlink|rename)\(", call) is not None
    is_system = path[1].startswith(("/proc/", "/sys/", "/dev/", "/usr/", "/lib", "/opt/", "/etc/ld.so.cache"))
    return is_written or not (is_system or re.search(r"\.(jar|so|class|properties)$|/modules$|/tzdb.dat$", path[1]))


def _policy(query: str) -> Policy:
    return Policy("rule", query, Location("policies/a.sql", 1))


def test_many_rows_are_counted_up_to_a_bound_and_long_ones_cut(watched: Watched) -> None:
    told = watched.room.violations([_policy("SELECT id FROM range(3000000)")], tables())
    assert len(told) == 21
    assert told[-1].message == "rule: at least 999,980 more rows"
    (wide,) = watched.room.violations([_policy("SELECT repeat('a', 1000000) AS message")], tables())
    assert wide.message == f"rule: {'a' * 400}…"


def test_what_takes_too_long_is_told(watched: Watched) -> None:
    with pytest.raises(InvalidInput) as ended:
        watched.room.violations([_policy("SELECT sum(id % 7) FROM range(1000000)")], tables(), seconds=0)
    watched.room._answer(300)  # which comes late
    assert [problem.code for problem in ended.value.problems] == ["KR184"]
    assert "it took more than 0 s; ask for less" in str(ended.value.problems[0])


STARTER = """
import os
from reconciler.balance.policies.asking import policy_room
with policy_room(os.environ) as room:
    room._ask({"tables": str(room._folder)}, 300)
    print(room._process.pid, room._folder, flush=True)
    room._ask({"query": "SELECT sum(id % 7) FROM range(1000000000000)"}, 600)
"""


def test_the_room_ends_in_the_midst_of_a_query_with_its_starter_whatever_that_one_ended_of() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid, folder = starter.stdout.readline().split()
        started = list(descendants(int(pid)))
        starter.kill()
    wait_for(lambda: not any(is_there(pid) for pid in started), "the end of the room")
    assert not Path(folder).exists()
