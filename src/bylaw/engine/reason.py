"""Why a policy says what it says of a call, as data. `wording` makes the words."""

from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.entity import Fact
from bylaw.facts.value import key_of

ReasonKind = Literal[
    "none", "denied", "against_evidence", "missing", "unread", "user", "failed", "unjudged", "approved"
]
"""Nothing to tell; the guard denies; it denied what was seen, and the world permits; facts were not looked up; they
were, in answers that we cannot read; it depends on the user; the guard failed; the call could not be judged; a person
was asked, and said yes."""


class Reason(Struct, frozen=True):
    """What a policy's verdict rests on; missing facts and questions stand beside it in the verdict."""

    kind: ReasonKind = "none"
    words: str = ""
    """The guard's own words, or what went wrong."""
    not_captured: tuple[Fact, ...] = ()
    """Facts that were looked up, and whose results were not recorded."""
    not_readable: tuple[Fact, ...] = ()
    """Facts that were looked up, and whose results could not be read."""
    not_shown: tuple[tuple[Fact, str], ...] = ()
    """Facts that were looked up, in results that do not have them, each with the tool that was asked."""
    not_told: tuple[Fact, ...] = ()
    """Facts that were looked up, and answered with `null`."""
    contradicted: tuple[Fact, ...] = ()
    """Facts that were looked up, and of which the results tell two things."""
    spelt_otherwise: tuple[Fact, ...] = ()
    """Facts of things that were looked up by another spelling, which may be another thing."""

    def record(self) -> dict[str, Any]:
        """As `calls.jsonl` holds it."""
        told: dict[str, Any] = {"kind": self.kind, "words": self.words}
        if self.kind != "unread":
            return told
        lost = {
            "not_captured": self.not_captured,
            "not_readable": self.not_readable,
            "not_told": self.not_told,
            "contradicted": self.contradicted,
            "spelt_otherwise": self.spelt_otherwise,
        }
        for name, facts in lost.items():
            if facts:
                told[name] = [fact_record(fact) for fact in facts]
        if self.not_shown:
            told["not_shown"] = [fact_record(fact) | {"tool": tool} for fact, tool in self.not_shown]
        return told


def fact_record(fact: Fact) -> dict[str, Any]:
    """A fact as `calls.jsonl` holds it."""
    key = None if fact.key is None else list(key_of(fact.key))
    return {"entity": fact.entity, "key": key, "field": fact.field}
