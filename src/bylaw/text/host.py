"""Whether a pattern for addresses fits those of one host only."""

import re

_ONE_HOST = re.compile(
    r"\^https?\??://[A-Za-z0-9-]+(?:(?:\[\.\]|\\\.)[A-Za-z0-9-]+)*(?::[0-9]+)?(?:\$|/(?![?*{])[^|]*)"
)
"""No `|`: one side of it could fit another host. The slash behind the host cannot be left out."""


def names_host(pattern: str) -> bool:
    """Whether a pattern begins with a scheme and a whole host, as `^https://shop[.]example/` does."""
    return _ONE_HOST.fullmatch(pattern) is not None
