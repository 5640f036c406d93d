"""Conversations that an audit found nothing in and so did not keep, as the index keeps them: compressed lines."""

import json
import zlib
from pathlib import Path

from bylaw.audit.line import encode
from bylaw.audit.store import JsonRecord, read_record


def packed(told: JsonRecord) -> bytes:
    """A conversation in few bytes."""
    try:
        line = encode(told)
    except UnicodeEncodeError:
        # A lone surrogate, which JSON can spell and UTF-8 cannot.
        line = json.dumps(told, default=str).encode("ascii")
    return zlib.compress(line, 1)


def unpacked(data: bytes, place: Path) -> JsonRecord:
    """What was packed, out of the file at `place`."""
    return read_record(zlib.decompress(data), place)
