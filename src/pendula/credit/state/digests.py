"""A running SHA-256 that can be saved and resumed, so that a restored run ends with the same digest.

Objects of the standard library cannot be saved. The C library below them can: its state is eight words, a length and
the unfinished block. Without access to that library a slow Python implementation gives the same result.
"""

import ctypes
from hashlib import sha256
from typing import Protocol

from msgspec import Struct

from pendula.kernel.errors import InputRefused

BLOCK = 64
_MASK = 0xFFFFFFFF


class Saved(Struct, frozen=True, forbid_unknown_fields=True):
    """Words and unfinished block in hexadecimal, the length in bytes."""

    words: str
    length: int
    rest: str


class InvalidDigest(InputRefused):
    """The input is not a saved running digest."""

    code = "invalid_digest"


class RunningDigest(Protocol):
    def update(self, data: bytes) -> None: ...
    def hexdigest(self) -> str: ...
    def save(self) -> Saved: ...


class _Context(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_uint32 * 8),
        ("low", ctypes.c_uint32),
        ("high", ctypes.c_uint32),
        ("rest", ctypes.c_uint8 * BLOCK),
        ("filled", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        # Space for a library with undocumented members.
        ("spare", ctypes.c_uint8 * 64),
    )


def _library() -> ctypes.CDLL | None:
    """The library the interpreter hashes with, if its functions are accessible and give the right result."""
    try:
        import _hashlib

        library = ctypes.CDLL(_hashlib.__file__)
        for name in ("SHA256_Init", "SHA256_Update", "SHA256_Final"):
            getattr(library, name).restype = ctypes.c_int
        library.SHA256_Init.argtypes = (ctypes.c_void_p,)
        library.SHA256_Update.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
        library.SHA256_Final.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    return library if _works(library) else None


def _works(library: ctypes.CDLL) -> bool:
    """Whether a digest saved in the middle of a block resumes correctly."""
    text = bytes(range(256)) * 3
    first = NativeDigest(library)
    first.update(text[:100])
    second = NativeDigest(library, first.save())
    second.update(text[100:])
    return second.hexdigest() == sha256(text).hexdigest()


class NativeDigest:
    """Implemented by the C library."""

    def __init__(self, library: ctypes.CDLL, saved: Saved | None = None) -> None:
        self._library = library
        self._context = _Context()
        self._at = ctypes.byref(self._context)
        library.SHA256_Init(self._at)
        if saved is not None:
            words, rest = _opened(saved)
            self._context.words[:] = words
            bits = saved.length * 8
            self._context.low, self._context.high = bits & _MASK, bits >> 32 & _MASK
            self._context.rest[: len(rest)] = tuple(rest)
            self._context.filled = len(rest)

    def update(self, data: bytes) -> None:
        self._library.SHA256_Update(self._at, data, len(data))

    def hexdigest(self) -> str:
        copy = _Context.from_buffer_copy(self._context)
        digest = ctypes.create_string_buffer(32)
        self._library.SHA256_Final(digest, ctypes.byref(copy))
        return digest.raw.hex()

    def save(self) -> Saved:
        context = self._context
        words = b"".join(int(word).to_bytes(4, "big") for word in context.words)
        length = (context.high << 32 | context.low) // 8
        return Saved(words.hex(), length, bytes(context.rest[: context.filled]).hex())


class PlainDigest:
    """Implemented in Python; a hundred times slower."""

    def __init__(self, saved: Saved | None = None) -> None:
        if saved is None:
            self._words, self._rest, self._length = list(_FIRST), b"", 0
        else:
            words, self._rest = _opened(saved)
            self._words, self._length = list(words), saved.length

    def update(self, data: bytes) -> None:
        self._length += len(data)
        data = self._rest + data
        whole = len(data) // BLOCK * BLOCK
        for start in range(0, whole, BLOCK):
            _compress(self._words, data[start : start + BLOCK])
        self._rest = data[whole:]

    def hexdigest(self) -> str:
        words = list(self._words)
        padding = b"\x80" + b"\0" * (-(len(self._rest) + 9) % BLOCK) + (self._length * 8).to_bytes(8, "big")
        last = self._rest + padding
        for start in range(0, len(last), BLOCK):
            _compress(words, last[start : start + BLOCK])
        return b"".join(word.to_bytes(4, "big") for word in words).hex()

    def save(self) -> Saved:
        return Saved(b"".join(word.to_bytes(4, "big") for word in self._words).hex(), self._length, self._rest.hex())


def running_digest(saved: Saved | None = None) -> RunningDigest:
    """A new digest, or the saved one; raises `InvalidDigest`."""
    return PlainDigest(saved) if _LIBRARY is None else NativeDigest(_LIBRARY, saved)


def _opened(saved: Saved) -> tuple[tuple[int, ...], bytes]:
    try:
        words, rest = bytes.fromhex(saved.words), bytes.fromhex(saved.rest)
    except ValueError:
        raise InvalidDigest("A saved digest is written in hexadecimal") from None
    if len(words) != 32 or saved.length < 0 or len(rest) != saved.length % BLOCK:
        raise InvalidDigest("A saved digest has eight words and the rest of its length")
    return tuple(int.from_bytes(words[at : at + 4], "big") for at in range(0, 32, 4)), rest


def _fractions(power: int) -> tuple[int, ...]:
    """The first 32 bits behind the point of the roots of the first primes: the initial constants of SHA-256."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < 64:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    words = []
    for prime in primes:
        target = prime << 32 * power
        low, high = 0, 1 << 40
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**power <= target else (low, middle)
        words.append(low & _MASK)
    return tuple(words)


_FIRST = _fractions(2)[:8]
_ROUND = _fractions(3)


def _turned(word: int, by: int) -> int:
    return (word >> by | word << 32 - by) & _MASK


def _compress(words: list[int], block: bytes) -> None:
    w = [int.from_bytes(block[at : at + 4], "big") for at in range(0, BLOCK, 4)]
    for i in range(16, 64):
        x, y = w[i - 15], w[i - 2]
        small = _turned(x, 7) ^ _turned(x, 18) ^ x >> 3
        large = _turned(y, 17) ^ _turned(y, 19) ^ y >> 10
        w.append((w[i - 16] + small + w[i - 7] + large) & _MASK)
    a, b, c, d, e, f, g, h = words
    for i in range(64):
        one = h + (_turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25)) + (e & f ^ ~e & g) + _ROUND[i] + w[i]
        two = (_turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = (one + two) & _MASK, a, b, c, (d + one) & _MASK, e, f, g
    for at, value in enumerate((a, b, c, d, e, f, g, h)):
        words[at] = words[at] + value & _MASK


_LIBRARY = _library()
