"""Limits: each has a name, a default, a unit and the code of its refusal.

Settings may change the numbers; names and codes are part of the public contract.
"""

from msgspec import Struct

from pendula.kernel.errors import LimitExceeded

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Limit(Struct, frozen=True):
    """A named upper bound. `unit` is a plural with an s, or a symbol such as m."""

    name: str
    default: int
    unit: str
    code: str
    sentence: str

    def counted(self, value: int) -> str:
        """A number with the unit: 1 level, 2 levels."""
        return f"{value} {self.unit.removesuffix('s') if value == 1 else self.unit}"

    def check(self, value: int, allowed: int | None = None) -> None:
        """Raise `LimitExceeded` if `value` is above `allowed` (the default when not given)."""
        most = self.default if allowed is None else allowed
        if value > most:
            raise LimitExceeded(
                f"{self.sentence}: {self.counted(value)}; the limit is {most}",
                limit=self.name,
                limit_code=self.code,
                value=value,
                allowed=most,
            )


DOCUMENT_BYTES = Limit("document_bytes", 64 * MIB, "bytes", "document_too_large", "The document is too large")
DOCUMENT_DEPTH = Limit("document_depth", 64, "levels", "document_too_deep", "The document is nested too deeply")
DOCUMENT_NODES = Limit("document_nodes", 5_000_000, "values", "too_many_values", "The document has too many values")
DOCUMENT_FAULTS = Limit("document_faults", 100, "faults", "too_many_faults", "The document has too many faults to list")
INTEGER_DIGITS = Limit("integer_digits", 4300, "digits", "number_too_long", "The number is too long")

RECORD_BYTES = Limit("record_bytes", 64 * MIB, "bytes", "record_too_large", "The journal record is too large")
SEGMENT_BYTES = Limit("segment_bytes", 16 * MIB, "bytes", "segment_full", "The journal segment is full")
JOURNAL_BYTES = Limit("journal_bytes", 4 * GIB, "bytes", "journal_full", "The journal is full")
SNAPSHOT_EVERY = Limit("snapshot_every", 10_000, "commands", "snapshot_due", "A snapshot is due")
MIN_FREE_BYTES = Limit("min_free_bytes", 64 * MIB, "bytes", "disk_low", "The disk is nearly full")

WAITING_COMMANDS = Limit("waiting_commands", 1000, "commands", "busy", "Too many commands are waiting for this engine")
STREAM_BUFFER_EVENTS = Limit("stream_buffer_events", 2_000, "events", "stream_gap", "The reader fell behind")
ENGINES = Limit("engines", 64, "engines", "too_many_engines", "The scheduler has too many engines")
STREAMS = Limit("streams", 256, "streams", "too_many_streams", "Too many streams are open")
STREAMS_PER_TOKEN = Limit(
    "streams_per_token", 64, "streams", "too_many_streams", "This token has too many streams open"
)
BODY_BYTES = Limit("body_bytes", 8 * MIB, "bytes", "body_too_large", "The request body is too large")
BODY_VALUES = Limit("body_values", 250_000, "values", "too_many_values", "The request body has too many values")
BODY_DIGITS = Limit("body_digits", 300, "digits", "number_too_long", "A number in the request body is too long")
BODIES_BYTES = Limit("bodies_bytes", 16 * MIB, "bytes", "bodies_busy", "Too many body bytes are being read")
PAST_READS = Limit("past_reads", 32, "reads", "past_busy", "Too many reads of past states are waiting")
PAST_READS_PER_CALLER = Limit(
    "past_reads_per_caller", 16, "reads", "past_busy", "This caller has too many reads in progress"
)
READ_SECONDS = Limit("read_seconds", 30, "seconds", "read_too_long", "The read takes too long")
REQUESTS = Limit("requests", 512, "requests", "too_many_requests", "Too many requests are being answered")
HEADER_SECONDS = Limit("header_seconds", 10, "seconds", "slow_request", "The request took too long to arrive")
READER_SECONDS = Limit("reader_seconds", 30, "seconds", "slow_reader", "The reader does not receive what is sent")

ALL: tuple[Limit, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Limit))
BY_NAME: dict[str, Limit] = {limit.name: limit for limit in ALL}
