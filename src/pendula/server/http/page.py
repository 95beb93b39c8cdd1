"""The built control room, read from the package once and served from memory.

Only files found at the start can be fetched, by exact name; no request is mapped to a file path.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import guess_type

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.server.errors import NotFound
from pendula.server.http.envelope import CONTENT_POLICY

INDEX = "index.html"
ASSETS = "assets/"
# Asset names contain a content hash, so browsers can cache them without revalidation.
FOREVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
DOCS = "docs/"
NOT_FOUND = f"{DOCS}404.html"
# Written by the documentation build: the hashes of inline scripts in its pages.
SCRIPT_HASHES = f"{DOCS}script-hashes.json"
HASH = re.compile(r"sha256-[A-Za-z0-9+/]{43}=")
# Defined here because the tables of operating systems differ.
TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webp": "image/webp",
    "woff2": "font/woff2",
}


class File(Struct, frozen=True):
    """One file of the page."""

    body: bytes
    media_type: str
    etag: str
    cache_control: str


class Page:
    """All files of the page by path; empty if the page was not built."""

    def __init__(self, root: Traversable) -> None:
        self._files = {path: _file(path, found.read_bytes()) for path, found in _walk(root, "")}
        self._docs_policy = _policy_with(self._files.get(SCRIPT_HASHES))

    @classmethod
    def packaged(cls) -> "Page":
        return cls(files("pendula.server").joinpath("page"))

    @property
    def built(self) -> bool:
        return INDEX in self._files

    def respond(self, path: str, request: Request) -> Response:
        """The file at `path`; raises `NotFound` for any other name."""
        if path == INDEX and not self.built:
            return Response(NOT_BUILT, media_type="text/html")
        file = self._files.get(path)
        if file is None:
            raise NotFound(f"The page has no file {html.escape(path)[:256]!r}")
        return _answer(file, request, {})

    def respond_with_docs(self, path: str, request: Request) -> Response:
        """The documentation page or file at `path`; its 404 page for any other name."""
        # Also with 304, whose headers replace cached ones.
        headers = {"content-security-policy": self._docs_policy}
        file = self._files.get(f"{DOCS}{path or INDEX}")
        if file is not None:
            return _answer(file, request, headers)
        missing = self._files.get(NOT_FOUND)
        if missing is None:
            raise NotFound(f"The documentation has no page {html.escape(path)[:256]!r}")
        return Response(missing.body, status_code=404, media_type=missing.media_type, headers=headers)


def _answer(file: File, request: Request, more: Mapping[str, str]) -> Response:
    headers = {"etag": file.etag, "cache-control": file.cache_control, **more}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)


def _policy_with(hashes: File | None) -> str:
    """The content policy of all pages, plus these script hashes."""
    listed = [] if hashes is None else [f"'{one}'" for one in json.loads(hashes.body) if HASH.fullmatch(one)]
    return CONTENT_POLICY.replace("script-src 'self'", " ".join(["script-src 'self'", *listed]))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.is_file():
            yield prefix + entry.name, entry


def _file(path: str, body: bytes) -> File:
    ending = path.rpartition(".")[2]
    media_type = TYPES.get(ending) or guess_type(path)[0] or "application/octet-stream"
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    return File(body, media_type, etag, FOREVER if path.startswith(ASSETS) else ASK_AGAIN)


NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Pendula</title></head>
<body>
<h1>Pendula</h1>
<p>The server is running, but this installation does not include the control room. <code>pip install pendula</code>
includes it; a checkout builds it during set-up if Node 20.19 or newer is on the path.</p>
<p>Everything else works: the <a href="/api/v1/schedulers">schedulers</a>, their <a href="/readyz">readiness</a>, the
<a href="/openapi.json">HTTP interface</a>, and the command line, <code>pendula --help</code>.</p>
</body>
</html>
"""
