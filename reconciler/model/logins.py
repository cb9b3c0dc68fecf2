"""Finds logins in URIs: for each place that hides them, refuses them, or keeps them off a command line."""

import re

# An access key and its secret, which may hold slashes; what follows a port is a path, which may hold an @.
_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/@:\s]+:(?!\d{1,5}/)([^@\s]+))@")


def logins_in(text: str) -> list[str]:
    """Return each login in the URIs of a text, and its password alone."""
    return [part for login in _LOGIN.findall(text) for part in login]
