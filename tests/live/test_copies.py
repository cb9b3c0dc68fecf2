"""What tells a replica that was copied twice."""

from pathlib import Path

import pytest
from live.copies import Copies

BEFORE = {"orders": {0: (1, 2)}}
AFTER = {"orders": {0: (1, 3)}}


class Disks:
    """Three brokers' folders."""

    alive = (1, 2, 3)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for broker in self.alive:
            self.log_dirs(broker)[0].mkdir()

    def log_dirs(self, broker_id: int) -> tuple[Path, ...]:
        return (self._folder / str(broker_id),)


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    return Disks(tmp_path)


def test_a_replica_that_came_once_is_all_right_and_what_else_lies_there_does_not_matter(disks: Disks) -> None:
    copies = Copies(disks, "orders")
    (disks.log_dirs(3)[0] / "orders-0").mkdir()
    copies.look()
    (disks.log_dirs(2)[0] / "orders-0.abc-delete").mkdir()  # the replica that left
    (disks.log_dirs(3)[0] / "orders-01-x-0").mkdir()
    assert copies.made_more_than_once(BEFORE, AFTER) == []


def test_one_that_never_came_is_told(disks: Disks) -> None:
    assert Copies(disks, "orders").made_more_than_once(BEFORE, AFTER) == [("orders-0", 3)]


def test_one_that_went_and_came_again_is_told_while_the_first_is_being_removed(disks: Disks) -> None:
    copies, place = Copies(disks, "orders"), disks.log_dirs(3)[0]
    (place / "orders-0").mkdir()
    (place / "orders-0").rename(place / "orders-0.abc-delete")
    (place / "orders-0").mkdir()
    assert copies.made_more_than_once(BEFORE, AFTER) == [("orders-0", 3)]


def test_one_that_came_again_is_told_after_the_first_is_gone_without_a_trace(disks: Disks) -> None:
    copies, place = Copies(disks, "orders"), disks.log_dirs(3)[0]
    (place / "orders-0").mkdir()
    copies.look()
    (place / "orders-0").rename(place.parent / "elsewhere")
    (place / "orders-0").mkdir()
    assert copies.made_more_than_once(BEFORE, AFTER) == [("orders-0", 3)]
