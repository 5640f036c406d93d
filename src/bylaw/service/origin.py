"""Where a request comes from: without keys the service is for programs on its machine, and for no web page.

A page that somebody has open in a browser there can send requests, too. The browser names the page that sends one
(`Origin`), and the name by which it found us (`Host`), which a page may have made to point here.
"""

import re
from collections.abc import Iterable

_HERE = re.compile(rb"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")
_JSON = re.compile(rb"application/(\w[\w.+-]*\+)?json\s*(;.*)?", re.IGNORECASE)

Headers = Iterable[tuple[bytes, bytes]]


def is_from_here(headers: Headers) -> bool:
    """Whether it was sent under this machine's own name, and by no page from elsewhere."""
    for name, value in headers:
        if name == b"host" and not _HERE.fullmatch(value):
            return False
        if name == b"origin" and not _HERE.fullmatch(value.partition(b"://")[2]):
            return False
    return True


def is_json(headers: Headers) -> bool:
    """Whether its body is said to be JSON; a page may send anything else without asking whether it may."""
    return any(name == b"content-type" and _JSON.fullmatch(value) is not None for name, value in headers)
