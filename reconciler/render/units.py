"""Numbers as people read them: `48.0 GiB`, `50MiB/s`, `about 3 min`, `1,440`."""

_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP = 1024
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def size(count: int) -> str:
    """Return bytes in the largest binary unit that leaves at least one, with one decimal."""
    if count < _STEP:
        return f"{count} B"
    power = 1
    while power < len(_BINARY) and round(count / _STEP**power, 1) >= _STEP:
        power += 1
    return f"{count / _STEP**power:.1f} {_BINARY[power - 1]}"


def rate(bytes_per_second: float) -> str:
    """Return bytes per second as the YAML writes them, whole where they are."""
    text = size(round(bytes_per_second)).replace(" ", "")
    return text.replace(".0", "") + "/s"


def duration(seconds: float) -> str:
    """Return a length of time with at most two units: `45 s`, `3 min`, `1h10m`, `2d4h`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{round(whole / _MINUTE)} min"
    if whole < _DAY:
        return _pair(round(whole / _MINUTE), 60, "h", "m")
    return _pair(round(whole / _HOUR), 24, "d", "h")


def number(count: int) -> str:
    """Return a number with its thousands set apart."""
    return f"{count:,}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun: `1 move`, `1,200 moves`."""
    return f"{number(count)} {noun if count == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """Return a percentage, `0.004 %` not being `0 %`."""
    return f"{share:.3g} %"


def _pair(count: int, per_unit: int, unit: str, rest: str) -> str:
    whole, left = divmod(count, per_unit)
    return f"{whole}{unit}{left}{rest}" if left else f"{whole}{unit}"
