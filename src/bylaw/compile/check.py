"""A policy's compiled check, its cases, and the questions for a reviewer."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from bylaw.compile.bench import Case
from bylaw.compile.desk import Desk, json_prompt
from bylaw.errors import BylawError
from bylaw.scan.written import dump


class Question(Struct, frozen=True):
    """A question for a reviewer to decide."""

    about: str
    """A short heading."""
    text: str
    input: dict[str, Any] | None = None
    """The call and the facts that the question is about."""


UNANSWERED = "a request about this policy has no answer yet"
"""The reason given when a compile ends before a policy has a check."""


class Check(Struct, frozen=True):
    """The guard or rule for one policy, or the reason why the policy has neither."""

    policy: str
    code: str = ""
    rules: dict[str, Any] | None = None
    """The `predicates` and `rules`, as in `rules.yaml`."""
    cases: tuple[Case, ...] = ()
    questions: tuple[Question, ...] = ()
    failed: str = ""
    """Why the policy is not enforced."""
    repairs: int = 0
    generated: int = 0
    """The number of generated inputs on which the check ran."""
    divided: int = 0
    """The number of inputs for which two versions gave different results."""
    shown: str = ""
    """A digest of all text in the check's questions. An unchanged digest means that the check can be reused."""


def settled(policy: str, settle: Callable[[], Check | None]) -> Check | None:
    """Run `settle` and return the policy's check. An unexpected error in generated code is reported for this policy,
    and the compile goes on.
    """
    try:
        return settle()
    except BylawError:
        raise
    except Exception as error:
        return Check(policy, failed=f"the check cannot be tried: {type(error).__name__}: {str(error)[:200]}")


class Ruling(Struct, frozen=True):
    """A referee's decision on one situation."""

    number: int
    want: Literal["permit", "deny", "kept", "broken", "unclear"]
    why: str = ""


class _Answer(Struct, frozen=True):
    rulings: tuple[Ruling, ...]


_REFEREE = json_prompt("referee", _Answer)


def rule_on(
    desk: Desk, situations: Sequence[Case], wants: tuple[str, str], shown: Mapping[str, str]
) -> dict[int, Ruling]:
    """Return the referee's decisions, keyed by the position of the situation. The referee does not see the expected
    outcomes.
    """
    bare = [{name: part for name, part in each.items() if name not in _UNSHOWN} for each in situations]
    listed = "\n".join(dump({"number": number, **each}) for number, each in enumerate(bare, 1))
    allowed = (*wants, "unclear")
    things = [line for line in shown["things"].splitlines() if re.search(rf"\b{line.partition('[')[0]}\b", listed)]
    shown = {**shown, "things": "\n".join(things) or "none", "situations": listed, "wants": ", ".join(allowed)}
    outcome = desk.ask(_REFEREE, shown, lambda answer: _judged(answer, len(situations), allowed), empty=())
    return {each.number - 1: each for each in outcome.made}


_UNSHOWN = frozenset(("want", "note", "policy", "rule"))


def _judged(answer: _Answer, count: int, allowed: Sequence[str]) -> tuple[tuple[Ruling, ...], list[str]]:
    kept = tuple(each for each in answer.rulings if 0 < each.number <= count and each.want in allowed)
    missing = set(range(1, count + 1)) - {each.number for each in kept}
    return kept, [f"nothing is said of situation {number}" for number in sorted(missing)]


def ruled(case: Case, ruling: Ruling | None, questions: list[Question], *, shown: Case | None = None) -> list[Case]:
    """Return a disputed case with the referee's outcome, or nothing if the sentences do not decide the case.

    The owner is told through a question unless the referee agrees with the case. `shown` is the part of the case that
    the owner sees.
    """
    shown = shown or {name: part for name, part in case.items() if name not in ("policy", "note")}
    if ruling is None or ruling.want == "unclear":
        why = ruling.why if ruling is not None else "the referee did not decide it"
        questions.append(Question("a case that is not settled", f"`{case.get('note', '')}`: {why}", shown))
        return []
    if ruling.want == case.get("want"):
        return [case]
    text = f"`{case.get('note', '')}` wanted {case.get('want')}; the referee decided {ruling.want}: {ruling.why}"
    questions.append(Question("a case that was corrected", text, shown))
    return [{**case, "want": ruling.want}]
