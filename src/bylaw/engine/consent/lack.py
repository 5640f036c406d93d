"""Something that matters in a call and was not surely told."""

from typing import Literal

from msgspec import Struct

Grade = Literal["missing", "unclear"]
"""Not told, or told otherwise; or perhaps told."""


class Lack(Struct, frozen=True):
    """Something that matters in a call and was not surely told."""

    detail: str
    """The name of the argument or field."""
    grade: Grade
    why: str
