"""What users of Terraform, kubectl, Kafka's own tools, topicctl and git type is answered with the right name here."""

import pytest
from helpers.program.call import ROOT, Program
from helpers.program.written_commands import verbs

from reconciler.command import habits

HABITS = [
    # Terraform
    ("plan -out=p", "--out FILE"),
    ("plan -out p", "--out FILE"),
    ("plan -target=orders", "plan --only PATTERN"),
    ("plan --target orders", "plan --only PATTERN"),
    ("plan -var region=eu", "${env:NAME}"),
    ("plan -var-file=prod.tfvars", "--client FILE"),
    ("plan -no-color", "--color never"),
    ("plan -json", "-o json"),
    ("plan -chdir=live", "-C DIR"),
    ("plan -refresh=false", "--state FILE"),
    ("plan -generate-config-out=topics.tf", "reconciler import"),
    ("apply --auto-approve", "--yes"),
    ("apply -auto-approve p", "--yes"),
    ("apply", "reconciler plan --out plan.json"),
    ("destroy", "state: absent"),
    ("fmt", "reconciler validate"),
    ("refresh", "reconciler plan"),
    ("output", "reconciler show PLAN -o json"),
    ("state list", "reconciler topics list"),
    ("taint orders", "state: draining"),
    ("force-unlock 7", "reconciler cancel"),
    ("workspace select prod", "--cluster NAME"),
    # kubectl
    ("get topics", "reconciler topics list"),
    ("get groups", "reconciler groups list"),
    ("describe topic orders", "reconciler topics describe TOPIC"),
    ("describe group billing", "reconciler groups describe GROUP"),
    ("delete topic orders", "state: absent"),
    ("create topic orders", "YAML"),
    ("apply -f topics.yaml", "reconciler plan --out FILE"),
    ("diff -f topics.yaml", "-C DIR"),
    ("plan -n prod", "--cluster NAME"),
    ("--context prod plan", "--cluster NAME"),
    ("apply p --dry-run=server", "reconciler apply PLAN --dry-run"),
    ("plan --dry-run", "plan changes nothing"),
    ("rollout undo", "reconciler cancel --rollback"),
    ("drain 5", "reconciler plan --what-if drain=ID"),
    ("cordon 5", "state: cordoned"),
    ("plan prod", "--cluster NAME"),
    # kafka-topics, kafka-configs, kafka-consumer-groups, kafka-reassign-partitions
    ("topics --list", "reconciler topics list"),
    ("--list", "reconciler topics list"),
    ("topics --describe --topic orders", "reconciler topics describe TOPIC"),
    ("topics --alter --topic orders", "reconciler plan"),
    ("topics --zookeeper zk:2181", "--bootstrap-server HOST:PORT"),
    ("plan --bootstrap-servers kafka:9092", "--bootstrap-server HOST:PORT"),
    ("plan --command-config client.properties", "--client FILE"),
    ("groups --list", "reconciler groups list"),
    ("groups --describe --group billing", "reconciler groups describe GROUP"),
    ("groups --reset-offsets --group billing", "reconciler groups reset-offsets GROUP"),
    ("reset-offsets --group billing", "reconciler groups reset-offsets GROUP"),
    ("--generate --topics-to-move-json-file t.json", "reconciler plan --out FILE"),
    ("--reassignment-json-file r.json --execute", "reconciler apply PLAN"),
    ("--execute --reassignment-json-file r.json", "reconciler apply PLAN"),
    ("--verify --reassignment-json-file r.json", "reconciler status"),
    ("apply p --throttle 50000000", "reconciler throttle PLAN RATE"),
    # topicctl, Jikkou, JulieOps, git and others
    ("check topics.yaml", "reconciler validate"),
    ("bootstrap", "reconciler import"),
    ("rebalance", "balance"),
    ("apply p --skip-confirm", "--yes"),
    ("--topology t.yaml", "-C DIR"),
    ("lint", "reconciler validate"),
    ("test", "reconciler validate"),
    ("rollback", "reconciler cancel --rollback"),
    ("revert HEAD", "reconciler cancel --rollback"),
    ("pause", "reconciler cancel"),
    ("export", "reconciler snapshot --out FILE"),
]


@pytest.mark.quick
@pytest.mark.parametrize(("typed", "named"), HABITS)
def test_a_habit_is_answered_with_the_right_name(reconciler: Program, typed: str, named: str) -> None:
    ended = reconciler(*typed.split())
    (told,) = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert (ended.code, ended.out) == (64, "")
    assert named in told
    assert told.endswith(" (KR002)")


@pytest.mark.quick
def test_version_and_help_are_also_verbs(reconciler: Program) -> None:
    assert reconciler("version") == reconciler("--version")
    assert reconciler("help") == reconciler("--help")
    assert reconciler("help", "topics", "list") == reconciler("topics", "list", "--help")
    assert reconciler("help", "plan").code == 0
    assert reconciler("help", "pln").code == 64


@pytest.mark.quick
def test_no_habit_is_something_that_there_is() -> None:
    known = {" ".join(words): {name for each in verb.params for name in each.opts} for words, verb in verbs()}
    assert set(known).isdisjoint(habits.VERBS)
    everywhere = set.intersection(*known.values())
    assert everywhere.isdisjoint(habits.OPTIONS)
    twice = {f"{verb} {option}" for verb, options in known.items() for option in options}
    assert twice.isdisjoint(habits.OPTIONS)


@pytest.mark.quick
def test_an_unknown_cluster_is_answered_with_those_there_are(reconciler: Program) -> None:
    for verb in ("plan", "status"):
        ended = reconciler(verb, "-C", str(ROOT / "desired-state"), "--cluster", "prod")
        assert "/desired-state has demo" in ended.err
        assert ended.code != 0
