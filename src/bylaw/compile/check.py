"""What became of one policy: its check, the cases it passes, and what a person has to look at."""

from typing import Any

from msgspec import Struct

from bylaw.compile.bench import Case


class Question(Struct, frozen=True):
    """Something that a reviewer should decide."""

    about: str
    """In a few words, as a heading."""
    text: str
    input: dict[str, Any] | None = None
    """The call and the facts that it is about."""


UNANSWERED = "a question about it has no answer yet"
"""Why a policy has no check where a compile was ended before its time."""


class Check(Struct, frozen=True):
    """The guard or the rule of one policy, or why there is none."""

    policy: str
    code: str = ""
    """A guard's function."""
    rules: dict[str, Any] | None = None
    """`predicates` and `rules` as `rules.yaml` has them."""
    cases: tuple[Case, ...] = ()
    as_written: bool = False
    """Whether its cases are those of a pack's files, to be left as they stand there: signatures hold for them."""
    questions: tuple[Question, ...] = ()
    failed: str = ""
    """Why nothing enforces it."""
    repairs: int = 0
    generated: int = 0
    """Generated inputs it was tried on."""
    divided: int = 0
    """How many of these two generations answered differently."""
    mutants: tuple[int, int] = (0, 0)
    """Mutants that its cases tell from it, and all."""
    shown: str = ""
    """Digest of all that questions about it showed: the same again, the check stands."""
