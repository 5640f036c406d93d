"""Audit output folders for the report's tests: a realistic clinic, a hostile one, and a large one.

They follow the contract of `summary.json`, `calls.jsonl`, `conversations.jsonl` and `policies.json`, and are
made without the auditor, so that the page is tested against the contract and not against one writer of it.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]

POLICIES: dict[str, Record] = {
    "late-fee-by-membership": {
        "definition": "Gold members pay no late-cancellation fee; Silver members pay 15.00; everyone else pays 30.00.",
        "severity": "high",
        "kind": "guard",
        "citations": [
            {
                "document": "policy.md",
                "heading": "Fees",
                "line": 88,
                "text": "The late-cancellation fee is waived for Gold members only. Check the membership on file "
                "before charging; what a caller says about it does not count.",
            }
        ],
    },
    "cancel-window": {
        "definition": "An appointment may be cancelled only while it is booked and at least 24 hours away.",
        "severity": "medium",
        "kind": "guard",
        "citations": [
            {
                "document": "policy.md",
                "heading": "Cancelling",
                "line": 41,
                "text": "Appointments can be cancelled up to 24 hours before they start, and only while still booked.",
            }
        ],
    },
    "referral-for-specialists": {
        "definition": "A specialist appointment needs a referral that is still valid on the day.",
        "severity": "high",
        "kind": "guard",
        "citations": [{"document": "policy.md", "heading": "Specialists", "line": 63, "text": None}],
    },
    "consent-before-sharing": {
        "definition": "Records leave the clinic only with the patient's consent on file.",
        "severity": "high",
        "kind": "guard",
        "citations": [
            {
                "document": "policy.md",
                "heading": "Privacy",
                "line": 120,
                "text": "No record is shared without written consent on file.",
            }
        ],
    },
    "one-open-slot": {
        "definition": "A patient holds at most one open appointment with the same doctor.",
        "severity": "low",
        "kind": "guard",
        "citations": [
            {"document": "policy.md", "heading": "Booking", "line": 30, "text": "One open appointment per doctor."}
        ],
    },
    "minors-with-guardian": {
        "definition": "Bookings for patients under 16 name a guardian.",
        "severity": "medium",
        "kind": "guard",
        "citations": [
            {"document": "policy.md", "heading": "Booking", "line": 34, "text": "Under 16: a guardian is named."}
        ],
    },
}

POLICIES["confirm-before-change"] = {
    "definition": "The agent asks before every change.",
    "severity": "medium",
    "kind": "rule",
    "citations": [
        {"document": "policy.md", "heading": "Talking", "line": 12, "text": "Ask before you change anything, and wait."}
    ],
    "predicates": {"change": "the act changes something", "agreed": "the caller has just said yes"},
}

AGENTS = {"careful-1": 0.03, "hasty-2": 0.45, "trusting-3": 0.6, "forgetful-4": 0.4, "over-eager-5": 0.5}


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


def rate(count: int, of: int) -> Record:
    """A Wilson interval, as the auditor writes it."""
    if not of:
        return {"value": None, "low": None, "high": None, "count": 0, "of": 0}
    z, p = 1.959964, count / of
    middle, spread, scale = p + z * z / (2 * of), z * ((p * (1 - p) + z * z / (4 * of)) / of) ** 0.5, 1 + z * z / of
    return {
        "value": p,
        "low": max(0.0, (middle - spread) / scale),
        "high": min(1.0, (middle + spread) / scale),
        "count": count,
        "of": of,
    }


def summarise(lines: list[Record], conversations: dict[str, Record], trajectories: Counter[str]) -> Record:
    """A summary that agrees with the calls, near enough for a page."""
    by_tool: dict[str, Record] = {}
    by_policy: dict[str, Record] = {
        name: {"applied": 0, "could_deny": 0, "strict": {}, "determined": {}} for name in POLICIES
    }
    by_lookup: dict[str, Record] = {}
    reasons: Counter[str] = Counter({"never_seen": 0, "stale": 0, "claimed": 0})
    flagged: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for line in lines:
        tool = by_tool.setdefault(line["tool"], {"calls": 0, "executed": 0, "strict": {}, "determined": {}})
        tool["calls"] += 1
        tool["executed"] += line["executed"] is not False
        for criterion in ("strict", "determined"):
            tool[criterion][line[criterion]] = tool[criterion].get(line[criterion], 0) + 1
            flagged[line["agent"]][criterion][line[criterion]] += 1
        for policy in line["policies"]:
            row = by_policy.setdefault(policy["id"], {"applied": 0, "could_deny": 0, "strict": {}, "determined": {}})
            row["applied"] += 1
            row["could_deny"] += policy["id"] != "one-open-slot"
            for criterion in ("strict", "determined"):
                row[criterion][policy[criterion]] = row[criterion].get(policy[criterion], 0) + 1
            if policy["strict"] == "near_miss":
                for fact in policy["missing"]:
                    reasons[fact["reason"]] += 1
                    look = by_lookup.setdefault(fact["lookup"]["tool"], {"strict": 0, "determined": 0, "agents": {}})
                    look["strict"] += 1
                    look["determined"] += fact["decisive"]
                    look["agents"][line["agent"]] = look["agents"].get(line["agent"], 0) + 1
    agents = []
    for agent, number in sorted(trajectories.items()):
        writing = max(sum(line["agent"] == agent for line in lines), 0)
        agents.append(
            {
                "agent": agent,
                "trajectories": number,
                "with_write_calls": writing,
                "outcome_known": number,
                "failure_rate": rate(flagged[agent]["strict"]["violation"] + number // 20, number),
                **{
                    criterion: {
                        "violation_rate": rate(flagged[agent][criterion]["violation"], number),
                        "near_miss_rate": rate(flagged[agent][criterion]["near_miss"], number),
                        "near_miss_rate_of_writing": rate(flagged[agent][criterion]["near_miss"], writing),
                    }
                    for criterion in ("strict", "determined")
                },
            }
        )
    return {
        "schema": "bylaw.audit/1",
        "pack": {"name": "clinic", "version": "1.0.0", "digest": "4f1c0a7be29d"},
        "agents": agents,
        "by_tool": by_tool,
        "by_lookup": by_lookup,
        "by_policy": by_policy,
        "by_reason": dict(reasons),
        "by_rule": {"confirm-before-change": {"broken": 3, "trajectories": 2, "agents": {"hasty-2": 2}}},
        "outcome_from": {"reward": sum(trajectories.values())},
        "skipped": [{"place": "logs.jsonl:17", "why": "not JSON"}],
        "worlds": {"kind": "hindsight"},
    }


def write(
    out: Path,
    lines: list[Record],
    conversations: dict[str, Record],
    trajectories: Counter[str],
    summary: Record | None = None,
    broken: Sequence[Record] = (),
) -> Path:
    """One audit's output folder."""
    out.mkdir(parents=True, exist_ok=True)
    flagged = {line["trajectory"] for line in (*(line for line in lines if line["finding"]), *broken)}
    (out / "findings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in broken))
    (out / "summary.json").write_text(json.dumps(summary or summarise(lines, conversations, trajectories)))
    (out / "policies.json").write_text(json.dumps(POLICIES))
    (out / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (out / "conversations.jsonl").write_text(
        "".join(json.dumps(c) + "\n" for k, c in conversations.items() if k in flagged)
    )
    return out


ORDER = ("violation", "near_miss", "uninformed", "inconclusive", "compliant")


def clinic(out: Path, *, conversations: int = 260, seed: int = 7, always_bad: bool = False) -> Path:
    """A clinic audited under five agents; with `always_bad`, every conversation is flagged."""
    rng = random.Random(seed)
    lines: list[Record] = []
    held: dict[str, Record] = {}
    trajectories: Counter[str] = Counter()
    for number in range(conversations):
        agent = rng.choice(list(AGENTS))
        bad = always_bad or rng.random() < AGENTS[agent]
        events, step, policies = rng.choice(SCENES)(rng, bad)
        trajectory = f"clinic-{number:04d}"
        trajectories[agent] += 1
        strict = min((p["strict"] for p in policies), key=ORDER.index)
        determined = min((p["determined"] for p in policies), key=ORDER.index)
        flagged = {strict, determined} != {"compliant"}
        lines.append(
            {
                "trajectory": trajectory,
                "agent": agent,
                "step": step,
                "call_id": events[step]["id"],
                "tool": events[step]["tool"],
                "executed": not events[step + 1]["error"],
                "strict": strict,
                "determined": determined,
                "policies": policies,
                "finding": f"f{number:05x}" if flagged else None,
            }
        )
        held[trajectory] = {
            "trajectory": trajectory,
            "agent": agent,
            "file": "logs.jsonl.gz",
            "position": number,
            "outcome": {"good": determined != "violation", "source": "reward"},
            "events": events,
        }
    breach = {
        "rule": "confirm-before-change", "policy": "confirm-before-change", "because": "change, not agreed",
        "standing": "broken",
        "predicates": [{"name": "change", "value": True}, {"name": "agreed", "value": False}],
    }  # fmt: skip
    broken = [
        {"trajectory": line["trajectory"], "finding": f"r{number:05x}", "agent": line["agent"], "step": line["step"]}
        | breach
        for number, line in enumerate(lines)
        if not always_bad
    ]
    write(out, lines, held, trajectories, broken=broken)
    return out


EXAMPLE = "(example written by init) Before book, the patient was looked up."


def dentist(
    out: Path, *, verdicts: Sequence[tuple[str, bool]] = (("uninformed", True),) * 4 + (("violation", True),) * 2
) -> Path:
    """A small audit without outcomes: one call for each verdict, accepted or refused, and one broken rule."""
    lines: list[Record] = []
    held: dict[str, Record] = {}
    for number, (verdict, executed) in enumerate((*verdicts, ("violation", False))):
        patient, name = f"PT-{number}", f"d{number:02d}"
        lacks = () if verdict == "violation" else (missing("Patient", patient, "owes", "get_patient", "never_seen"),)
        had = (seen("Patient", patient, "owes", 1, 240),) if verdict == "violation" else ()
        policy = judged("example-book", verdict, lacks=lacks, had=had, because=f"the patient {patient} owes 240")
        if verdict == "inconclusive":
            policy["asks"] = [{"fact": "context.now", "question": "what is context.now?"}]
            policy |= {"because": "depends on what only the user can say; otherwise too old", "depends_on_user": True}
            policy |= {"reason": {"kind": "user", "words": "too old"}}
        events = [
            say("user", "A crown, please."),
            use("get_patient", 1),
            shows(1, "{}"),
            use("book", 2),
            shows(3, "ok"),
        ]
        line = {"trajectory": name, "agent": "dentbot", "step": 3, "tool": "book", "executed": executed}
        lines.append(line | {"strict": verdict, "determined": verdict, "policies": [policy], "finding": f"f{number}"})
        told = {"trajectory": name, "agent": "dentbot", "file": "logs.jsonl", "position": number, "outcome": None}
        held[name] = told | {"events": events}
    rule = {
        "rule": "confirm-before-change", "policy": "confirm-before-change", "because": "change, not agreed",
        "standing": "broken",
        "predicates": [{"name": "change", "value": True}, {"name": "agreed", "value": False}],
    }  # fmt: skip
    broken = [{"trajectory": "d00", "finding": "r0", "agent": "dentbot", "step": 3} | rule]
    summary = summarise([line for line in lines if line["executed"]], held, Counter({"dentbot": len(lines)}))
    summary["agents"][0] |= {"outcome_known": 0, "failure_rate": rate(0, 0)}
    write(out, lines, held, Counter({"dentbot": len(lines)}), summary, broken)
    cite = {"document": "policy.md", "heading": "Booking", "line": 6, "text": "Who owes may book only a checkup."}
    example = {"definition": EXAMPLE, "severity": "medium", "kind": "guard", "citations": [cite]}
    (out / "policies.json").write_text(json.dumps(POLICIES | {"example-book": example}))
    return out


ATTACK = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
BIDI = "\u202egnp.exe\u2066\u200f\u2028\u2029\x00\x07\x1b[31m"
LONE = "\ud800 lone \udfff"


def hostile(out: Path) -> Path:
    """Every field that came from logs or packs tries to get out of its place."""
    nasty = ATTACK + BIDI + LONE + "<!--" + "]]>" + "{{x}}" + "&lt;b&gt;"
    events = [
        say("user", nasty + "I'm a Gold member " + "A" * 1_200_000),
        use(nasty, 1, **{nasty: nasty, "__proto__": {"polluted": True}, "constructor": [nasty]}),
        shows(1, nasty * 3),
        use("toString", 2, amount=nasty, deep=[[[[[[nasty]]]]]]),
        shows(3, "<svg onload=window.pwned=3>"),
    ]
    lacks = missing(nasty, nasty, nasty, nasty, "claimed", claimed_at=0)
    policy = {
        **judged(
            nasty,
            "near_miss",
            lacks=(lacks,),
            had=(seen("__proto__", nasty, "hasOwnProperty", 2, nasty),),
            because=nasty,
        ),
        "severity": nasty,
    }
    lines = []
    held = {}
    for number, name in enumerate((nasty, "__proto__", "javascript:window.pwned=4", "'; rm -rf / #")):
        lines.append(
            {
                "trajectory": name,
                "agent": nasty,
                "step": 3,
                "call_id": nasty,
                "tool": "toString",
                "executed": None,
                "strict": "near_miss",
                "determined": "near_miss",
                "policies": [policy],
                "finding": f"{name}{number}",
            }
        )
        held[name] = {
            "trajectory": name,
            "agent": nasty,
            "file": nasty,
            "position": number,
            "outcome": {"good": True, "source": nasty},
            "events": events,
        }
    summary = summarise(lines, held, Counter({nasty: 4}))
    summary["pack"] = {"name": nasty, "version": nasty, "digest": nasty}
    summary["skipped"] = [{"place": nasty, "why": nasty}] * 3
    write(out, lines, held, Counter({nasty: 4}), summary)
    (out / "policies.json").write_text(
        json.dumps(
            {
                nasty: {
                    "definition": nasty,
                    "severity": nasty,
                    "kind": nasty,
                    "citations": [{"document": nasty, "heading": nasty, "line": nasty, "text": nasty}],
                }
            }
        )
    )
    return out
