"""Whether a pattern for hosts or addresses fits one host only."""

import re

_HOST = r"[A-Za-z0-9-]+(?:(?:\[\.\]|\\\.)[A-Za-z0-9-]+)*"
_ONE_HOST = re.compile(rf"\^{_HOST}\$")
_OF_ONE_HOST = re.compile(rf"\^https?\??://{_HOST}(?::[0-9]+)?(?:\$|/(?![?*{{])[^|]*)")
"""No `|`: one side of it could fit another host. The slash behind the host cannot be left out."""


def is_host(pattern: str) -> bool:
    """Whether a pattern is a whole host, as `^shop[.]example$` is."""
    return _ONE_HOST.fullmatch(pattern) is not None


def names_host(pattern: str) -> bool:
    """Whether a pattern begins with a scheme and a whole host, as `^https://shop[.]example/` does."""
    return _OF_ONE_HOST.fullmatch(pattern) is not None
