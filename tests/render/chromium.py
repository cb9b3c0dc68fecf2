"""A real browser for tests, headless, driven through the DevTools protocol over two pipes: no driver, no library.

    with Chromium() as browser:
        page = browser.open(path, width=1280, is_dark=True)   # loaded, and quiet
        page.console, page.requests, page.failures            # what it said, asked for, and did not get
        page.evaluate("document.title")
        page.screenshot(Path("page.png"))

The browser is the one that CHROMIUM names, else one on the PATH (`chromium`, as Debian's package installs it, or
Chrome). Where there is none it is fetched once, into the user's cache folder, from the npm package
@sparticuz/chromium, which holds the binary itself: that needs `npm` and `node`, and Linux on x86-64.
`BrowserMissingError` says what is missing.
"""

import base64
import contextlib
import itertools
import json
import os
import platform
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from helpers.brokers.kafka_jars import cache_folder
from helpers.waiting import ATTEMPT, HANG, wait_for

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell", "chrome")
PACKAGE = "@sparticuz/chromium@153.0.0"
QUIET_SECONDS = 0.2
"""A page that asks for nothing for so long is done."""
FLAGS = (
    "--headless",
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# DevTools' pipes are descriptors 3 and 4 of the browser.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
# The binary lies packed in the package; Python cannot unpack brotli, node can.
_UNPACK = """
const zlib = require("zlib"), fs = require("fs"), [from, to] = process.argv.slice(1);
for (const name of ["chromium", "al2023.tar", "fonts.tar"])
  fs.writeFileSync(`${to}/${name}`, zlib.brotliDecompressSync(fs.readFileSync(`${from}/${name}.br`)));
"""


_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>{folder}/fonts-cache</cachedir></fontconfig>
"""


class BrowserMissingError(RuntimeError):
    """No browser here; the text says how to get one."""


@dataclass(frozen=True, slots=True)
class Binary:
    """A browser's program, and the variables that it needs."""

    path: str
    variables: dict[str, str] = field(default_factory=dict)


def find_chromium() -> Binary:
    """Return the browser, fetching it first where there is none; raises BrowserMissingError."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return Binary(named) if named else _fetched()


@dataclass
class Page:
    """A page that was opened, and what happened on it since."""

    browser: "Chromium"
    session: str
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - whatever the script returns
        """Return the value of a script."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in told:
            raise AssertionError(told["exceptionDetails"])
        return told["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(told["data"]))

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Return the answer to a DevTools command about this page."""
        return self.browser.call(method, parameters, self.session)

    def note(self, event: dict[str, Any]) -> None:
        """Keep what an event tells."""
        told = event.get("params", {})
        match event["method"]:
            case "Runtime.consoleAPICalled":
                self.console.append(str([each.get("value") for each in told["args"]]))
            case "Runtime.exceptionThrown":
                self.console.append(str(told["exceptionDetails"]))
            case "Log.entryAdded":
                self.console.append(str(told["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requests.append(str(told["request"]["url"]))
            case "Network.loadingFailed":
                self.failures.append(str(told.get("blockedReason") or told["errorText"]))
            case _:
                pass


class Chromium(contextlib.AbstractContextManager["Chromium"]):
    """One browser process; it ends with the `with` block."""

    def __init__(self) -> None:
        binary = find_chromium()
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        command = [sys.executable, "-S", "-c", _LAUNCH, str(theirs_in), str(theirs_out), binary.path, *FLAGS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._profile}"],
            pass_fds=(theirs_in, theirs_out),
            env={**os.environ, **binary.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._numbers = itertools.count(1)
        self._left = b""
        self._pages: dict[str, Page] = {}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the browser and remove its profile."""
        self._process.terminate()
        try:
            self._process.wait(ATTEMPT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(HANG)
        for end in (self._read, self._write):
            os.close(end)
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, path: Path, *, width: int = 1280, height: int = 900, is_dark: bool = False) -> Page:
        """Return the page of that file, loaded, as it looks in a window of that size."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        address = path.resolve().as_uri()
        page.call("Page.navigate", url=address)
        loaded = f"{address},complete"
        # Not the load event: that of the blank page before may come late.
        wait_for(lambda: page.evaluate("[location.href, document.readyState].join()") == loaded, loaded, pause=0.02)
        # Whatever the page asks for late would come now.
        with contextlib.suppress(TimeoutError):
            while True:
                self._take(QUIET_SECONDS)
        return page

    def call(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        """Return the answer to a DevTools command."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            told = self._take(HANG)
            if told.get("id") == number:
                if "error" in told:
                    raise AssertionError(f"{method}: {told['error']}")
                result: dict[str, Any] = told["result"]
                return result

    def _take(self, seconds: float) -> dict[str, Any]:
        """Return the next message; raise TimeoutError where none comes for so long. An event is noted on its page."""
        while b"\0" not in self._left:
            if not select.select([self._read], [], [], seconds)[0]:
                raise TimeoutError("the browser does not answer")
            some = os.read(self._read, 1 << 20)
            if not some:
                raise BrowserMissingError(f"the browser ended with {self._process.wait(HANG)}")
            self._left += some
        first, _, self._left = self._left.partition(b"\0")
        told: dict[str, Any] = json.loads(first)
        page = self._pages.get(told.get("sessionId", ""))
        if "method" in told and page is not None:
            page.note(told)
        return told


def _fetched() -> Binary:
    target = cache_folder() / PACKAGE.rpartition("/")[2].replace("@", "-")
    if not (target / "chromium").exists():
        _fetch(target)
    libraries = os.pathsep.join(filter(None, (str(target / "lib"), os.environ.get("LD_LIBRARY_PATH"))))
    return Binary(str(target / "chromium"), {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_PATH": str(target)})


def _fetch(target: Path) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or not (
        shutil.which("npm") and shutil.which("node")
    ):
        raise BrowserMissingError(
            "no browser: install Chromium (Debian: chromium), name one with CHROMIUM, or install npm and node on Linux "
            f"x86-64, with which the tests fetch {PACKAGE}"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".chromium-") as workspace:
        folder = Path(workspace)
        _run(["npm", "pack", PACKAGE, "--silent", "--pack-destination", workspace])
        with tarfile.open(next(folder.glob("*.tgz"))) as package:
            package.extractall(folder, filter="data")
        ready = folder / "ready"
        ready.mkdir()
        _run(["node", "-e", _UNPACK, str(folder / "package" / "bin"), str(ready)])
        for name in ("al2023.tar", "fonts.tar"):
            with tarfile.open(ready / name) as archive:
                archive.extractall(ready, filter="data")
            (ready / name).unlink()
        (ready / "chromium").chmod(0o755)
        # The package's own file names folders of another machine; without a font no text is drawn at all.
        (ready / "fonts.conf").write_text(_FONTS.format(folder=target))
        with contextlib.suppress(OSError):  # another run put it there meanwhile
            ready.rename(target)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    if done.returncode != 0:
        raise BrowserMissingError(f"fetching a browser failed: {command[0]}: {(done.stdout + done.stderr)[-500:]}")
