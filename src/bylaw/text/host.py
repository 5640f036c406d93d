"""Determines whether a pattern for hosts or addresses matches only one host."""

import re

_HOST = r"[A-Za-z0-9-]+(?:(?:\[\.\]|\\\.)[A-Za-z0-9-]+)*"
_ONE_HOST = re.compile(rf"\^{_HOST}\$")
_OF_ONE_HOST = re.compile(rf"\^https?\??://{_HOST}(?::[0-9]+)?(?:\$|/(?![?*{{])[^|]*)")
"""A pattern with `|` could match another host. The slash after the host is required."""


def is_host(pattern: str) -> bool:
    """Whether a pattern is a whole host, such as `^shop[.]example$`."""
    return _ONE_HOST.fullmatch(pattern) is not None


def names_host(pattern: str) -> bool:
    """Whether a pattern begins with a scheme and a whole host, such as `^https://shop[.]example/`."""
    return _OF_ONE_HOST.fullmatch(pattern) is not None
