"""Audit output folders for the report's tests: a realistic clinic, a hostile one, and a large one.

They follow the contract of `summary.json`, `calls.jsonl`, `conversations.jsonl` and `policies.json`, and are
made without the auditor, so that the page is tested against the contract and not against one writer of it.
"""

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.report.audit_policies import POLICIES, Record
from tests.report.audit_scenes import SCENES, judged, missing, say, seen, shows, use
from tests.report.audit_summary import rate, summarise

AGENTS = {"careful-1": 0.03, "hasty-2": 0.45, "trusting-3": 0.6, "forgetful-4": 0.4, "over-eager-5": 0.5}


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
            policy |= {
                "because": "depends on a fact that only the user knows; possible reason: too old",
                "depends_on_user": True,
            }
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
    refused = [line["determined"] for line in lines if line["executed"] is False]
    summary["counts"] = {
        "refused": {"violations": refused.count("violation"), "near_misses": refused.count("near_miss")}
    }
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
