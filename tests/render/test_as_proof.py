"""What `show --prove` says: no more than the bounds cover."""

from reconciler.model.plan import Bound, Verdict
from reconciler.render import as_proof

TB = 10**12


def _said(bound: int, *, is_within_bands: bool) -> str:
    levels = (Bound("bytes", TB, bound),)
    return as_proof.text(Verdict(None, levels, copied_partitions=2, is_within_bands=is_within_bands))


def test_a_gap_of_one_byte_is_said() -> None:
    said = _said(TB - 1, is_within_bands=True)
    assert "and at most 0.0001% of that could be saved" in said
    assert "(of " not in said


def test_a_bound_over_bands_is_said_to_hold_within_them() -> None:
    assert _said(TB, is_within_bands=True).startswith(
        "Bound: no plan within the bands copies fewer than 931.3 GiB (of 2 partitions), "
    )
    assert _said(TB, is_within_bands=False).startswith(
        "Proved: no plan copies fewer than 931.3 GiB (of 2 partitions), "
    )
