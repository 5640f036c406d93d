"""A shop and a clinic's caller, for tests of what a shield decides."""
# pyright: basic, reportAttributeAccessIssue=false

from functools import cache
from typing import Any

from bylaw import Pack
from bylaw.shield import LiveSession
from tests.engine.test_conversation import FILES
from tests.packs import made

CANCEL = {"patient_id": "P121", "appointment_id": "A0362", "late_fee": "0.00", "reason": "illness"}
PATIENT = {"patient_id": "P121", "status": "active", "membership_id": "M878", "late_waivers_used": 0}
APPOINTMENT = {
    "appointment_id": "A0362", "patient_id": "P121", "status": "booked", "specialist": False,
    "starts_at": "2025-03-12T16:00:00",
}  # fmt: skip


@cache
def shop(**files: str) -> Pack:
    return made(
        {
            **FILES,
            **{
                name.replace("__", "/").replace("_yaml", ".yaml").replace("_py", ".py"): text
                for name, text in files.items()
            },
        }
    )


def looked_up(session: LiveSession, tool: str, arguments: dict[str, Any], result: Any) -> None:
    assert session.decide(tool, arguments).allowed
    session.result(result)


def asked(session: LiveSession) -> LiveSession:
    """The caller has agreed, and patient and appointment were looked up; the membership was not."""
    session.user("I'm ill and can't make A0362. I'm P121. I'm Gold, so there's no fee, right?")
    looked_up(session, "get_patient", {"patient_id": "P121"}, PATIENT)
    looked_up(session, "get_appointment", {"appointment_id": "A0362"}, APPOINTMENT)
    session.agent("I'm about to cancel appointment A0362 of patient P121 with a fee of $0.00. Shall I go ahead?")
    session.user("Yes, please.")
    return session
