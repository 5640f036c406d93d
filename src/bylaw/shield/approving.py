"""Tracks the approval requests in a conversation and applies the reviewers' answers to later decisions.

An approval covers one exact call, with the facts at the time of the approval. It can be used once and never overrides a
denial. A rejection covers all spellings of the call in its conversation. It lasts as long as the policies object for
the same reasons, based on the same facts.

If the caller keeps the history, each request is a new conversation. Earlier approvals are then matched by call, facts
and principal, and count only if the new history continues the earlier one. Rejections cover all such histories of the
principal.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.door import PRINCIPAL
from bylaw.engine.judgement import Judgement
from bylaw.facts.value import alike
from bylaw.policy.tool import ApprovalTerms
from bylaw.record.approval import Approval, Change, Status, fingerprint
from bylaw.shield.decision import Ground, firmest
from bylaw.trace.event import Call

AGAIN = 1000
"""The maximum number of approval requests for one call by one principal."""
TIMEOUT, LAPSED, CHANGED, HANDOVER, SPENT = "timeout", "lifetime", "facts", "handover", "used"
"""The reasons why an approval expires: nobody answered in time, nobody used it in time, its facts changed, another
principal took over, or the call ran under another approval.
"""


FindApproval = Callable[[str], Approval | None]
IsOurs = Callable[[Approval], bool]


class ApprovalRuling(Struct, frozen=True):
    """The grounds of a decision after the reviewers' answers were applied, and the approval changes to record."""

    grounds: Sequence[Ground]
    approval: str = ""
    """The id of the approval that the call waits for or runs under."""
    changes: Sequence[Change] = ()


class _Request(Struct):
    """An approval request and its state."""

    asked: Change
    last: Change
    changed: int = 0
    """The index of the request's last change among all changes."""
    ends: float = inf
    """The time at which the approval expires."""
    is_former: bool = False
    """Whether a previous principal made the request. Approving such a request has no effect."""


class Approvals:
    """The approval requests in a conversation, in order."""

    def __init__(self, changes: Sequence[Change] = (), *, handed_over: int = 0, before: int = 0) -> None:
        """Apply recorded changes. The first `before` changes belong to requests that were made before a handover."""
        self._requests: dict[str, _Request] = {}
        self._changes = 0
        self._handed_over = 0
        self.homes: dict[str, str] = {}
        """For approvals requested in other conversations: the conversation of each."""
        self._beside: list[Change] = []
        """Approved requests from the principal's other conversations. The host may have edited its history, so that
        these requests may really belong to this conversation.
        """
        if changes or handed_over:
            self.take(changes[:before])
            self.pass_on(handed_over)
            self.take(changes[before:])

    def pass_on(self, handed_over: int) -> None:
        """Disregard all requests that were made before a handover."""
        if handed_over != self._handed_over:
            self._handed_over = handed_over
            for each in self._requests.values():
                each.is_former = True

    def left_behind(self) -> list[Change]:
        """Return the changes that let a previous principal's approvals expire."""
        open = [each.last for each in self._requests.values() if each.is_former]
        open = [each.approval for each in open if each.status in ("waiting", "approved")]
        changes = [Change(name, "expired", HANDOVER, "the conversation was handed over") for name in open]
        self.take(changes)
        return changes

    def take(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.status == "waiting":
                self._requests[change.approval] = _Request(change, change)
            if (request := self._requests.get(change.approval)) is not None:
                self._changes += 1
                request.last, request.changed = change, self._changes
                if change.status == "approved" and change.expires:
                    request.ends = change.expires

    @property
    def _current(self) -> list[_Request]:
        return [each for each in self._requests.values() if not each.is_former]

    def has_ended(self, approval: str, now: float) -> bool:
        return approval in self._requests and now >= self._requests[approval].ends

    def recall(
        self,
        judgement: Judgement,
        grounds: Sequence[Ground],
        context: Mapping[str, Any],
        find: FindApproval,
        is_ours: IsOurs,
        terms: ApprovalTerms,
        now: float,
        pin: str,
    ) -> str:
        """Find earlier requests for the same call, pack and principal. Return the name for the next request.

        An approval is used only if `is_ours` confirms that this conversation requested it. A rejection applies in all
        conversations of the principal. Because a host may edit a history, an unused approval may still belong to this
        conversation. It expires when the call runs under another approval.
        """
        if _is_denied(grounds):
            return ""
        made = judgement.made.call
        # All spellings of a call share one name, so one rejection covers them all.
        digest = fingerprint([made.tool, alike(made.arguments), context[PRINCIPAL], pin])
        answered, next_name = list[Approval](), ""
        for number in range(1, AGAIN):
            name = f"messages/{digest[:32]}/{number}"
            known = find(name)
            if known is None:
                next_name = name
                break
            if known.status == "rejected":
                # If rejections ended sooner than approvals, an approval given before a rejection could become valid
                # again.
                counts = now < known.answered + max(terms.timeout, terms.lifetime)
            else:
                counts = known.status in ("waiting", "approved") and is_ours(known)
            if counts:
                self.homes[name] = known.conversation
                self.take([known.request])
                answered.append(known)
            if known.status == "approved":
                self.homes[name] = known.conversation
                self._beside.append(known.request)
        answered.sort(key=lambda each: (each.answered, each.status == "rejected"))
        self.take(each.answer for each in answered if each.answer is not None)
        return next_name

    def rule(
        self,
        judgement: Judgement,
        grounds: Sequence[Ground],
        name: str,
        now: float,
        terms: ApprovalTerms,
        *,
        known: Callable[[], Sequence[tuple[str, Any]]],
        decision: str = "",
        read: Mapping[str, Any] | None = None,
    ) -> ApprovalRuling:
        """Apply the reviewers' answers about this call to the grounds, or request an approval named `name`.

        `known` returns the facts behind the decision. `decision` is the id of the decision, if it differs from `name`.
        """
        if not self._current and not needs_person(grounds):
            return ApprovalRuling(grounds)
        made, seen = judgement.made.call, known()
        call = fingerprint([made.tool, made.arguments, *([read] if read else [])])
        apart = fingerprint(_policy_facts(seen, grounds, terms))
        # A stop is temporary, so it must not count as a change of the approval's facts.
        facts = fingerprint(facts_of(seen, [each for each in grounds if not _is_stopped_by(each)], terms))
        parts = [part.made.call for part in judgement.parts]
        if (no := self._no(made, call, apart, parts)) is not None and not _is_denied(grounds):
            return ApprovalRuling(
                [_refusal(f"a reviewer rejected this call{': ' + no.note if no.note else ''}"), *grounds], no.approval
            )
        changes: list[Change] = []
        request = next((each for each in reversed(self._current) if each.asked.call == call), None)
        found = request.asked if request is not None else None
        status: Status | None = request.last.status if request is not None else None
        if found is not None and status in ("waiting", "approved"):
            if found.facts != facts:
                changes.append(Change(found.approval, "expired", CHANGED, "the facts behind it have changed"))
            elif status == "waiting" and now >= found.expires:
                changes.append(Change(found.approval, "expired", TIMEOUT, "no reviewer answered in time"))
            elif status == "approved" and self.has_ended(found.approval, now):
                changes.append(Change(found.approval, "expired", LAPSED, "the approval was not used in time"))
        if changes:
            self.take(changes)
            status = "expired"
        ruling = ApprovalRuling(grounds, "", changes)
        if needs_person(grounds):
            ruling = self._answered(ruling, found, facts, status, terms, ran_out=bool(changes))
            if not ruling.approval and needs_person(ruling.grounds):
                expires = now + terms.timeout
                asked = Change(name, "waiting", expires=expires, call=call, facts=facts, apart=apart)
                told = {"decision": decision or name, "tool": made.tool, "arguments": made.arguments}
                asked = replace(asked, question=question(grounds), lifetime=terms.lifetime, **told)
                ruling = replace(ruling, approval=name, changes=[*changes, asked])
        self.take(ruling.changes[len(changes) :])
        return ruling

    def _answered(
        self,
        ruling: ApprovalRuling,
        found: Change | None,
        facts: str,
        status: Status | None,
        terms: ApprovalTerms,
        *,
        ran_out: bool,
    ) -> ApprovalRuling:
        if found is None or found.facts != facts:
            return ruling
        last = self._requests[found.approval].last
        if status == "waiting":
            return replace(ruling, approval=found.approval)
        if status == "approved":
            lifted = [lift(ground, last.by) for ground in ruling.grounds]
            is_used = firmest(lifted).get("enforce", "allow") == "allow"
            used = [Change(found.approval, "used"), *self._ended_with(found)] if is_used else []
            return ApprovalRuling(lifted, found.approval, [*ruling.changes, *used])
        if status == "expired" and ran_out and last.by == TIMEOUT and terms.default == "reject":
            # If the agent repeats the call, a new approval is requested.
            no = "no reviewer answered in time. To ask again, make the call again"
            return replace(ruling, grounds=[_refusal(no), *ruling.grounds], approval=found.approval)
        return ruling

    def _ended_with(self, used: Change) -> list[Change]:
        others = [each.approval for each in self._beside if each.call == used.call and each.approval != used.approval]
        return [Change(each, "expired", SPENT, "the call was made under another approval") for each in others]

    def is_rejected(self, made: Call) -> bool:
        asked = (each.asked for each in self._current if each.last.status == "rejected")
        return any(each.tool == made.tool and alike(each.arguments) == alike(made.arguments) for each in asked)

    def _no(self, made: Call, call: str, apart: str, parts: Sequence[Call]) -> Change | None:
        """Return a rejection of the call, of another spelling of it, or of one of its actions. None if there is none.

        The rejection applies if the policies object for the same reasons, or if it came after an approval of the call.
        For another spelling, reasons are not compared, because they may contain different names.
        """
        is_approved = False
        for request in sorted(self._current, key=lambda each: each.changed):
            each, status = request.asked, request.last.status
            is_approved |= each.call == call and status == "approved"
            if status != "rejected":
                continue
            # Earlier versions did not record reasons. Their rejections still apply.
            is_same = each.call == call and (is_approved or each.apart in ("", apart))
            is_alike = each.call != call and each.tool == made.tool and alike(each.arguments) == alike(made.arguments)
            is_part = any(each.tool == part.tool and alike(each.arguments) == alike(part.arguments) for part in parts)
            if is_same or is_alike or is_part:
                return request.last
        return None


def _refusal(because: str) -> Ground:
    return Ground("", "person", "deny", "enforce", because)


def _is_denied(grounds: Iterable[Ground]) -> bool:
    return firmest(grounds).get("enforce") == "deny"


def _is_stopped_by(ground: Ground) -> bool:
    return ground.kind == "stop" and ground.answer == "deny"


def needs_person(grounds: Iterable[Ground]) -> bool:
    """Whether only questions stop the call, and at least one of them is for a reviewer."""
    firm = [ground for ground in grounds if ground.posture == "enforce"]
    return firmest(firm).get("enforce") == "ask" and any(_is_for_person(ground) for ground in firm)


def _is_for_person(ground: Ground) -> bool:
    whom = [each.whom for each in ground.questions]
    return ground.answer == "ask" and (not whom or "person" in whom)


def _is_for_user(ground: Ground) -> bool:
    return ground.puts_card and ground.answer == "ask" and not _is_for_person(ground)


def lift(ground: Ground, by: str) -> Ground:
    """Return the ground after a reviewer's approval. Questions for the user remain unanswered."""
    if ground.posture != "enforce" or not _is_for_person(ground):
        return ground
    left = tuple(each for each in ground.questions if each.whom == "user")
    if left:
        return replace(ground, questions=left)
    because = f"{_OVERRIDE if ground.stands_in else _APPROVED}{by}"
    return replace(ground, answer="allow", because=because, questions=())


def rests_on(ground: Ground, by: str) -> bool:
    return lifted_by(ground) == by


def lifted_by(ground: Ground) -> str:
    """Return the reviewer whose approval lifted this ground, or an empty string."""
    if ground.answer != "allow":
        return ""
    said = (ground.because.removeprefix(each) for each in (_APPROVED, _OVERRIDE) if ground.because.startswith(each))
    return next(said, "")


_APPROVED, _OVERRIDE = "approved by ", "override by "


def question(grounds: Iterable[Ground]) -> str:
    asking = [ground for ground in grounds if _is_for_person(ground)]
    texts = [each.text for ground in asking for each in ground.questions if each.whom == "person"]
    texts += [ground.because for ground in asking if not ground.questions]
    return " ".join(dict.fromkeys(filter(None, texts)))


def facts_of(known: Iterable[tuple[str, Any]], grounds: Iterable[Ground], terms: ApprovalTerms) -> Any:
    """Return the facts behind a decision, with their values, and every ground that objects.

    A pending confirmation by the user is left out, so that the user may answer before or after the reviewer. It is
    included if a reviewer may answer in place of the user.
    """
    seen = sorted(f"{name} = {value!r}" for name, value in known)
    objections = sorted(
        [ground.policy, ground.answer, *ground.missing, *(each.fact for each in ground.questions)]
        for ground in grounds
        if ground.answer != "allow" and (ground.policy in terms.stands_in or not _is_for_user(ground))
    )
    return [seen, objections]


def _policy_facts(known: Iterable[tuple[str, Any]], grounds: Iterable[Ground], terms: ApprovalTerms) -> Any:
    """Return the facts behind a decision, without stops, doubts and limits, because these are temporary."""
    return facts_of(known, [ground for ground in grounds if ground.kind in ("guard", "rule")], terms)
