"""Makes harmless what others wrote: topic names, racks, labels and config values can hold any character."""

import re
import unicodedata
from collections.abc import Iterable

EMPTY = "(empty)"
MASK = "(hidden)"
_SHORT_CODE = 4
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_SENSITIVE = re.compile(r"password|secret|token|key|jaas|credential", re.IGNORECASE)
# A word made of these alone is only text in Markdown. A colon may only end it: `http://` links, `:x:` is a picture.
_PLAIN_WORD = re.compile(r"[(\"']*[\w.,;%/+='()\"→·-]*:?")
_EDGES = re.compile(r"([(\"']*)(.*?)([)\"',.;]*:?)")
# The first character of a workflow command, in its present form and in its older one.
_COMMAND = re.compile(r"(?:(?<=\A)|(?<=[ \t])):(?=:[A-Za-z])|#(?=#\[)")
# As the first word of a line it would begin a list, or make a heading of the line before.
_BLOCK_MARK = re.compile(r"[-+=]+|\d+[.)]")
_LINKED_WORD = re.compile(r"(?i)www\.|gh-\d|(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")


def visible(text: str) -> str:
    """Return the text with every control, format and direction character, and lone surrogates, spelled out.

    So is what GitHub's runner would obey in a log: `::` where it begins a line, `##[` anywhere.
    """
    if "::" in text or "##[" in text:
        text = _COMMAND.sub(lambda found: _spelled(found.group()), text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(character) if _is_hidden(character) else character for character in text)


def code_span(text: str) -> str:
    """Return a Markdown code span that holds any text, also in a table: nothing in it links, mentions or ends it."""
    shown = "".join(_spelled(character) if character in "`|\\" else character for character in visible(text))
    return f"`{shown}`" if shown.strip() else f"`{EMPTY}`"


def sentence(text: str) -> str:
    """Return a sentence for Markdown: plain words stay as they are, every other one becomes a code span.

    The sentence's own brackets, quotes, commas and stops around such a word stay outside its span.
    """
    return " ".join(word if _is_plain(word) else _spanned(word) for word in text.split())


def bullets(texts: Iterable[str]) -> str:
    """Return a Markdown list with an item for each sentence; none of them begins a list of its own."""
    return "\n".join(f"- {_begun(sentence(text))}" for text in texts)


def config_value(key: str, value: str | None) -> str:
    """Return a config's value as it may be shown: `(none)` for no override, hidden where the key names a secret."""
    if value is None:
        return "(none)"
    if _SENSITIVE.search(key):
        return MASK
    return visible(value) or EMPTY


def _spanned(word: str) -> str:
    found = _EDGES.fullmatch(word)
    before, core, after = found.groups() if found else ("", word, "")
    if not core or ":" in core or core.count("(") > core.count(")"):
        before, core, after = "", word, ""
    return f"{before}{code_span(core)}{after}"


def _begun(line: str) -> str:
    first, space, rest = line.partition(" ")
    return f"{code_span(first)}{space}{rest}" if _BLOCK_MARK.fullmatch(first) else line


def _is_plain(word: str) -> bool:
    return bool(_PLAIN_WORD.fullmatch(word)) and "_" not in word and not _LINKED_WORD.search(word)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN_CATEGORIES


def _spelled(character: str) -> str:
    code = f"{ord(character):04x}"
    return f"\\u{code}" if len(code) == _SHORT_CODE else f"\\U{code:>08}"
