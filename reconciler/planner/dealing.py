"""Deals the places of a pool to the rows that reach them through it, each row different ones and none that it names."""

import numpy as np

from reconciler.planner.rows import Bools, Ints


def dealt(pool: Ints, row: Ints, units: Ints, out: tuple[Ints, Ints, Ints], named: Ints) -> tuple[Ints, Ints, Ints]:
    """Return rows and their brokers, and the rows for which no broker was found; of these, some may be missing.

    `units` of each `pool` go to each `row`; `out` are the pools that give, their brokers, and how many each gives.
    """
    turn = np.concatenate([[0], np.cumsum(units)])
    number = np.arange(turn[-1]) - np.repeat(turn[:-1], units)
    entry_pool, entry = np.repeat(pool, units), np.repeat(row, units)
    order = np.lexsort((entry, number, entry_pool))
    entry_pool, entry = entry_pool[order], entry[order]
    # Brokers in turns, so that neighbours, which are of one topic, go to different ones.
    from_pool, broker, quota = out
    turn = np.concatenate([[0], np.cumsum(quota)])
    number = np.arange(turn[-1]) - np.repeat(turn[:-1], quota)
    order = np.lexsort((np.repeat(broker, quota), number, np.repeat(from_pool, quota)))
    slot = np.repeat(broker, quota)[order]
    wrong = np.flatnonzero(_clashes(entry, slot, named))
    failed = []
    for one in wrong.tolist():
        start, end = np.searchsorted(entry_pool, [entry_pool[one], entry_pool[one] + 1])
        if not _is_swapped(entry, slot, named, one, slice(start, end)):
            failed.append(entry[one])
    return entry, slot, np.unique(np.array(failed, dtype=np.int64))


def _clashes(entry: Ints, slot: Ints, named: Ints) -> Bools:
    """Return the entries whose row names their broker, or has it from an entry before."""
    found: Bools = (named[entry] == slot[:, None]).any(axis=1)
    order = np.lexsort((slot, entry))
    is_again = (np.diff(entry[order]) == 0) & (np.diff(slot[order]) == 0)
    found[order[1:][is_again]] = True
    return found


def _is_swapped(entry: Ints, slot: Ints, named: Ints, one: int, span: slice) -> bool:
    """Swap the brokers of this entry and the next one of its pool with which both are fine; return whether one is."""
    rows, brokers = entry[span], slot[span]
    mine = np.concatenate([named[entry[one]], slot[entry == entry[one]]])
    holding = entry[slot == slot[one]]
    is_fine = ~np.isin(brokers, mine) & ~np.isin(rows, holding) & ~(named[rows] == slot[one]).any(axis=1)
    if not is_fine.any():
        # Another swap may have mended it already.
        return int((slot[entry == entry[one]] == slot[one]).sum()) == 1 and slot[one] not in named[entry[one]]
    other = span.start + int(is_fine.argmax())
    slot[one], slot[other] = slot[other], slot[one]
    return True
