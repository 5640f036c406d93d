"""What a request was read to allow, in lines for people."""

from collections.abc import Iterable

from bylaw.engine.request.allowance import Allowance, Limit, Slot, Source, Span


def told(allowance: Allowance, request: str) -> list[str]:
    """A line for every deed, with the user's words that it rests on; `request` is what the user said."""
    lines: list[str] = []
    for deed in allowance.deeds:
        slots = "; ".join(f"{slot.name} {_fill(slot, request)}" for slot in deed.slots)
        asked = f" ({_quoted(deed.asked, request)})" if deed.asked else ""
        lines.append(f"{deed.tool}{asked}{': ' if slots else ''}{slots}")
    lines += [f"what a text says ({_quoted(each.asked, request)})" for each in allowance.delegations]
    by = "a model" if allowance.by == "model" else "the words of the catalogue"
    return [
        f"The request, as read by {by}, asks for:",
        *(f"  {line}" for line in lines or ["nothing that changes something"]),
    ]


def _fill(slot: Slot, request: str) -> str:
    match slot.fill:
        case "said":
            meant = f" ({slot.value})" if slot.value is not None else ""
            return (
                f"is {_quoted(slot.said, request)}{meant}{_which(slot, request)}"
                if slot.said
                else "is what the user said"
            )
        case "found":
            said = f" ({_quoted(slot.said, request)})" if slot.said else ""
            every = "every one that is found" if slot.every else "found"
            of = f" as its {slot.field}" if slot.field else ""
            return f"is {every}{said}{_places(slot, ' in ', request)}{of}{_which(slot, request)}"
        case "free":
            return f"is free{_places(slot, ', from ', request)}{_which(slot, request)}"
        case "open":
            return "is said or found"


def _places(slot: Slot, before: str, request: str) -> str:
    places = " or ".join(_place(each, request) for each in slot.sources)
    return f"{before}{places}" if places else ""


def _which(slot: Slot, request: str) -> str:
    bounds = [(limit.field, way, bound) for limit in slot.limits for way, bound in _bounds(limit)]
    chosen = [f", with the {slot.choice.order} {slot.choice.field}"] if slot.choice else []
    share = [f", {slot.factor or 1:g} times what is shown{f' {slot.plus:+g}' if slot.plus else ''}"]
    share = share if slot.factor or slot.plus else []
    when = [f", {slot.minutes} minutes"] if slot.minutes else []
    when += [", when nothing else is on"] if slot.clear else []
    must = [f", with {_quoted(slot.must, request)}"] if slot.must else []
    but = [f", but not {_quoted(slot.but, request)}"] if slot.but else []
    judged = [f", as only a reader can tell: {_quoted(slot.judged, request)}"] if slot.judged else []
    limits = [f", {field} at {way} {bound}" for field, way, bound in bounds]
    return "".join([*chosen, *limits, *share, *when, *must, *but, *judged])


def _bounds(limit: Limit) -> list[tuple[str, str]]:
    return [(way, bound) for way, bound in (("least", limit.least), ("most", limit.most)) if bound]


def _place(source: Source, request: str) -> str:
    named = f" of {_quoted(source.named, request)}" if source.named else ""
    words = [*([_quoted(source.perhaps, request)] if source.perhaps else ()), *source.guessed]
    perhaps = f" (perhaps {', '.join(words)})" if words else ""
    return f"{source.tool or 'any result'}{named}{perhaps}"


def _quoted(spans: Iterable[Span], request: str) -> str:
    words = (" ".join(request[span.start : span.end].split()) for span in spans)
    return ", ".join(f'"{each[:80]}"' for each in words)
