"""Why a call does not keep to what the request allows, in words for people."""

from typing import Literal

from msgspec import Struct

from bylaw.facts.provenance import Traced

Why = Literal[
    "not_asked",
    "done",
    "unread",
    "unheard",
    "delegated",
    "not_said",
    "not_found",
    "not_chosen",
    "left_out",
    "link",
    "too_much",
    "as_shown",
    "unsaid",
    "in_part",
    "taken",
    "not_meant",
    "not_looked_at",
]
_WORDS: dict[Why, str] = {
    "not_asked": "the request does not ask for this",
    "done": "what the request asks for was done before, or may have been",
    "unread": "what the request asks for could not be read: {value}",
    "unheard": "the user may have said more since the request, and it is not known what",
    "delegated": "the request leaves it to a text what is to be done",
    "not_said": "{value} (`{argument}`) is not what the user said{origin}",
    "not_found": "{value} (`{argument}`) is neither the user's word nor from a place that the user named{origin}",
    "not_chosen": "{value} (`{argument}`) is not the one that the user asked for",
    "left_out": "{value} (`{argument}`) may be what the user left out",
    "link": "the text holds what nobody approved: {value}{origin}",
    "as_shown": "{value} (`{argument}`) has to be worked out, and is what a result shows",
    "in_part": "{value} (`{argument}`) only contains what the user said",
    "unsaid": "the text does not say {value}",
    "taken": "something else is on at that time: {value} (`{argument}`)",
    "not_meant": "{value} (`{argument}`) may not be what the user means, as a model reads it",
    "not_looked_at": "no model has confirmed that this call is what the user means",
    "too_much": "{value} (`{argument}`) is more than the user said or any result shows",
}


class Objection(Struct, frozen=True):
    """Why a call does not keep to what the request allows."""

    why: Why
    argument: str = ""
    value: str = ""
    traced: Traced | None = None

    def __str__(self) -> str:
        value = self.value if self.why == "unread" else f"`{self.value[:80]}`"
        return _WORDS[self.why].format(value=value, argument=self.argument, origin=self._from())

    def _from(self) -> str:
        traced = self.traced
        if traced is None or traced.source in ("user", "host"):
            return ""
        if traced.source == "agent":
            return "; nothing shows where it came from"
        place = f" (`{traced.field}`)" if traced.field else ""
        return f"; it came from a result of `{traced.tool}`{place}"
