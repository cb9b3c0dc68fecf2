from random import Random

from reconciler.model.admission import Copy, Slots, Window


def admitted(slots: Slots, *copies: Copy) -> list[int]:
    return list(slots.admitted(enumerate(copies)))


def test_copies_begin_in_their_order_and_none_waits_for_one_that_cannot() -> None:
    copies = (Copy((4,), 1), Copy((4,), 2), Copy((4,), 3), Copy((5,), 3))
    assert admitted(Slots(2), *copies) == [0, 1, 3]


def test_what_a_broker_receives_and_what_it_serves_are_counted_apart() -> None:
    assert admitted(Slots(1), Copy((2,), 1), Copy((3,), 2), Copy((1,), 3)) == [0, 1, 2]


def test_a_slot_that_is_freed_is_taken_again() -> None:
    slots, first, second = Slots(1), Copy((2,), 1), Copy((2,), 3)
    assert admitted(slots, first, second) == [0]
    assert admitted(slots, second) == []
    slots.free(first)
    assert admitted(slots, second) == [0]


def test_a_leader_serves_each_new_replica_of_a_partition_by_a_slot_of_its_own() -> None:
    assert admitted(Slots(3), Copy((2, 3), 1), Copy((4, 5), 1), Copy((6,), 1)) == [0, 2]


def test_a_move_that_asks_for_more_than_there_can_be_begins_once_its_leader_is_idle() -> None:
    slots, wide = Slots(1), Copy((2, 3), 1)
    assert admitted(slots, Copy((4,), 1), wide) == [0]
    slots.free(Copy((4,), 1))
    assert admitted(slots, wide) == [0]


def test_what_copies_nothing_takes_no_slot_and_without_a_limit_all_begin() -> None:
    assert admitted(Slots(1), Copy((2,), 1), Copy((), 1), Copy((), 1)) == [0, 1, 2]
    assert admitted(Slots(None), *(Copy((2,), 1) for _ in range(9))) == list(range(9))


def test_a_window_admits_what_asking_all_that_wait_again_and_again_admits() -> None:
    random = Random(7)
    for most in (1, 2, 5, None):
        copies = [Copy(tuple(random.sample(range(5), random.randint(0, 2))), random.choice((None, 5, 6)))] * 2
        copies += [Copy(tuple(random.sample(range(5), 1)), random.randint(5, 7)) for _ in range(40)]
        window, slots = Window(most), Slots(most)
        for number, copy in enumerate(copies):
            window.add(number, copy)
        in_flight = window.begun()
        assert in_flight == admitted(slots, *copies)
        waiting = [number for number in range(len(copies)) if number not in in_flight]
        while in_flight:
            ended = random.sample(in_flight, random.randint(1, len(in_flight)))
            for number in ended:
                slots.free(copies[number])
            begun = list(slots.admitted((number, copies[number]) for number in waiting))
            assert window.after(ended) == begun
            waiting = [number for number in waiting if number not in begun]
            in_flight = [number for number in (*in_flight, *begun) if number not in ended]
        assert not waiting
