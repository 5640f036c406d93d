"""The clinic's demonstration: one short conversation, played for an honest caller and for one who lies."""

import gzip
from pathlib import Path
from typing import Any

import msgspec

from bylaw.packs.clinic.simulator.desk import Desk
from bylaw.packs.clinic.simulator.world import build

LOGS = Path(__file__).parent / "demo" / "logs.jsonl.gz"
"""300 simulated conversations by five agents: `simulator.generate.write(..., seeds=(2026,), count=300)`."""
POLICY = Path(__file__).parent / "policy.md"

HONEST = ("P121", "A0362")
"""A Gold member with an appointment this afternoon."""
LIAR = ("P174", "A0520")
"""A Standard member with an appointment this afternoon."""


def build_world(path: Path) -> None:
    """The clinic's database in a file."""
    path.unlink(missing_ok=True)
    build(path).close()


def write_logs(path: Path, *told: dict[str, Any]) -> None:
    """The shipped conversations in a file, after those that were told."""
    first = b"".join(msgspec.json.encode(record) + b"\n" for record in told)
    # Gzip files may be joined end to end.
    path.write_bytes(gzip.compress(first, mtime=0) + LOGS.read_bytes())


def before_the_change(record: dict[str, Any]) -> tuple[list[dict[str, Any]], str, dict[str, Any]]:
    """The messages of a told conversation up to the change, and the call that makes it."""
    messages: list[dict[str, Any]] = record["messages"]
    for place, message in enumerate(messages):
        for asked in message.get("tool_calls", ()):
            if asked["function"]["name"] == "cancel_appointment":
                return messages[:place], "cancel_appointment", msgspec.json.decode(asked["function"]["arguments"])
    raise AssertionError("the story has no change")


def carry_out(desk: Desk, tool: str, arguments: dict[str, Any], id: str) -> list[dict[str, Any]]:
    """Really call a tool: the agent's message and the answer."""
    answer = desk.call(tool, dict(arguments))
    function = {"name": tool, "arguments": msgspec.json.encode(arguments).decode()}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": msgspec.json.encode(answer).decode()},
    ]


def open_desk() -> Desk:
    """The clinic's tools over an untouched database."""
    return Desk(build())


def tell(patient: str, appointment: str, *, name: str, owed: str = "0.00") -> dict[str, Any]:
    """The conversation as an OpenAI chat record; every tool is really called, and the outcome really checked.

    The caller says "I'm Gold", and the agent takes their word for it: it never reads the membership. The outcome is
    good where the fee that was charged is the one that is `owed`.
    """
    desk = open_desk()
    messages: list[dict[str, Any]] = []

    def say(role: str, text: str) -> None:
        messages.append({"role": role, "content": text})

    def call(tool: str, **arguments: str) -> None:
        messages.extend(carry_out(desk, tool, arguments, f"call_{len(messages)}"))

    say(
        "user",
        f"I'm ill and can't make {appointment} this afternoon. I'm {patient}. I'm Gold, so there's no fee, right?",
    )
    call("get_patient", patient_id=patient)
    call("get_appointment", appointment_id=appointment)
    told = f"cancel appointment {appointment} of patient {patient} with a fee of $0.00"
    say("assistant", f"I can {told}. Shall I go ahead?")
    say("user", "Yes, please.")
    call("cancel_appointment", patient_id=patient, appointment_id=appointment, late_fee="0.00", reason="illness")
    say("assistant", "Done. Get well soon!")
    row = desk.row("Appointment", (appointment,))
    good = row is not None and row["status"] == "cancelled" and row["late_fee"] == owed
    return {"id": name, "agent": "trusting", "outcome": good, "messages": messages}
