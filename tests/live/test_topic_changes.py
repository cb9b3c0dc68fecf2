"""Each change of a topic on brokers with tiered storage: its class, its exit codes, and the records that are left.

What Kafka would refuse has no plan; a plan of a snapshot, where Kafka was not asked, is refused by the dry run and by
apply alike, and nothing of its topic has changed. What is applied leaves exactly what was declared. Records are counted
by another client library.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, ResourceType
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.kafka_jars import DEFAULT_VERSION
from helpers.brokers.observer import Observer
from helpers.figures import Tell
from helpers.program.call import Program
from helpers.waiting import HANG, asked_again
from live.topic_cases import CASES, FEW, RECORD_BYTES, RECORDS, Case
from model.topic_configs.cases import Case as Mutant
from model.topic_configs.cases import verdicts

from reconciler.files.load import read_declared
from reconciler.model.cluster import TOPIC_THROTTLES
from reconciler.model.config_rule import release_of

pytestmark = pytest.mark.brokers

CLUSTER = "live"
GRAVITY = ("destroys", "irreversible", "availability", "clients", "harmless")


@dataclass
class Bench:
    """One broker with a tier, a topic for each case, and a folder to declare one of them at a time."""

    kafka: KafkaCluster
    program: Program
    folder: Path
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.observer = Observer(self.kafka.bootstrap)
        self.consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": "counter", "log_level": 0})

    def make(self, cases: Sequence[Case]) -> None:
        """Make the topics with their records, and keep what they are in a snapshot."""
        topics = [NewTopic(one.name, 1, 1, config=dict(one.base)) for one in cases if one.base is not None]
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        for made in admin.create_topics(topics).values():
            made.result(HANG)
        for case in cases:
            if case.base is not None and case.base.get("cleanup.policy") != "compact":  # it would want keys
                self.kafka.produce(case.name, 0, size=RECORDS * RECORD_BYTES)
        for case in cases:
            if case.base is not None and "remote.storage.enable" in case.base:
                self.kafka.wait_for(lambda name=case.name: self.is_only_tiered(name), f"{case.name} in the tier")  # type: ignore[misc]
        self.declare(cases[0])
        assert self.program("snapshot", "--out", "snapshot.json").code == 0

    def is_only_tiered(self, name: str) -> bool:
        """Whether the topic's first records are in the remote tier, and on the broker's own disk no longer.

        While both have them, nothing is lost with the tier.
        """
        first = f"{name}-0/{0:020}.log"
        is_local = any((log_dir / first).exists() for log_dir in self.kafka.log_dirs(1))
        return not is_local and any(one.is_file() for one in self.kafka.remote_dir.rglob(f"{name}-0-*/*"))

    def declare(self, case: Case) -> None:
        """Declare this case's topic alone."""
        config = ", ".join(f"{key}: {value}" for key, value in case.config.items())
        size = "partitions: 1, replicationFactor: 1" if case.base is None else ""
        configs = f"config: {{{config}}}, customConfigs: [{', '.join(case.config)}]" if config else ""
        spec = ", ".join(part for part in (size, case.spec, configs) if part)
        declare(self.folder, self.kafka, "topics: {delete: allow}", {case.name: spec})

    def state(self, name: str) -> tuple[object, Mapping[str, str], int]:
        """Return all of a topic that a plan could change, and how many records can be read; of none, nothing."""
        partitions = self.observer.topic(name)
        if not partitions:
            return {}, {}, 0
        records = sum(asked_again(lambda n=n: self.records(name, n), KafkaException) for n in partitions)  # type: ignore[misc]
        return partitions, self.observer.overrides(ResourceType.TOPIC, name), records

    def records(self, name: str, number: int) -> int:
        """Return how many records of a partition can be read."""
        self.consumer.list_topics(name, timeout=HANG)  # it may not know yet that the topic has grown
        low, high = self.consumer.get_watermark_offsets(TopicPartition(name, number), timeout=HANG)
        return int(high - low)

    def expect(self, case: Case, what: str, found: object, wanted: object) -> None:
        """Note where something is not as it should be; the other cases are tried all the same."""
        if found != wanted:
            self.wrong.append(f"{case.name}: {what} is {found}, not {wanted}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desired-state" / CLUSTER).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "cases"),
    [
        pytest.param(DEFAULT_VERSION, FEW, id="part"),
        *(pytest.param(version, CASES, id=version, marks=pytest.mark.deep) for version in ("4.1.1", "4.3.0")),
    ],
)
def test_every_change_of_a_topic_is_classed_refused_or_made_whole(
    version: str, cases: Sequence[Case], folder: Path, capsys: pytest.CaptureFixture[str], figures: Tell
) -> None:
    lost = 0
    with KafkaCluster(version=version, broker_ids=(1,), is_tiered=True) as kafka:
        bench = Bench(kafka, Program(capsys), folder)
        bench.make(cases)
        before = {case.name: bench.state(case.name) for case in cases}
        for case in cases:
            bench.declare(case)
            if case.kind is None:
                refused(bench, case)
            else:
                made(bench, case)
        for case in cases:
            had = before[case.name][2]
            if case.is_losing:
                kafka.wait_for(lambda n=case.name, had=had: bench.state(n)[2] < had, f"{case.name} to lose records")  # type: ignore[misc]
                lost += had - bench.state(case.name)[2]
            else:
                bench.expect(case, "its records", bench.state(case.name)[2], had)
        bench.consumer.close()
    told = f"{sum(case.kind is None for case in cases)} refused, {sum(case.is_losing for case in cases)} lossy"
    figures(f"topic changes on {version}", f"{len(cases)} ({told}), {lost} records lost, {len(bench.wrong)} surprises")
    assert not bench.wrong, "\n".join(bench.wrong)


def refused(bench: Bench, case: Case) -> None:
    """Try what Kafka refuses: live, and by a plan for which it was not asked."""
    before = bench.state(case.name)
    planned = bench.program("plan", "--out", f"{case.name}.json")
    is_placed = f"desired-state/{CLUSTER}/cluster.yaml:9:" in planned.err and "(KR611)" in planned.err
    bench.expect(case, f"the plan, saying {planned.err}", (planned.code, is_placed), (1, True))
    bench.expect(case, "the plan's files", sorted(Path().glob(f"{case.name}.json")), [])
    unasked = bench.program("plan", "--state", "snapshot.json", "--out", "unasked.json")
    bench.expect(case, f"the plan of a snapshot, saying {unasked.err}", unasked.code, 0)
    for option in ("--dry-run", "--yes"):
        ended = bench.program("apply", "unasked.json", option)
        bench.expect(case, f"apply {option}, saying {ended.err}", (ended.code, "(KR611)" in ended.err), (1, True))
    bench.expect(case, "its state", bench.state(case.name), before)


def made(bench: Bench, case: Case) -> None:
    """Try what Kafka takes: the plan tells its class, and the dry run and apply agree."""
    bench.expect(case, "the plan", (planned := bench.program("plan", "--out", "plan.json", "-o", "json")).code, 0)
    kinds = {effect["class"] for one in json.loads(planned.out)["topicChanges"] for effect in one.get("effects", [])}
    bench.expect(case, "its class", next((kind for kind in GRAVITY if kind in kinds), "harmless"), case.kind)
    dry = bench.program("apply", "plan.json", "--dry-run")
    ended = bench.program("apply", "plan.json", "--yes")
    bench.expect(case, f"the dry run and apply, saying {dry.err}{ended.err}", (dry.code, ended.code), (0, 0))
    partitions, configs, _ = bench.state(case.name)
    if case.spec == "state: absent":
        bench.expect(case, "what is there", partitions, {})
        return
    wanted = {**(case.base or {}), **case.config}
    units = {"1h": "3600000", "1GiB": "1073741824", "2MiB": "2097152"}
    left = {key: units.get(value, value.strip('"')) for key, value in wanted.items() if value != "null"}
    bench.expect(case, "its configs", dict(configs), left)
    count = int(case.spec.removeprefix("partitions: ")) if case.spec else 1
    bench.expect(case, "its partitions", len(partitions) if isinstance(partitions, dict) else 0, count)


def test_every_wrong_key_or_value_that_files_let_pass_is_told_by_the_live_plan_and_nothing_of_it_is_made(
    kafka_version: str, folder: Path, capsys: pytest.CaptureFixture[str], figures: Tell
) -> None:
    """Each stands under `customConfigs`, on a topic of its own that is to grow as well, all in one plan."""
    program = Program(capsys)
    with KafkaCluster(version=kafka_version, broker_ids=(1,)) as kafka:
        wrong = {name: case for name, case in mutants(kafka_version).items() if is_let_pass(folder, kafka, name, case)}
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in wrong]).values():
            made.result(HANG)
        declare_mutants(folder, kafka, wrong)
        planned = program("plan", "--out", "plan.json")
        missed = [
            dict(case.configs) for name, case in wrong.items() if f"topic {name}: Kafka would refuse" not in planned.err
        ]
        assert (planned.code, missed, Path("plan.json").exists()) == (1, [], False)
        for arguments in (("snapshot", "--out", "s.json"), ("plan", "--state", "s.json", "--out", "plan.json")):
            assert (ended := program(*arguments)).code == 0, ended
        for option in ("--dry-run", "--yes"):
            applied = program("apply", "plan.json", option)
            assert (applied.code, "(KR611)" in applied.err) == (1, True), applied
        observer = Observer(kafka.bootstrap)
        changed = [
            name for name in wrong if len(observer.topic(name)) > 1 or observer.overrides(ResourceType.TOPIC, name)
        ]
    figures(
        "wrong configs", f"{len(wrong)} let pass by files, all told by the live plan, {len(changed)} topics changed"
    )
    assert (len(wrong) >= 100, changed) == (True, [])


def mutants(version: str) -> dict[str, Mutant]:
    """Return keys and values that this release refuses, by the name of a topic: some 200 of those recorded."""
    release = release_of(version)
    wrong = [
        case for case in verdicts("key", "value") if case.refusals[release] and not {*TOPIC_THROTTLES} & {*case.configs}
    ]
    return {f"mutant-{number}": case for number, case in enumerate(wrong[::9])}


def is_let_pass(folder: Path, kafka: KafkaCluster, name: str, case: Mutant) -> bool:
    """Whether files let it pass: a key in no key's letters, and a number with no unit's, never reach Kafka."""
    declare_mutants(folder, kafka, {name: case})
    return not read_declared(folder / "desired-state", CLUSTER).problems


def declare_mutants(folder: Path, kafka: KafkaCluster, wrong: Mapping[str, Mutant]) -> None:
    topics = {
        name: f"partitions: 2, config: {json.dumps(dict(case.configs))}, customConfigs: {json.dumps([*case.configs])}"
        for name, case in wrong.items()
    }
    declare(folder, kafka, topics=topics)
