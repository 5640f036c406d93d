"""Whether a call is what the user means, asked of a model after something was looked up.

What a model says that is right counts only with words which really stand in what it was shown.
"""

import json
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from bylaw.answering.running import PROMPTS
from bylaw.engine.request import Doubt
from bylaw.llm import Request
from bylaw.llm.chat import schema_of
from bylaw.llm.prompt import render
from bylaw.text.folding import fold

Meaning = Mapping[str, bool]
"""By argument, whether it is what the user means; those of which nobody can tell are left out."""


class SaidOfArgument(Struct, frozen=True):
    """What a model says of one argument."""

    name: str
    meant: Literal["yes", "no", "unclear"]
    quotes: tuple[str, ...] = ()


class SaidOfCall(Struct, frozen=True):
    """A model's answer."""

    arguments: tuple[SaidOfArgument, ...] = ()


SCHEMA = schema_of(SaidOfCall)


def second_question(doubt: Doubt) -> Request:
    """What a model is asked of a call."""
    shown = "\n\n".join(
        f"[{number}] {each.tool}({_given(each.arguments)}) showed:\n{each.text}"
        for number, each in enumerate(doubt.shown, start=1)
    )
    call = "\n".join(f"- {name}: {_written(value)}" for name, value in doubt.arguments.items())
    given = {
        "request": doubt.request,
        "shown": shown,
        "call": f"{doubt.tool}\n{call}",
        "asked": ", ".join(f"`{name}`" for name in doubt.asked),
    }
    return render(PROMPTS, "meaning", given, schema=SCHEMA, max_tokens=2000)


def meaning_of(reply: SaidOfCall, doubt: Doubt) -> Meaning:
    """What a model said, as far as it rests on what it was shown."""
    shown = fold(" \n ".join((doubt.request, *(each.text for each in doubt.shown))))
    found: dict[str, bool] = {}
    for each in reply.arguments:
        quotes = [fold(quote) for quote in each.quotes if quote.strip()]
        is_founded = bool(quotes) and all(quote in shown for quote in quotes)
        if each.name in doubt.asked and each.meant != "unclear" and (is_founded or each.meant == "no"):
            found[each.name] = each.meant == "yes" and found.get(each.name, True)
    return found


def _given(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_written(value)}" for name, value in arguments.items())


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
