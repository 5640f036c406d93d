"""What the events of one conversation say, as text, each worked out once."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from bylaw.facts.leaf import leaves, with_keys
from bylaw.facts.result_places import ResultPlaces
from bylaw.policy.tool import Tool
from bylaw.text.bare import without_joined
from bylaw.text.folding import fold, fold_said
from bylaw.trace.event import Call, Event, Message, Result

_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)((?:\\u[0-9a-f]{4})+)", re.IGNORECASE)


class EventTexts:
    """The texts of messages, results and what calls were given. `events` may grow while it is in use."""

    def __init__(self, events: Sequence[Event], tools: Mapping[str, Tool]) -> None:
        self._events, self._tools = events, tools
        self._texts: dict[int, str] = {}
        self._folded: dict[int, str] = {}
        self._bare: dict[int, str] = {}
        self._places: dict[int, ResultPlaces] = {}
        self._data: dict[int, ResultPlaces] = {}

    def text(self, step: int) -> str:
        """What the result at `step` holds, as text."""
        text = self._texts.get(step)
        if text is None:
            text = self._texts[step] = _with_signs(self._result(step).text)
        return text

    def places(self, step: int) -> ResultPlaces:
        """Where values stand in the result at `step`."""
        found = self._places.get(step)
        if found is None:
            found = self._places[step] = ResultPlaces(self.text(step))
        return found

    def data(self, step: int) -> ResultPlaces:
        """The same of the result's data, out of the message part that holds it."""
        found = self._data.get(step)
        if found is None:
            found = self._data[step] = ResultPlaces(self._result(step).value())
        return found

    def results(self, *, before: int) -> Iterator[tuple[int, Call, str]]:
        """The results before a step, each with its call and its text."""
        for step in range(min(before, len(self._events))):
            if isinstance(event := self._events[step], Result) and event.captured and (call := self.called(step)[0]):
                yield step, call, self.text(step)

    def called(self, step: int) -> tuple[Call | None, int]:
        """The call that the result at `step` answers, and its step."""
        result = self._result(step)
        call = None if result.call is None else self._events[result.call]
        return (call, result.call or 0) if isinstance(call, Call) else (None, -1)

    def tool(self, step: int) -> str:
        """The tool whose result stands at `step`."""
        call = self.called(step)[0]
        return self._result(step).tool or ("" if call is None else call.tool)

    def message(self, step: int) -> str:
        """The message at `step`."""
        event = self._events[step]
        assert isinstance(event, Message)
        return event.text

    def said(self, step: int) -> str:
        """The same, folded, names with their underscores."""
        words = self._folded.get(step)
        if words is None:
            words = self._folded[step] = fold_said(self.message(step))
        return words

    def said_bare(self, step: int) -> str:
        """The same in words of their own: no part of an address, a link, a path or an id."""
        words = self._bare.get(step)
        if words is None:
            words = self._bare[step] = fold_said(without_joined(self.message(step)))
        return words

    def is_users(self, step: int) -> bool:
        """Whether the user says something at `step`."""
        event = self._events[step]
        return isinstance(event, Message) and event.by == "user"

    def given(self, step: int) -> str:
        """What the call at `step` was given, folded."""
        words = self._folded.get(step)
        if words is None:
            words = self._folded[step] = fold(" \n ".join(self.leaves(step)))
        return words

    def leaves(self, step: int) -> list[str]:
        """The values inside of what the call at `step` was given."""
        call = self._events[step]
        assert isinstance(call, Call)
        tool = self._tools.get(call.tool)
        names = (*call.arguments, *(tool.names if tool is not None else ()))
        return [str(leaf) for leaf in leaves(with_keys(call.arguments, names))]

    def writes(self, step: int) -> bool:
        """Whether the call at `step` may change something."""
        call = self._events[step]
        tool = self._tools.get(call.tool) if isinstance(call, Call) else None
        return tool is None or tool.effect == "write"

    def _result(self, step: int) -> Result:
        event = self._events[step]
        assert isinstance(event, Result)
        return event


def _with_signs(text: str) -> str:
    """JSON with the letters and signs beyond ASCII that its writer escaped: nobody finds the 96 in `\\u00a396.00`."""
    return _ESCAPED.sub(_unescaped, text) if "\\u" in text else text


def _unescaped(found: re.Match[str]) -> str:
    signs: str = json.loads(f'"{found[2]}"')
    is_plain = all(sign >= "\u00a0" and not "\ud800" <= sign <= "\udfff" for sign in signs)
    return found[1] + signs if is_plain else found[0]
