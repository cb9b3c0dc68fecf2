"""Keeps values of client properties out of what is written: the Kafka client logs its options, and raises with them.

Our own sentences hold no value to begin with; this is for texts that others made. Secrets are replaced in everything
that goes to stderr. Other values (servers, users, paths) may be words of ours, a topic's name or a host that is spoken
of: they are replaced only in what the Kafka client says, and in the text of exceptions that nobody expected.
"""

import base64
import json
import logging
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

HIDDEN = "[hidden]"
LIBRARY = "kafka"
LEAST = 4
"""What is shorter is in every other word: replacing it would tell it rather than hide it."""
LEAST_INSIDE_A_WORD = 8
"""What is no secret, and shorter, is replaced as a whole word only: a host may be called kafka, and so is much else."""
_LEAST_ENCODED = 6
_LEAST_LINE = 16
_MOST_LINES = 100
"""Of a PEM text each line is hidden too; what is longer than a key and its chain holds CAs, which are public."""

_MOST_BYTES = 4096
"""So much of an answer is logged: its text takes several times its size."""

_Form = tuple[str, str]
"""What a text looks like, in small letters, and the pattern that finds it."""


class SecretFilter(logging.Filter):
    """Replaces what it was told in a record's text and traceback, whatever its case and however it is encoded."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets: tuple[_Form, ...] = ()
        self._all: tuple[_Form, ...] = ()

    def add(self, text: str, *, is_secret: bool = True) -> None:
        """Hide this text from now on; one that is no secret only in what the Kafka client says."""
        found = {*_forms(text)} if is_secret or len(text) >= LEAST_INSIDE_A_WORD else {_whole_word(text)}
        for line in text.splitlines()[:_MOST_LINES]:
            if len(line.strip()) >= _LEAST_LINE and not line.startswith("-----"):
                found.update(_forms(line.strip()))
        found = {form for form in found if len(form[0]) >= LEAST}
        # Longest first: a text that is part of another must not leave the rest of it behind.
        self._all = tuple(sorted({*self._all, *found}, key=lambda form: (-len(form[0]), form)))
        if is_secret:
            self._secrets = tuple(sorted({*self._secrets, *found}, key=lambda form: (-len(form[0]), form)))

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; it is always logged."""
        if isinstance(record.args, tuple):  # the library logs a whole answer that it cannot decode
            record.args = tuple(each[:_MOST_BYTES] if isinstance(each, bytes) else each for each in record.args)
        text = record.getMessage()
        hidden = self.hide(text, is_clients=True)
        if hidden != text:
            record.msg, record.args = hidden, ()
        if record.exc_info and not record.exc_text:
            # Handlers take this text when it is there; without the error itself no formatter of Spark's writes it anew.
            record.exc_text = self.hide(logging.Formatter().formatException(record.exc_info), is_clients=True)
            record.exc_info = None
        return True

    def hide(self, text: str, *, is_clients: bool) -> str:
        """Return the text without secrets; where the Kafka client made it, without any value."""
        lowered = text.lower()
        for form, pattern in self._all if is_clients else self._secrets:
            if form in lowered:
                text = re.sub(pattern, HIDDEN, text, flags=re.IGNORECASE)
                lowered = text.lower()
        return text


def _whole_word(text: str) -> _Form:
    return text.lower(), rf"(?<![^\W_]){re.escape(text)}(?![^\W_])"


def _forms(text: str) -> Iterator[_Form]:
    return ((form, re.escape(form)) for form in _spelled(text))


def _spelled(text: str) -> Iterator[str]:
    """Yield what the text looks like as it is, quoted, in JSON, in a URL, in base64 and in hex, in small letters."""
    for each in {text, text.upper(), text.lower()}:
        encoded = each.encode("utf-8", "surrogatepass")
        yield from (form.lower() for form in (each, repr(each)[1:-1], repr(encoded)[2:-1], encoded.hex()))
        yield from (json.dumps(each, ensure_ascii=is_ascii)[1:-1].lower() for is_ascii in (True, False))
        yield from (form.lower() for form in (quote(encoded), quote(encoded, safe=""), quote_plus(encoded)))
        yield from (form.lower() for form in _base64(encoded))


def _base64(text: bytes) -> Iterator[str]:
    """Yield the text in base64, padded or not, also as part of something longer, wherever it begins there."""
    whole = base64.b64encode(text).decode()
    for before in range(3):
        shifted = base64.b64encode(bytes(before) + text).decode().rstrip("=")
        inside = shifted[-(-before * 8 // 6) : (before + len(text)) * 8 // 6]
        if len(inside) >= _LEAST_ENCODED:
            yield from (inside, inside.translate(_URL_SAFE))
    yield from (whole, whole.translate(_URL_SAFE))


_URL_SAFE = str.maketrans("+/", "-_")
_FILTER = SecretFilter()
# Keeps the library's warnings off stderr where no logging was set up: what matters comes as an error of ours.
_SILENCE = logging.NullHandler()


def hide_in_logs(*secrets: str, values: tuple[str, ...] = ()) -> None:
    """Keep these secrets out of everything that goes to stderr, and the values out of what the Kafka library says."""
    for secret in secrets:
        _FILTER.add(secret)
    for value in values:
        _FILTER.add(value, is_secret=False)
    logging.getLogger(LIBRARY).addHandler(_SILENCE)
    # A filter works on the logger it hangs on, not on its children: each gets it.
    names = [name for name in logging.root.manager.loggerDict if name == LIBRARY or name.startswith(f"{LIBRARY}.")]
    for name in sorted(names):
        logging.getLogger(name).addFilter(_FILTER)


def without_secrets(text: str) -> str:
    """Return the text with every known secret replaced."""
    return _FILTER.hide(text, is_clients=False)


def without_values(text: str) -> str:
    """Return a text that the Kafka client made, or that nobody expected, with every value of a property replaced."""
    return _FILTER.hide(text, is_clients=True)
