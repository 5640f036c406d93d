"""Writes the text that a reviewer sees before an approval.

Agents, tools and users may supply misleading values. Each value is therefore quoted, shortened and kept on one line, so
that it cannot look like text from Bylaw.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bylaw.facts.entity import ABSENT, is_known
from bylaw.shield.decision import Ground
from bylaw.trace.event import Call

LONGEST = 200
"""The maximum length of a value in characters."""
LONGEST_ARGUMENT = 2000
"""The maximum length of an argument of the call in characters. It is large because the reviewer approves all of it."""
MOST = 30
"""The maximum number of arguments or facts to show."""
_as_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


def for_person(call: Call, grounds: Sequence[Ground], seen: Iterable[tuple[str, Any]]) -> str:
    """Return the message for the reviewer. `seen` contains the facts that were used, with their values."""
    lines = [f"The agent wants to make this call: {name(call.tool)}"]
    lines += _listed([f"  {name(key)}: {value(each, LONGEST_ARGUMENT)}" for key, each in call.arguments.items()])
    facts = [(fact, answer) for fact, answer in seen if not fact.endswith(".exists")]
    known = [
        f"  {line(fact.replace('[].', '.', 1))} is {_answer(answer)}" for fact, answer in facts if is_known(answer)
    ]
    missing = [fact for ground in grounds if ground.answer != "allow" for fact in ground.missing]
    missing += [each.fact for ground in grounds if ground.answer != "allow" for each in ground.questions]
    if known:
        lines += ["Known:", *_listed(known)]
    if missing:
        lines += ["Unknown:", *_listed([f"  {line(fact)}" for fact in dict.fromkeys(missing)])]
    for ground in grounds:
        if ground.answer != "allow":
            lines += _said(ground)
    return "\n".join(lines)


def _said(ground: Ground) -> list[str]:
    quoted = "; ".join(f'{line(str(each))}: "{line(each.text)}"' for each in ground.citations if each.text)
    why = line(ground.because)
    if why and ground.kind == "guard" and ground.answer != "deny" and not ground.failed:
        why = f'possibly "{why}", depending on the unknown facts'
    about = ". ".join(each for each in (why, quoted) if each) or "undecided"
    said = [f"- {line(ground.policy or ground.kind)} ({ground.answer}): {about}"]
    for each in ground.questions:
        whom = "the user" if each.whom == "user" else "a reviewer"
        said.append(f"  Question for {whom}: {line(each.text)}")
    return said


def line(text: str) -> str:
    """Return the text on one short line, with invisible characters escaped."""
    plain = " ".join(text.split())
    if not plain.isprintable():
        plain = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in plain)
    return plain if len(plain) <= 2 * LONGEST else f"{plain[: 2 * LONGEST]}..."


def name(text: str) -> str:
    """Return a name that an agent supplied. It is quoted unless it is a simple word."""
    return text if text.isidentifier() and text.isprintable() and len(text) <= LONGEST else value(text)


def value(given: Any, longest: int = LONGEST) -> str:
    """Return a value as JSON on one line. If it is shortened, the text says how many characters are missing."""
    try:
        text = _as_json(given)
    except (TypeError, ValueError, RecursionError):
        text = _as_json(str(given))
    if not text.isprintable():
        text = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}... ({left} more characters)"


def _answer(answer: Any) -> str:
    return "missing: there is no such record" if answer is ABSENT else value(answer)


def _listed(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MOST else [*lines[:MOST], f"  ... and {len(lines) - MOST} more"]
