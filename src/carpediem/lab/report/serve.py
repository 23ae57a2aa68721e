"""The page on loopback while a study trains: the page, its data, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import ipaddress
import os
import socket
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from carpediem.lab.records import RecordError

from .gather import gather
from .page import embed_json, render_page

_FILES = ("study.json", "runs.jsonl", "runs", "runs/*", "runs/*/*")


class Watch:
    """Serves the report on `folders` until it is closed.

    Two addresses are answered: `/`, the page, and `/data.json`, what it shows, with an ETag that changes when a
    record does. No address is ever turned into a path. A request whose Host is another than the one that is
    served is refused, so that no page elsewhere can read the report by having its own name point here.

    Args:
        folders: as for `gather`.
        host: the address to listen on.
        port: the port, or 0 for any that is free.
    """

    def __init__(self, folders: Sequence[str | Path], *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._report = _Report([Path(folder) for folder in folders])
        self._report.current()  # folders that cannot be shown are refused before anything listens
        try:
            self._server = _Server((host, port), self._report)
        except (OSError, OverflowError) as error:
            raise OSError(
                f"cannot listen on {host} port {port}: {error}; choose another --host or --port"
            ) from error
        self.host, self.port = host, self._server.server_port

    @property
    def address(self) -> str:
        """What to open in a browser."""
        name = "127.0.0.1" if self.host in ("", "0.0.0.0") else "[::1]" if self.host == "::" else self.host
        return f"http://{f'[{name}]' if ':' in name and '[' not in name else name}:{self.port}/"

    def serve(self) -> None:
        """Answers requests until `close` is called, or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stops listening."""
        self._server.server_close()

    def start(self) -> None:
        """Answers requests in the background, until `stop`."""
        threading.Thread(target=self.serve, daemon=True).start()

    def stop(self) -> None:
        """Ends what `start` began."""
        self._server.shutdown()
        self.close()


class _Report:
    """The data as it is now, gathered again only when a file of the study has changed."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._seen: Any = None
        self._data: dict[str, Any] = {}
        self._body, self._tag = b"", ""

    def current(self) -> tuple[dict[str, Any], bytes, str]:
        """The data, the same as JSON, and its tag."""
        with self._lock:
            seen = self._stamps()
            if seen != self._seen:
                self._data = gather(self._folders)
                self._body = embed_json(self._data).encode()
                self._tag = f'"{hashlib.sha256(self._body).hexdigest()[:16]}"'
                self._seen = seen
            return self._data, self._body, self._tag

    def _stamps(self) -> list[tuple[str, int, int]]:
        stamps = []
        for folder in self._folders:
            files = [folder] if folder.is_file() else [f for pattern in _FILES for f in folder.glob(pattern)]
            for file in files:
                try:
                    status = file.stat()
                except OSError:  # gone since it was listed
                    continue
                if not file.name.startswith(("checkpoint", ".")):
                    stamps.append((str(file), status.st_mtime_ns, status.st_size))
        return sorted(stamps)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name == "posix"

    def __init__(self, address: tuple[str, int], report: _Report) -> None:
        self.report, self.host = report, address[0]
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader who has gone is no news."""

    def is_own(self, host: str | None) -> bool:
        """Whether a request's Host names this server."""
        if host is None:
            return False
        name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
        if not port.isdigit() or int(port) != self.server_port:
            return False
        name = name.strip("[]").lower()
        if name in ("localhost", self.host.lower()):
            return True
        # Told to listen to others, it is called by whichever address they reach it at; never by a name.
        return _is_address(name) and (self.host in ("", "0.0.0.0", "::") or _is_loopback(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return ipaddress.ip_address(name).is_loopback


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "carpediem", ""
    timeout = 30

    def do_GET(self) -> None:
        """Answers with the page or its data."""
        if not self.server.is_own(self.headers.get("Host")):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "This server answers to its own address only.")
            return
        path = self.path.partition("?")[0]
        if path not in ("/", "/data.json"):
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here but the report, at /.")
            return
        try:
            data, body, tag = self.server.report.current()
        except (RecordError, OSError, ValueError) as error:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"The records cannot be read: {error}")
            return
        if path == "/":
            self._answer(render_page(data, tag=tag).encode(), "text/html; charset=utf-8")
        elif self.headers.get("If-None-Match") == tag:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.send_header("ETag", tag)
            self.end_headers()
        else:
            self._answer(body, "application/json", tag)

    do_HEAD = do_GET

    def _answer(
        self, body: bytes, kind: str, tag: str | None = None, status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        packed = "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > 1000
        body = gzip.compress(body, 1) if packed else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        if tag is not None:
            self.send_header("ETag", tag)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._answer(f"{sentence}\n".encode(), "text/plain; charset=utf-8", status=status)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is said about single requests."""
