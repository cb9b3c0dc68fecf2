"""Locks a simulated cluster that is kept in a file: the system frees it when its holder dies, however that is."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from reconciler.model.lock import Holder, LockHeld, RateRequest, StopRequest
from reconciler.model.problem import Refused

_MOST_BYTES = 4096
_MOST_KEPT = 4 << 20
# Through a link it would write, and lock, a file somewhere else; opening a pipe would wait for ever.
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TAKE_TRIES, _READ_TRIES, _PAUSE_SECONDS = 3, 50, 0.004


class LockFile:
    """The lock of one file: held on a file beside it, which says who holds it and is gone otherwise."""

    def __init__(self, of: Path) -> None:
        self.path = of.with_name(of.name + ".lock")

    def take(self, holder: Holder, /) -> "HeldFile":
        """Return the lock; raises LockHeld where another process has it, Refused where none can be taken here."""
        for _ in range(_TAKE_TRIES):
            descriptor = self._opened()
            if self._is_locked(descriptor) and self._is_this(descriptor):
                return HeldFile(self.path, descriptor, holder)
            os.close(descriptor)
            time.sleep(_PAUSE_SECONDS)  # somebody only looks who holds it, or has just removed it
        raise LockHeld(self._named())

    def ask_to_stop(self, request: StopRequest, /) -> None:
        """Let the holder know, in a file that is gone with its lock; Refused where none can be written here."""
        self._put(asking(self.path), request.written())

    def ask_rate(self, request: RateRequest, /) -> None:
        """Let the holder know, in a file that is gone with its lock."""
        self._put(_beside(self.path, "rate"), request.written())

    @property
    def kept(self) -> str:
        """The text that the last holder kept in a file beside, "" for none."""
        try:
            return _text(_beside(self.path, "kept"), _MOST_KEPT)
        except OSError:
            return ""

    def keep(self, text: str, /) -> None:
        """Keep a text in place of the one before, all of it or nothing."""
        kept = _beside(self.path, "kept")
        if text:
            self._put(new := _beside(self.path, "new"), text)
            new.replace(kept)
        else:
            kept.unlink(missing_ok=True)

    def _put(self, path: Path, text: str) -> None:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _AS_IT_IS
            with os.fdopen(os.open(path, flags, 0o644), "w") as file:
                file.write(text)
        except OSError as error:
            raise self._impossible(error) from error

    @property
    def holder(self) -> Holder | None:
        """Who holds the lock, None while it is free, or where its file may not be read."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | _AS_IT_IS)
        except OSError:
            return None
        is_free = self._is_locked(descriptor)
        os.close(descriptor)
        return None if is_free else self._named()

    def _opened(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | _AS_IT_IS, 0o644)
        except OSError as error:
            raise self._impossible(error) from error

    def _is_locked(self, descriptor: int) -> bool:
        """Lock it, or return False where another has; closes it where no lock can be had at all."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            os.close(descriptor)
            raise self._impossible(error) from error
        return True

    def _is_this(self, descriptor: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        return False

    def _named(self) -> Holder | None:
        """Return whom the file names; its holder writes its name a moment after it has the lock."""
        for _ in range(_READ_TRIES):
            with suppress(OSError):
                found = Holder.read(_text(self.path))
                if found is not None:
                    return found
            time.sleep(_PAUSE_SECONDS)
        return None

    def _impossible(self, error: OSError) -> Refused:
        return Refused(f"{self.path} cannot be locked: {error.strerror}. Make its folder writable.", code="KR451")


def asking(lock: Path) -> Path:
    """Return the file that holds the request to stop of whoever has that lock."""
    return _beside(lock, "stop")


def _text(path: Path, most: int = _MOST_BYTES) -> str:
    with os.fdopen(os.open(path, os.O_RDONLY | _AS_IT_IS), errors="replace") as file:
        return file.read(most)


def _beside(lock: Path, what: str) -> Path:
    return lock.with_name(f"{lock.name}.{what}")


class HeldFile:
    """A lock that this process holds until it is released, or the process ends."""

    def __init__(self, path: Path, descriptor: int, holder: Holder) -> None:
        self._path = path
        self._descriptor: int | None = descriptor
        self.holder = holder
        self._asked_by: Holder | None = None
        self._forget_requests()
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, holder.written().encode(), 0)

    def is_held(self) -> bool:
        """Whether it is held."""
        return self._descriptor is not None

    @property
    def asked_by(self) -> Holder | None:
        """Who asks this holder to stop, None for nobody."""
        if self._asked_by is None and self._descriptor is not None:
            with suppress(OSError):
                request = StopRequest.read(_text(asking(self._path)))
                if request is not None and request.of == self.holder.purpose:
                    self._asked_by = request.by
        return self._asked_by

    @property
    def rate_asked(self) -> RateRequest | None:
        """Which rate its holder was last asked for."""
        with suppress(OSError):
            request = RateRequest.read(_text(_beside(self._path, "rate")))
            return request if request is not None and request.of == self.holder.purpose else None
        return None

    def release(self) -> None:
        """Give it back: the file goes while it is still locked, so that nobody else's can go with it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), self._path.stat()):
                self._forget_requests()
                self._path.unlink()
        os.close(descriptor)

    def _forget_requests(self) -> None:
        """Remove what was asked of a holder before, or of this one: nobody else is meant."""
        for path in (asking(self._path), _beside(self._path, "rate")):
            with suppress(OSError):
                path.unlink()
