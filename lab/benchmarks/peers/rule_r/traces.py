"""The traces of rule R: 30 chat messages with 10 tool calls, in four alternating cases. The cancellation comes last."""

import json
from pathlib import Path

NOW = "2024-05-15T15:00:00"
CASES = (
    ("business", {"cabin": "business", "created_at": "2024-05-01T10:00:00"}, True, True),
    ("economy", {"cabin": "economy", "created_at": "2024-05-01T10:00:00"}, True, False),
    ("business, not looked up", {"cabin": "business", "created_at": "2024-05-01T10:00:00"}, False, False),
    ("economy, booked 12 h ago", {"cabin": "economy", "created_at": "2024-05-15T03:00:00"}, True, True),
)
"""Each case: the name, the reservation, whether it was looked up, and whether the cancellation is allowed."""


def write(path: Path, count: int) -> list[bool]:
    """Write `count` traces in OpenAI's chat format, one per line. Return the expected decisions."""
    wanted: list[bool] = []
    with path.open("w") as out:
        for number in range(count):
            _, fields, looked_up, allowed = CASES[number % len(CASES)]
            trace = {"id": f"trace-{number}", "messages": messages(f"R{number:05}", fields, looked_up)}
            out.write(json.dumps(trace) + "\n")
            wanted.append(allowed)
    return wanted


def messages(reservation: str, fields: dict[str, str], looked_up: bool) -> list[dict[str, object]]:
    """Return one conversation: eleven text messages, ten calls, nine results."""
    record = {"reservation_id": reservation, "insurance": "no", "status": "booked", **fields}
    record["flights"] = [{"flight_number": f"HAT{leg:03}", "date": "2024-05-20", "price": 120} for leg in range(2)]
    found = {"flights": [{"flight_number": f"HAT{n:03}", "price": 100 + n} for n in range(6)]}
    said: list[dict[str, object]] = [{"role": "user", "content": f"Hello, please cancel my reservation {reservation}."}]
    for number in range(9):
        is_lookup = looked_up and number == 4
        tool = "get_reservation_details" if is_lookup else "search_flights"
        arguments = {"reservation_id": reservation} if is_lookup else {"origin": "JFK", "destination": f"X{number}"}
        said += called(number, tool, arguments, record if is_lookup else found)
        if number % 2 == 0:
            said.append({"role": "assistant", "content": "Let me look at one more thing for you before we go on."})
        elif number < 8:
            said.append({"role": "user", "content": "Sure, take your time, I can wait for a moment."})
    said.append({"role": "user", "content": "Yes, please go ahead and cancel it."})
    return [*said, called(9, "cancel_reservation", {"reservation_id": reservation}, {})[0]]


def called(number: int, tool: str, arguments: dict[str, str], result: object) -> list[dict[str, object]]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "name": tool, "content": json.dumps(result)},
    ]
