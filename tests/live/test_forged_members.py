"""A neighbour joins the lock's group of real brokers, and commits journals: no verb changes anything by them."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.forged_journals import forged_journal
from helpers.plans.forged_members import forged_holder, forged_member
from helpers.program.git import git
from helpers.program.usage import Usage
from helpers.program.warm import Ended
from live.folder import LiveFolder
from live.forging import forging
from live.test_forged_record import OPERATORS, REST, VERBS

pytestmark = pytest.mark.brokers

LEGAL = {0, 1, 3, 5, 64}
RATES = [50_000_000, 1_048_576, 500_000_001]


@pytest.fixture
def folder(tmp_path: Path, steady: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path / "here", steady, moves="throttle: 50000000B/s")
    create(steady, REST)
    live.run("apply", live.plan("config", REST, config="retention.ms: 2d"), "--yes")
    live.set_throttles(OPERATORS)
    yield live
    live.heal(*REST)


def seen(folder: LiveFolder) -> object:
    """Return throttles, replicas and leaders as another client sees them."""
    states = {name: folder.state(name) for name in REST}
    return folder.observer.throttles(tuple(REST), folder.kafka.alive), states


def assert_legal(ended: Ended, what: str) -> None:
    """Assert that a verb has ended as verbs may, and has printed nothing that a terminal obeys."""
    assert ended.code in LEGAL, f"{what}: {ended.code}\n{ended.err}"
    assert "KR003" not in ended.err, f"{what}\n{ended.err}"
    odd = [each for each in ended.out + ended.err if not each.isprintable() and each not in "\n\t"]
    assert odd == [], f"{what}: {odd}"


@parts("count", 10, deep=1000)
def test_whatever_a_member_says_no_verb_changes_anything(folder: LiveFolder, figures: Tell, count: int) -> None:
    (own,) = (path.name.partition(".")[0] for path in folder.path.glob("runs/*/*.jsonl"))
    chance, counts, usage, before = random.Random(count), Counter[str](), Usage(), seen(folder)
    for number in range(count):
        name = sorted(VERBS)[number % len(VERBS)]
        # A cancel waits two minutes for the end of a run of its plan, as it should.
        plan_ids = ["0badcafe", "0000beef"] if name == "cancel" else [own, own, "0badcafe"]
        metadata = forged_member(chance, plan_ids, RATES)
        assignment = chance.choice([metadata, forged_holder(chance, plan_ids)])
        is_first = chance.random() < 0.8
        with forging(folder.kafka, metadata, assignment, is_first=is_first):
            ended = folder.run(*VERBS[name], expect=None)
        what = f"member {number}, {name}: {metadata[:300]!r}, {assignment[:300]!r}"
        assert_legal(ended, what)
        if len(metadata) + len(assignment) > 500_000:
            # Kafka cannot keep what this member says: a lock that cannot be taken, and who is there.
            is_named = ended.code != 1 or "on 127.0.0.1, member " in ended.err
            assert is_named, f"{what}\n{ended.err}"
        elif is_first:
            assert ended.code == (3 if name in {"apply", "cancel"} else ended.code), (
                f"{what}: {ended.code}\n{ended.err}"
            )
            assert "Kafka sees it at 127.0.0.1" in ended.out + ended.err, f"{what}\n{ended.out}\n{ended.err}"
        assert seen(folder) == before, f"{what}\n{ended.out}\n{ended.err}"
        usage.add(name, ended)
        counts[f"{name}, exit {ended.code}"] += 1
    listed = ", ".join(f"{each} {what}" for what, each in sorted(counts.items()))
    figures("live, forged members", f"{listed}, 0 wrong")
    figures("live, what verbs need beside forged members", str(usage))


def bytes_of(folder: Path) -> Mapping[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@parts("count", 10, deep=1000)
def test_no_verb_does_anything_by_a_committed_journal(folder: LiveFolder, figures: Tell, count: int) -> None:
    chance, counts, usage = random.Random(count), Counter[str](), Usage()
    (journal,) = folder.path.glob("runs/*/*.jsonl")
    (journal.parents[1] / ".gitignore").unlink(missing_ok=True)
    git(folder.path, "init", "-q")
    before = seen(folder)
    for number in range(count):
        journal.write_bytes(forged_journal(chance, journal.stem, sorted(REST)))
        git(folder.path, "add", "-A")
        git(folder.path, "commit", "-qm", f"runs {number}", "--allow-empty")
        there = bytes_of(journal.parent)
        name = sorted(VERBS)[number % len(VERBS)]
        ended = folder.run(*VERBS[name], expect=None)
        what = f"journal {number}, {name}: {journal.read_bytes()[:2000]!r}"
        assert_legal(ended, what)
        assert seen(folder) == before, f"{what}\n{ended.out}\n{ended.err}"
        assert bytes_of(journal.parent) == there, what
        assert "KR222" in ended.err, f"{what}\n{ended.err}"
        usage.add(name, ended)
        counts[f"{name}, exit {ended.code}"] += 1
    listed = ", ".join(f"{each} {what}" for what, each in sorted(counts.items()))
    figures("live, committed journals", f"{listed}, 0 wrong")
    figures("live, what verbs need beside committed journals", str(usage))
