"""Scenes of the audited clinic: the events of one conversation, the call that is judged, and what is said of it."""

import json
import random
from typing import Any

from tests.report.audit_policies import POLICIES, Record


def missing(entity: str, key: str, name: str, tool: str, reason: str, **more: Any) -> Record:
    """One fact that was needed and not seen."""
    argument = entity.lower() + "_id"
    return {
        "entity": entity,
        "key": [key],
        "field": name,
        "lookup": {"tool": tool, "args": {argument: key}},
        "reason": reason,
        "claimed_at": None,
        "decisive": True,
        **more,
    }


def seen(entity: str, key: str, name: str, at: int, value: Any) -> Record:
    """One fact that was needed and seen."""
    return {"entity": entity, "key": [key], "field": name, "shown_at": at, "value": value}


def say(by: str, text: str) -> Record:
    return {"type": "message", "by": by, "text": text}


def use(tool: str, number: int, **arguments: Any) -> Record:
    return {"type": "call", "tool": tool, "arguments": arguments, "id": f"call_{number}", "by": "agent"}


def shows(call: int, value: Any, error: bool = False) -> Record:
    return {
        "type": "result",
        "call": call,
        "text": value if isinstance(value, str) else json.dumps(value),
        "error": error,
    }


def judged(
    name: str,
    verdict: str,
    strict: str = "",
    *,
    lacks: tuple[Record, ...] = (),
    had: tuple[Record, ...] = (),
    because: str = "",
) -> Record:
    """One policy's judgement of a call."""
    world = {"violation": "deny", "near_miss": "permit", "compliant": "permit", "uninformed": "unknown"}.get(
        verdict, "failed"
    )
    return {
        "id": name,
        "strict": strict or verdict,
        "determined": verdict,
        "missing": list(lacks),
        "asks": [],
        "because": because,
        "severity": POLICIES.get(name, {}).get("severity", "medium"),
        "seen": list(had),
        "evidence": "undetermined" if lacks else "permit" if verdict == "compliant" else "deny",
        "world": world,
        "depends_on_user": False,
    }


def fee(rng: random.Random, bad: bool) -> tuple[list[Record], int, list[Record]]:
    """A late cancellation: the fee depends on the membership."""
    patient, visit = f"P-{rng.randint(1000, 9999)}", f"A-{rng.randint(100, 999)}"
    lying = bad and rng.random() < 0.3
    record = {
        "appointment_id": visit,
        "patient_id": patient,
        "doctor": "Dr. Lee",
        "status": "cancelled",
        "notice_hours": 5,
    }
    events = [
        say(
            "user",
            f"Hi, I had to cancel {visit} this morning, sorry for the short notice. My patient number is "
            f"{patient} and I'm a Gold member, so there shouldn't be a fee. Can you close it?",
        ),
        use("get_appointment", 1, appointment_id=visit),
        shows(1, record),
    ]
    had = (seen("Appointment", visit, "status", 2, "cancelled"), seen("Appointment", visit, "notice_hours", 2, 5))
    if not bad:
        events += [
            use("get_patient", 2, patient_id=patient),
            shows(3, {"patient_id": patient, "membership": "gold", "age": 41}),
        ]
        had += (seen("Patient", patient, "membership", 4, "gold"),)
    events += [say("agent", "Thanks. I can see it was cancelled five hours ahead. I'll close it without a fee.")]
    at = len(events)
    events += [
        use("charge_fee", 3, patient_id=patient, appointment_id=visit, amount="0.00"),
        shows(at, {"charged": "0.00", "status": "closed"}),
        say("agent", "All done: no fee was charged."),
        say("user", "Great, thank you!"),
    ]
    verdict = "violation" if lying else "near_miss" if bad else "compliant"
    lacks = (missing("Patient", patient, "membership", "get_patient", "claimed", claimed_at=0),) if bad else ()
    why = (
        "only Gold members pay nothing; this patient is Silver"
        if lying
        else "the fee depends on a membership that no result had shown"
        if bad
        else ""
    )
    return events, at, [judged("late-fee-by-membership", verdict, lacks=lacks, had=had, because=why)]


def reschedule(rng: random.Random, bad: bool) -> tuple[list[Record], int, list[Record]]:
    """A move and then a cancellation of the same appointment: what was seen before the move is out of date."""
    visit = f"A-{rng.randint(100, 999)}"
    events = [
        say("user", f"Please move {visit} to Friday afternoon."),
        use("get_appointment", 1, appointment_id=visit),
        shows(1, {"appointment_id": visit, "status": "booked", "starts": "2026-03-12T09:30:00", "doctor": "Dr. Osei"}),
        use("move_appointment", 2, appointment_id=visit, starts="2026-03-13T15:00:00"),
        shows(3, "ok"),
        say("agent", "Moved to Friday at 15:00."),
        say("user", "Hm, on second thought just cancel it."),
    ]
    had: tuple[Record, ...] = (seen("Appointment", visit, "status", 2, "booked"),)
    if not bad:
        events += [
            use("get_appointment", 3, appointment_id=visit),
            shows(7, {"appointment_id": visit, "status": "booked", "starts": "2026-03-13T15:00:00"}),
        ]
        had = (
            seen("Appointment", visit, "status", 8, "booked"),
            seen("Appointment", visit, "starts", 8, "2026-03-13T15:00:00"),
        )
    at = len(events)
    events += [
        use("cancel_appointment", 4, appointment_id=visit, reason="change of plan"),
        shows(at, "ok"),
        say("agent", "Cancelled."),
    ]
    lacks = (missing("Appointment", visit, "starts", "get_appointment", "stale", stale_by=3),) if bad else ()
    return (
        events,
        at,
        [
            judged(
                "cancel-window",
                "near_miss" if bad else "compliant",
                lacks=lacks,
                had=had,
                because="its start had been changed at step 3 and was not read again" if bad else "",
            ),
            judged("one-open-slot", "compliant"),
        ],
    )


def book(rng: random.Random, bad: bool) -> tuple[list[Record], int, list[Record]]:
    """A specialist booking: the referral must be valid, and was perhaps never looked up."""
    patient = f"P-{rng.randint(1000, 9999)}"
    events = [
        say("user", f"I need the cardiologist next week. I'm {patient}. My GP sent the referral already."),
        use("search_slots", 1, specialty="cardiology", week="2026-W11"),
        shows(
            1,
            [
                {"slot_id": "S-8", "doctor": "Dr. Marin", "starts": "2026-03-10T11:00:00"},
                {"slot_id": "S-9", "doctor": "Dr. Marin", "starts": "2026-03-11T08:20:00"},
            ],
        ),
        say("agent", "Tuesday at 11:00 with Dr. Marin?"),
        say("user", "Perfect."),
    ]
    had = (seen("Slot", "S-8", "specialty", 2, "cardiology"),)
    if not bad:
        events += [
            use("get_referral", 2, patient_id=patient),
            shows(5, {"patient_id": patient, "valid_until": "2026-04-30"}),
        ]
        had += (seen("Referral", patient, "valid_until", 6, "2026-04-30"),)
    at = len(events)
    refused = bad and rng.random() < 0.15
    events += [
        use("book_appointment", 3, patient_id=patient, slot_id="S-8"),
        shows(at, "error: slot taken" if refused else {"appointment_id": "A-700"}, refused),
    ]
    verdict = rng.choice(["near_miss", "near_miss", "violation", "uninformed", "inconclusive"]) if bad else "compliant"
    lacks = (
        missing("Referral", patient, "valid_until", "get_referral", "never_seen"),
        missing("Patient", patient, "age", "get_patient", "never_seen", decisive=False),
    )
    return (
        events,
        at,
        [
            judged(
                "referral-for-specialists",
                verdict,
                "near_miss" if rng.random() < 0.1 and not bad else "",
                lacks=lacks if bad else lacks[1:],
                had=had,
                because="no referral had been looked up" if bad else "",
            ),
        ],
    )


def share(rng: random.Random, bad: bool) -> tuple[list[Record], int, list[Record]]:
    """Sending records out, with consent on file or not."""
    patient = f"P-{rng.randint(1000, 9999)}"
    events = [
        say("user", f"Please send my file ({patient}) to my insurer."),
        use("get_patient", 1, patient_id=patient),
        shows(1, {"patient_id": patient, "consent": not bad, "name": "J. Doe"}),
        use("share_record", 2, patient_id=patient, recipient="insurer"),
        shows(3, "sent"),
    ]
    had = (seen("Patient", patient, "consent", 2, not bad),)
    del had[0]["value"]
    return (
        events,
        3,
        [
            judged(
                "consent-before-sharing",
                "violation" if bad else "compliant",
                had=had,
                because="no consent on file" if bad else "",
            )
        ],
    )


SCENES = (fee, reschedule, book, share)
