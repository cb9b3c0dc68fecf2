"""An editor, as far as yaml-language-server can tell: opens a document, asks for completions and for what is wrong."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

from helpers.waiting import HANG

VERSION = "1.25.0"
SETTINGS = {"yaml": {"validate": True, "completion": True, "hover": True, "schemaStore": {"enable": False}}}


class NoServer(Exception):
    """The language server cannot be had here; the text says why."""


def server_command(folder: Path) -> list[str]:
    """Return the command that starts the server, fetched into that folder; raises NoServer."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise NoServer("Node is not installed")
    quietly = ("--silent", "--no-audit", "--no-fund", "--fetch-retries=0", "--prefix", str(folder))
    fetch = [npm, "install", *quietly, f"yaml-language-server@{VERSION}"]
    try:
        fetched = subprocess.run(fetch, capture_output=True, text=True, timeout=HANG, check=False)
    except subprocess.TimeoutExpired:
        raise NoServer(f"yaml-language-server was not fetched within {HANG} s") from None
    program = folder / "node_modules" / ".bin" / "yaml-language-server"
    if fetched.returncode != 0 or not program.exists():
        raise NoServer(f"yaml-language-server cannot be fetched: {fetched.stderr.strip()[:200]}")
    return [node, str(program), "--stdio"]


class Editor:
    """A client of the server, in a workspace; use it in a `with`."""

    def __init__(self, command: list[str], workspace: Path, schemas: Mapping[str, Any] | None = None) -> None:
        self._settings = {"yaml": SETTINGS["yaml"] | ({"schemas": schemas} if schemas else {})}
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=workspace
        )
        self._clock = Timer(HANG, self._server.kill)  # whoever waits for it is told
        self._clock.start()
        self._asked = 0
        self._wrong: dict[str, list[dict[str, Any]]] = {}
        self._versions: dict[str, int] = {}
        self._ask("initialize", {"processId": None, "rootUri": workspace.as_uri(), "capabilities": {}})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": self._settings})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._clock.cancel()
        self._server.kill()
        self._server.communicate()

    def open(self, file: Path) -> None:
        """Show a file to the server as it stands on disk; what it was before is another version."""
        uri = file.as_uri()
        if uri in self._versions:
            self._tell("textDocument/didClose", {"textDocument": {"uri": uri}})
        version = self._versions[uri] = self._versions.get(uri, 0) + 1
        item = {"uri": uri, "languageId": "yaml", "version": version, "text": file.read_text("utf-8")}
        self._wrong.pop(uri, None)
        self._tell("textDocument/didOpen", {"textDocument": item})

    def completions(self, file: Path, line: int, column: int) -> dict[str, str]:
        """Return what is offered there, both counting from 0: label -> its documentation."""
        found = self._ask("textDocument/completion", _place(file, line, column))
        items = found["items"] if isinstance(found, dict) else found or []
        return {item["label"]: _text(item.get("documentation", "")) for item in items}

    def hover(self, file: Path, line: int, column: int) -> str:
        """Return what is told of the word there."""
        found = self._ask("textDocument/hover", _place(file, line, column))
        return _text(found["contents"]) if found else ""

    def problems(self, file: Path) -> list[tuple[int, str]]:
        """Return what is wrong with a file that was opened: the line, counting from 0, and the message."""
        while file.as_uri() not in self._wrong:
            self._read()
        return [(each["range"]["start"]["line"], each["message"]) for each in self._wrong[file.as_uri()]]

    def _ask(self, method: str, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever that method answers
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": parameters})
        while True:
            message = self._read()
            if message.get("id") == self._asked and "method" not in message:
                return message.get("result")

    def _tell(self, method: str, parameters: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": parameters})

    def _send(self, message: Mapping[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self._server.stdin.flush()

    def _read(self) -> dict[str, Any]:
        """Return the server's next message; what it asks of an editor is answered, what it finds wrong is kept."""
        assert self._server.stdout is not None
        length = 0
        while (line := self._server.stdout.readline()) not in {b"\r\n", b""}:
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not length:
            raise AssertionError("the language server ended")
        message: dict[str, Any] = json.loads(self._server.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self._wrong[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif message.get("method") == "workspace/configuration":
            wanted = [self._settings.get(item.get("section")) for item in message["params"]["items"]]
            self._send({"id": message["id"], "result": wanted})
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "result": None})
        return message


def _place(file: Path, line: int, column: int) -> dict[str, Any]:
    return {"textDocument": {"uri": file.as_uri()}, "position": {"line": line, "character": column}}


def _text(told: object) -> str:
    if isinstance(told, dict):
        return str(told.get("value", ""))
    return "\n".join(map(_text, told)) if isinstance(told, list) else str(told)
