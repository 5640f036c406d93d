"""Conversations of a lending library whose structure is known, so that what a scan must find is known too."""

import json
from typing import Any

from bylaw.trace import Call, Event, Message, Result, Trajectory


class Talk:
    """Writes one conversation."""

    def __init__(self, id: str, *, agent: str = "clerk", instructions: str = "", tools: tuple[Any, ...] = ()) -> None:
        self._id, self._agent, self._instructions, self._tools = id, agent, instructions, tools
        self._events: list[Event] = []
        self._turn = 0

    def user(self, text: str) -> "Talk":
        self._turn += 1
        self._events.append(Message("user", text, self._turn))
        return self

    def call(self, tool: str, result: Any = "", *, error: bool | None = None, **arguments: Any) -> "Talk":
        """A call in a turn of its own, and its result."""
        return self.calls((tool, arguments, result), error=error)

    def calls(self, *made: tuple[str, dict[str, Any], Any], error: bool | None = None) -> "Talk":
        """Calls side by side in one turn."""
        self._turn += 1
        first = len(self._events)
        self._events += [Call(tool, arguments, turn=self._turn) for tool, arguments, _ in made]
        for position, (tool, _, result) in enumerate(made):
            content = result if isinstance(result, str) else json.dumps(result)
            self._events.append(Result(first + position, content, error, tool=tool))
        return self

    def done(self) -> Trajectory:
        return Trajectory(self._id, self._events, self._agent, instructions=self._instructions, tools=self._tools)


def member(number: int) -> dict[str, Any]:
    return {
        "member_id": f"M{number:04}",
        "name": f"Reader {number}",
        "cards": {f"card_{number:04}": {"kind": "debit", "limit": 50}},
        "loans": [f"L{number:04}", f"L{number + 1:04}"],
    }


def loan(number: int) -> dict[str, Any]:
    return {"loan_id": f"L{number:04}", "member_id": f"M{number:04}", "title": "Emma", "due": "2024-06-01"}


def visit(number: int, *, skip: str = "") -> Trajectory:
    """A reader renews a loan and pays a fine; `skip` leaves out one look-up."""
    talk = Talk(f"visit-{number:03}").user(f"I am M{number:04}, renew my book and take the fine off my card")
    if skip != "get_member":
        talk.call("get_member", member(number), member_id=f"M{number:04}")
    if skip != "get_loan":
        talk.call("get_loan", loan(number), loan_id=f"L{number:04}")
    talk.call("get_opening_hours", "9 to 5")
    talk.call("renew_loan", "Loan renewed successfully.", loan_id=f"L{number:04}")
    talk.call("pay_fine", "Fine has been paid.", member_id=f"M{number:04}", card_id=f"card_{number:04}", cents=250)
    return talk.done()


def visits(count: int) -> list[Trajectory]:
    return [visit(number) for number in range(count)]


def order_log(number: int) -> Trajectory:
    """An order is read, its difference still empty, and returned."""
    name = f"O{number}"
    asked, done = {"order_id": name}, {"order_id": name, "status": "returned", "items": ["a"], "difference": 1.5}
    before = {"order_id": name, "status": "open", "items": None, "difference": None}
    events = (
        Call("get_order", asked, turn=1),
        Result(0, json.dumps(before)),
        Call("return_order", asked, turn=2),
        Result(2, json.dumps(done)),
    )
    return Trajectory(name, events)
