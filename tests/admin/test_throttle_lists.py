"""A throttle list is in force on every broker before anything that it is to slow down begins: on scripted brokers."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest
from admin.test_client_wire import let_time_pass
from kafka.protocol.admin import DescribeConfigsResponse

from reconciler.admin.client import requests
from reconciler.model.change import ConfigChange, ConfigOperation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka.protocol.admin import DescribeConfigsRequest

    from reconciler.admin.client.wire import Build, Wire

LEADER, FOLLOWER = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
APPENDED = {
    "orders": (
        ConfigChange(LEADER, ConfigOperation.APPEND, "0:1,0:2"),
        ConfigChange(FOLLOWER, ConfigOperation.APPEND, "0:3"),
    )
}
SHOWN = {LEADER: "9:9,0:1,0:2", FOLLOWER: "0:3"}


@dataclass
class Brokers:
    """Brokers 1 to 3; each shows the lists from its question of that number on, one that is `silent` never answers."""

    shows_at: "Mapping[int, int]"
    silent: frozenset[int] = frozenset()
    shown: "Mapping[str, str]" = field(default_factory=lambda: SHOWN)
    asked: "Counter[int]" = field(default_factory=Counter)

    def brokers(self) -> list[int]:
        return [1, 2, 3]

    def read_each(self, builds: "Mapping[int, Build]", _: float) -> dict[int, DescribeConfigsResponse]:
        self.asked.update(list(builds))
        return {broker: self._answer(broker, build()) for broker, build in builds.items() if broker not in self.silent}

    def _answer(self, broker: int, question: "DescribeConfigsRequest") -> DescribeConfigsResponse:
        (resource,) = question.resources
        form = DescribeConfigsResponse.DescribeConfigsResult
        is_shown = self.asked[broker] >= self.shows_at.get(broker, 1)
        configs = [
            form.DescribeConfigsResourceResult(name=key, value=self.shown[key] if is_shown else "9:9")
            for key in resource.configuration_keys
        ]
        result = form(error_code=0, resource_type=2, resource_name=resource.resource_name, configs=configs)
        return DescribeConfigsResponse(throttle_time_ms=0, results=[result])

    def await_lists(self, changes: "Mapping[str, Sequence[ConfigChange]]" = APPENDED) -> None:
        requests.await_throttle_lists(cast("Wire", self), changes)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    let_time_pass(monkeypatch)


def test_each_broker_is_asked_until_it_shows_the_lists() -> None:
    brokers = Brokers(shows_at={2: 3})
    brokers.await_lists()
    assert brokers.asked == {1: 1, 2: 3, 3: 1}


def test_a_list_that_holds_all_holds_these_too() -> None:
    brokers = Brokers({}, shown={LEADER: "*", FOLLOWER: "*"})
    brokers.await_lists()
    assert brokers.asked == {1: 1, 2: 1, 3: 1}


def test_one_item_too_few_is_waited_for_but_not_for_ever() -> None:
    brokers = Brokers({}, shown={**SHOWN, LEADER: "0:1"})
    brokers.await_lists()
    assert min(brokers.asked.values()) > 1


def test_a_broker_that_does_not_answer_is_not_waited_for() -> None:
    brokers = Brokers({}, silent=frozenset({3}))
    brokers.await_lists()
    assert brokers.asked[3] == 1


@pytest.mark.parametrize(
    "change",
    [
        ConfigChange(LEADER, ConfigOperation.SUBTRACT, "0:1"),
        ConfigChange("retention.ms", ConfigOperation.SET, "1"),
        ConfigChange(FOLLOWER, ConfigOperation.DELETE),
    ],
    ids=str,
)
def test_nothing_else_is_asked_about(change: ConfigChange) -> None:
    brokers = Brokers({})
    brokers.await_lists({"orders": (change,)})
    assert not brokers.asked
