"""The built control room, read out of the package once and served from memory.

Only what was found when the server started can be fetched, by its exact name: there is no path for a request to walk.
"""

import html
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import guess_type

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.server.errors import NotFound

INDEX = "index.html"
ASSETS = "assets/"
# The names of assets change with their contents, so a browser never has to ask again.
FOREVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
# Named here because the table of the operating system differs from machine to machine.
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
    """One file of the page, ready to send."""

    body: bytes
    media_type: str
    etag: str
    cache_control: str


class Page:
    """All files of the page by their path; empty where the page was not built."""

    def __init__(self, root: Traversable) -> None:
        self._files = {path: _file(path, found.read_bytes()) for path, found in _walk(root, "")}

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
        headers = {"etag": file.etag, "cache-control": file.cache_control}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, media_type=file.media_type, headers=headers)


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
<p>The server runs, but the control room is not part of this installation. What <code>pip install pendula</code> brings
has it; a checkout builds it when it is set up with Node 20.19 or newer on the path.</p>
<p>Everything else works: <a href="/api/v1/rooms">the rooms</a>, <a href="/readyz">how they are</a>,
<a href="/openapi.json">the whole interface</a>, and the command line, <code>pendula --help</code>.</p>
</body>
</html>
"""
