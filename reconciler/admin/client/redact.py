"""Secrets stay out of the Kafka client's log: at DEBUG it writes its whole configuration."""

import json
import logging

HIDDEN = "[hidden]"
LIBRARY = "kafka"


class SecretFilter(logging.Filter):
    """Replaces every known secret in a record's text and traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._forms: tuple[str, ...] = ()

    def add(self, secret: str) -> None:
        """Hide this text from now on, also as it looks quoted inside a dict, bytes or JSON."""
        forms = {secret, repr(secret)[1:-1], repr(secret.encode())[2:-1], json.dumps(secret)[1:-1]} - {""}
        # Longest first: a secret that is part of another must not leave the rest of it behind.
        self._forms = tuple(sorted({*self._forms, *forms}, key=lambda form: (-len(form), form)))

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; it is always logged."""
        text = record.getMessage()
        hidden = self.hide(text)
        if hidden != text:
            record.msg, record.args = hidden, ()
        if record.exc_info and not record.exc_text:
            # Handlers take this text when it is there, so the traceback is rewritten for all of them.
            record.exc_text = self.hide(logging.Formatter().formatException(record.exc_info))
        return True

    def hide(self, text: str) -> str:
        """Return the text without secrets."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text


_FILTER = SecretFilter()
# Keeps the library's warnings off stderr where no logging was set up: what matters comes as an error of ours.
_SILENCE = logging.NullHandler()


def hide_in_logs(*secrets: str) -> None:
    """Keep these secrets out of every log of the Kafka library."""
    for secret in secrets:
        _FILTER.add(secret)
    logging.getLogger(LIBRARY).addHandler(_SILENCE)
    # A filter works on the logger it hangs on, not on its children: each gets it.
    names = [name for name in logging.root.manager.loggerDict if name == LIBRARY or name.startswith(f"{LIBRARY}.")]
    for name in sorted(names):
        logging.getLogger(name).addFilter(_FILTER)


def without_secrets(text: str) -> str:
    """Return the text with every known secret replaced."""
    return _FILTER.hide(text)
