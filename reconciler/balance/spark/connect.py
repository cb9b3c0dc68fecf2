"""Speaks with a Spark Connect server: a session of its own there, which ends with the block.

The server runs the jobs, so files must lie where it sees them too. It tells no figures of its work.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from reconciler.model.problem import ReconcilerError, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_PACKAGES = "KR290"
NOT_STARTED = "KR023"
REMOTE = "SPARK_REMOTE"
_MODE = "SPARK_CONNECT_MODE_ENABLED"
_SCHEME = "sc:"
_ANSWER_SECONDS, _END_SECONDS = 20, 5


def server_of(master: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the Spark Connect server that is named, None where it is none: the master goes first."""
    named = master or environ.get(REMOTE, "")
    return named if named.startswith(_SCHEME) else None


def shown(url: str) -> str:
    """Return the URL without what follows the port: a token may stand there."""
    return url.partition("/;")[0]


def is_connected() -> bool:
    """Return whether Spark's functions are those of Spark Connect at the moment."""
    return _MODE in os.environ


@contextmanager
def connected(url: str) -> Iterator["SparkSession"]:
    """Yield a new session on that server; what runs on it is ended with the block, however that ends.

    Raises ReconcilerError, in one sentence, where packages are missing or no server answers.
    """
    # Spark's functions are those of Spark Connect where the environment says so.
    with _environment({_MODE: "1", REMOTE: url}):
        session = _session_on(url)
        try:
            with _active(session):
                yield session
        except Exception:
            raise
        except BaseException:
            _within(_END_SECONDS, session.interruptAll)
            raise
        finally:
            _within(_END_SECONDS, session.stop)


def existing() -> "SparkSession | None":
    """Return the session on a server that this process works with already, None where there is none."""
    if not is_connected():
        return None
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    found: Any = ConnectSession.getActiveSession() or ConnectSession._default_session  # noqa: SLF001 - starts none
    return cast("SparkSession | None", found)


@contextmanager
def lent(session: "SparkSession") -> Iterator["SparkSession"]:
    """Yield a session whose settings may be changed; that of somebody else, which is given, is the same afterwards.

    From 4.1 on servers make a copy of it; before, the given session is changed, and its settings are put back.
    """
    copy: Any = getattr(session, "cloneSession", None)
    if copy is not None:
        # A server knows of a session only what was asked of it before, and copies none that it never heard of.
        session.conf.get("spark.sql.session.timeZone")
        own = copy()
        try:
            with _active(own):
                yield own
        finally:
            _within(_END_SECONDS, own.stop)
        return
    before = {row.key: row.value for row in session.sql("SET").collect()}
    try:
        yield session
    finally:
        _give_back(session, before)


def _give_back(session: "SparkSession", before: Mapping[str, str]) -> None:
    """Put its settings back. One that was not changed is not touched: Spark does not show a secret as it is."""
    now = {row.key: row.value for row in session.sql("SET").collect()}
    for key in now.keys() - before.keys():
        session.conf.unset(key)
    for key, value in before.items():
        if now.get(key) != value:
            session.conf.set(key, value)


@contextmanager
def no_server() -> Iterator[str | None]:
    """Let no variable name a server; yield the master of this machine that it named instead, such as local[2]."""
    named = os.environ.get(REMOTE, "")
    with _environment({REMOTE: None, _MODE: None}):
        yield named if named.startswith("local") else None


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Let variables have these values, None for none, and give them back."""
    before = {name: os.environ.get(name) for name in values}
    _put(values)
    try:
        yield
    finally:
        _put(before)


def _put(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _active(session: "SparkSession") -> Iterator[None]:
    """Make it the active session of this thread: the client takes a settled table for one of that session."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    held: Any = ConnectSession._active_session  # noqa: SLF001 - as its own `_set_default_and_active_session`
    before = getattr(held, "session", None)
    held.session = session
    try:
        yield
    finally:
        held.session = before


def _session_on(url: str) -> "SparkSession":
    try:
        import grpc
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        message = "Spark Connect needs packages that are not installed: pip install 'pyspark[connect]'"
        raise ReconcilerError(f"{message} ({first_line(error)})", code=NO_PACKAGES) from error
    try:
        session: Any = ConnectSession(connection=url)
        # The client itself would try again for ten minutes, and not say so.
        grpc.channel_ready_future(session.client._channel).result(_ANSWER_SECONDS)  # noqa: SLF001 - it has no other way
    except grpc.FutureTimeoutError:
        message = f"no Spark Connect server answers at {shown(url)} within {_ANSWER_SECONDS} s"
        raise ReconcilerError(f"{message}: check the address, and that the server runs", code=NOT_STARTED) from None
    except (PySparkException, ValueError) as error:
        reason = first_line(error).replace(url, shown(url))
        raise ReconcilerError(f"Spark did not start on {shown(url)}: {reason}", code=NOT_STARTED) from error
    return cast("SparkSession", session)


def _within(seconds: float, action: Callable[[], object]) -> None:
    """Do it, and do not wait for longer: to a server that is gone, the client would try for ten minutes."""

    def quietly() -> None:
        with suppress(Exception):
            action()

    doing = Thread(target=quietly, daemon=True)
    doing.start()
    doing.join(seconds)
