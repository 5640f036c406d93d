"""Determines whether a pattern for hosts or addresses can match only one host."""

import re

_HOST = r"[A-Za-z0-9-]+(?:(?:\[\.\]|\\\.)[A-Za-z0-9-]+)*"
_ONE_HOST = re.compile(rf"\^{_HOST}\$")
_OF_ONE_HOST = re.compile(rf"\^https?\??://{_HOST}(?::[0-9]+)?(?:\$|/(?![?*{{])[^|]*)")
"""Matches a pattern for one host. A `|` could add another host, and without the slash the host could be longer."""


def is_host(pattern: str) -> bool:
    """Whether a pattern is one complete host, such as `^shop[.]example$`."""
    return _ONE_HOST.fullmatch(pattern) is not None


def names_host(pattern: str) -> bool:
    """Whether a pattern begins with a scheme and one complete host, such as `^https://shop[.]example/`."""
    return _OF_ONE_HOST.fullmatch(pattern) is not None
