"""Address, trusted certificates and token of a server, checked before anything is sent."""

import os
import ssl
import stat
from collections.abc import Mapping
from pathlib import Path
from re import compile as regex
from urllib.parse import urlsplit

from pendula.kernel.errors import InputRefused, WrongUsage

TOKEN_VARIABLE = "PENDULA_TOKEN"
TOKEN_PATTERN = regex(r"[\x21-\x7e]{1,512}")


class TokenUnusable(InputRefused):
    """Facts: `file`, where the token comes from one."""

    code = "token_unusable"


def token_from(file: str | Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The access token: from a file that only its owner can read, else from `PENDULA_TOKEN`, else None."""
    if file is None:
        token = environ.get(TOKEN_VARIABLE) or None
        if token is not None and TOKEN_PATTERN.fullmatch(token) is None:
            raise TokenUnusable(f"{TOKEN_VARIABLE} does not hold a token, which is one word")
        return token
    path = Path(file)
    try:
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            raise TokenUnusable(f"{path} is readable by others; restrict it to its owner (chmod 600)", file=str(path))
        token = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as trouble:
        raise TokenUnusable(f"The token in {path} cannot be read: {trouble.strerror}", file=str(path)) from None
    if TOKEN_PATTERN.fullmatch(token) is None:
        raise TokenUnusable(f"{path} does not hold a token, which is one word", file=str(path))
    return token


def trust(ca: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as trouble:  # includes `SSLError`
        raise WrongUsage(f"{ca} does not hold certificates to trust: {trouble.strerror or trouble}") from None


def place_of(url: str) -> tuple[bool, str, int | None, str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise WrongUsage(f"{url!r} is not the address of a server; write http://127.0.0.1:8765") from None
    if parts.username is not None or parts.password is not None:
        raise WrongUsage(f"An address must not hold secrets; a token comes from {TOKEN_VARIABLE} or a file")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise WrongUsage(f"{url!r} is not the address of a server; write http://127.0.0.1:8765", url=url)
    return parts.scheme == "https", parts.hostname, port, parts.path.rstrip("/")
