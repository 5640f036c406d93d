"""Rejects requests from web pages: without keys, the service is only for programs on the same machine.

A page in a local browser can send requests too. The browser names the sending page (`Origin`) and the host name it used
(`Host`), which a page may have made to point here.
"""

import re
from collections.abc import Iterable

_HERE = re.compile(rb"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")
_JSON = re.compile(rb"application/(\w[\w.+-]*\+)?json\s*(;.*)?", re.IGNORECASE)

Headers = Iterable[tuple[bytes, bytes]]


def is_from_here(headers: Headers) -> bool:
    """Whether the request used this machine's own name and does not come from another page."""
    for name, value in headers:
        if name == b"host" and not _HERE.fullmatch(value):
            return False
        if name == b"origin" and not _HERE.fullmatch(value.partition(b"://")[2]):
            return False
    return True


def is_json(headers: Headers) -> bool:
    """Whether the body is declared as JSON; pages can send other types without a preflight request."""
    return any(name == b"content-type" and _JSON.fullmatch(value) is not None for name, value in headers)
