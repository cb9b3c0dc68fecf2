#!/usr/bin/env python3
"""id_token.py AUDIENCE FILE: keeps GitHub's identity token of this job in FILE, for logins by OAuth and AWS.

A token is valid for minutes, and a run lasts for hours: the file gets a new one every four minutes, until the job ends
or GitHub gives none any more. It exits with 1 after five failures in a row.
It needs ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN, which a job with `id-token: write` has.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

EVERY_SECONDS = 240
TRIES = 5
MOST_BYTES = 1 << 20


def main(audience: str, file: Path, variables: Mapping[str, str], pause: Callable[[float], None] = time.sleep) -> int:
    """Renew the token until none comes; return the exit code."""
    failures = 0
    while failures < TRIES:
        try:
            _write(file, _token(audience, variables))
        except (OSError, ValueError, KeyError) as error:
            failures += 1
            print(f"::warning::GitHub gave no identity token for {audience}: {type(error).__name__}", flush=True)
            pause(min(EVERY_SECONDS, 5**failures))
        else:
            failures = 0
            pause(EVERY_SECONDS)
    return 1


def _token(audience: str, variables: Mapping[str, str]) -> str:
    url = f"{variables['ACTIONS_ID_TOKEN_REQUEST_URL']}&audience={quote(audience, safe='')}"
    bearer = {"Authorization": f"Bearer {variables['ACTIONS_ID_TOKEN_REQUEST_TOKEN']}"}
    with urlopen(Request(url, headers=bearer), timeout=10) as answer:
        token = json.loads(answer.read(MOST_BYTES))["value"]
    if not isinstance(token, str) or not token:
        raise ValueError(token)
    return token


def _write(file: Path, token: str) -> None:
    """Put the token in place as a whole: a login may read it at any moment."""
    new = file.with_name(f"{file.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as out:
        out.write(token)
    new.replace(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), os.environ))
