"""Something that matters in a call and was not surely told."""

from typing import Literal

from msgspec import Struct

Grade = Literal["missing", "unclear"]
"""Not told, or told otherwise; or perhaps told."""
Why = Literal[
    "never_told",
    "another_told",
    "another_beside",
    "others_since",
    "one_of_several",
    "one_mark",
    "original_untold",
    "user_alone",
    "user_changed",
    "set_aside",
    "left_out",
    "sum_untold",
    "price_untold",
    "price_before",
    "price_vague",
    "price_later",
    "not_named",
    "not_put",
]
"""How it was not told; `engine.wording` has the words."""


class Lack(Struct, frozen=True):
    """Something that matters in a call and was not surely told."""

    detail: str
    """The name of the argument or field; of the tool, where it was not named what would be done."""
    grade: Grade
    why: Why
