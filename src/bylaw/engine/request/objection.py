"""Why a call does not keep to what the request allows, in words for people."""

from typing import Literal

from msgspec import Struct

from bylaw.facts.provenance import Traced


class Objection(Struct, frozen=True):
    """Why a call does not keep to what the request allows."""

    why: Literal[
        "not_asked",
        "depends",
        "done",
        "unread",
        "delegated",
        "not_said",
        "not_found",
        "not_chosen",
        "left_out",
        "link",
        "passage",
        "of_another",
        "too_much",
        "as_shown",
        "unsaid",
        "taken",
        "not_meant",
    ]
    argument: str = ""
    value: str = ""
    traced: Traced | None = None

    def __str__(self) -> str:
        told = f"`{self.value[:80]}` (`{self.argument}`)"
        match self.why:
            case "not_asked":
                return "the request does not ask for this"
            case "depends":
                return "the request has a condition, and nothing was looked up for it"
            case "done":
                return "what the request asks for was done before, or may have been"
            case "unread":
                return f"what the request asks for could not be read: {self.value}"
            case "delegated":
                return "the request leaves it to a text what is to be done"
            case "not_said":
                return f"{told} is not what the user said{self._from()}"
            case "not_found":
                return f"{told} is neither the user's word nor from a place that the user named{self._from()}"
            case "not_chosen":
                return f"{told} is not the one that the user asked for"
            case "left_out":
                return f"{told} may be what the user left out"
            case "of_another":
                return f"the text says of one thing what stands beside another: `{self.value[:80]}`{self._from()}"
            case "link":
                return f"the text holds what nobody approved: `{self.value[:80]}`{self._from()}"
            case "passage":
                return f"the text passes on what the request does not take it from: `{self.value[:80]}`{self._from()}"
            case "as_shown":
                return f"{told} has to be worked out, and is what a result shows"
            case "unsaid":
                return f"the text does not say `{self.value[:80]}`"
            case "taken":
                return f"something else is on at that time: {told}"
            case "not_meant":
                return f"{told} may not be what the user means, as a model reads it"
            case "too_much":
                return f"{told} is more than the user said or any result shows"

    def _from(self) -> str:
        traced = self.traced
        if traced is None or traced.source in ("user", "host"):
            return ""
        if traced.source == "agent":
            return "; nothing shows where it came from"
        place = f" (`{traced.field}`)" if traced.field else ""
        return f"; it came from a result of `{traced.tool}`{place}"
