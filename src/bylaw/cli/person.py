"""Who gives a command, for the record."""

import getpass

from bylaw.errors import UsageError

_NOBODY = ("root", "nobody", "bylaw")
"""Accounts that are no person's: what they answer, anybody may have answered."""


def person() -> str:
    """The name of the account, where it is somebody's."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = ""
    if not name or name in _NOBODY:
        told = f"`{name}` is nobody's name" if name else "this account has no name"
        raise UsageError(f"{told}, and the record says who did it", hint="give yours: --by NAME")
    return name
