"""A policy's compiled check and its cases, the referee that decides disputed cases, and questions for a reviewer."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

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
    """The number of generated inputs on which the check was run."""
    divided: int = 0
    """The number of inputs for which two versions of the check gave different results."""
    shown: str = ""
    """A digest of all text in the questions about the check. If the digest is unchanged, the check can be reused."""


def settled(policy: str, shown: str, settle: Callable[[], Check | None] | None) -> Check:
    """Return the check that `settle` builds from the answers, or a failed check if answers are missing.

    An unexpected error in generated code fails only this policy, and the compile continues.
    """
    try:
        check = settle() if settle is not None else None
    except BylawError:
        raise
    except Exception as error:
        check = Check(policy, failed=f"the check cannot be tried: {type(error).__name__}: {str(error)[:200]}")
    return replace(check, shown=shown) if check is not None else Check(policy, failed=UNANSWERED)


def cases_by_policy(
    cases: Iterable[Case], names: Iterable[str], part: str, wants: tuple[str, str]
) -> tuple[dict[str, list[Case]], list[str]]:
    """Group the cases in an answer by policy, and return the errors in the answer.

    `part` is the field of a case that names its policy: `guard` or `rule`.
    """
    found: dict[str, list[Case]] = {name: [] for name in names}
    complaints: list[str] = []
    for case in cases:
        if case.get(part) not in found:
            complaints.append(f"case `{case.get('note', '')}`: `{case.get(part)}` is not one of the policies")
        elif case.get("want") not in wants:
            complaints.append(f"case `{case.get('note', '')}` wants neither {wants[0]} nor {wants[1]}")
        else:
            found[case[part]].append(case)
    return found, complaints


class Ruling(Struct, frozen=True):
    """A referee's decision on one situation."""

    number: int
    want: Literal["permit", "deny", "kept", "broken", "unclear"]
    why: str = ""


class _Answer(Struct, frozen=True):
    rulings: tuple[Ruling, ...]


_REFEREE = json_prompt("referee", _Answer)
_UNSHOWN = frozenset(("want", "note", "policy", "rule"))


def rule_on(desk: Desk, situations: Sequence[Case], wants: tuple[str, str], shown: Mapping[str, str]) -> list[Ruling]:
    """Return the referee's decision on each situation. The referee does not see the expected outcomes."""
    if not situations:
        return []
    bare = [{name: part for name, part in each.items() if name not in _UNSHOWN} for each in situations]
    listed = "\n".join(dump({"number": number, **each}) for number, each in enumerate(bare, 1))
    allowed = (*wants, "unclear")
    things = [line for line in shown["things"].splitlines() if re.search(rf"\b{line.partition('[')[0]}\b", listed)]
    shown = {**shown, "things": "\n".join(things) or "none", "situations": listed, "wants": ", ".join(allowed)}

    def judged(answer: _Answer) -> tuple[dict[int, Ruling], list[str]]:
        numbers = range(1, len(situations) + 1)
        kept = {each.number: each for each in answer.rulings if each.number in numbers and each.want in allowed}
        return kept, [f"nothing is said of situation {number}" for number in numbers if number not in kept]

    rulings = desk.ask(_REFEREE, shown, judged, empty={}).made
    undecided = "the referee did not decide it"
    return [rulings.get(number, Ruling(number, "unclear", undecided)) for number in range(1, len(situations) + 1)]


def arbitrated(
    desk: Desk,
    cases: Sequence[Case],
    disputed: Collection[int],
    wants: tuple[str, str],
    shown: Mapping[str, str],
    questions: list[Question],
    more: Sequence[Case] = (),
) -> tuple[list[Case], list[Ruling]]:
    """Return the cases after the referee has decided those at the `disputed` positions, without cases that it left
    undecided.

    Also return the rulings on `more` situations. For each case that the referee leaves undecided or changes, a question
    for the owner is added.
    """
    order = sorted(disputed)
    rulings = rule_on(desk, [*(cases[index] for index in order), *more], wants, shown)
    by_index = dict(zip(order, rulings, strict=False))
    kept: list[Case] = []
    for index, case in enumerate(cases):
        ruling = by_index.get(index)
        want = ruling.want if ruling is not None else case.get("want")
        if ruling is not None and want == "unclear":
            text = f"`{case.get('note', '')}`: {ruling.why}"
            questions.append(Question("a case that is not settled", text, without_names(case)))
            continue
        if ruling is not None and want != case.get("want"):
            text = f"`{case.get('note', '')}` wanted {case.get('want')}; the referee decided {want}: {ruling.why}"
            questions.append(Question("a case that was corrected", text, without_names(case)))
        kept.append({**case, "want": want})
    return kept, rulings[len(order) :]


def without_names(case: Case) -> Case:
    """Return the part of a case that a question shows as its input."""
    return {name: part for name, part in case.items() if name not in ("policy", "note")}
