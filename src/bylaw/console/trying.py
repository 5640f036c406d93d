"""Try a change to a check in the page: its cases beside it, the past calls it would judge otherwise, then save it."""
# pyright: basic, reportMissingImports=false

from msgspec import Struct
from starlette.responses import Response

from bylaw.console.app import Pages, changed, shown
from bylaw.console.backtest import Backtest, Backtests
from bylaw.console.door import Refused
from bylaw.console.draft import Draft, drafts_of, faults_of, patch, save, tried_pack
from bylaw.console.pack_state import PackState
from bylaw.console.record_file import Written
from bylaw.console.sign_in import needs_noting
from bylaw.console.visitor import Asked
from bylaw.console.workbench import Workbench
from bylaw.errors import BylawError, UsageError
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.reading import check_lines, signed_lines

LISTED = 50
"""Calls that are listed at most."""


class Tried(Struct, frozen=True):
    """What became of a text."""

    faults: list[str] = []
    cases: list[CaseResult] = []
    """Those that fail first."""
    past: Backtest | None = None
    why_not: str = ""
    """Why it was tried on no past call."""

    @property
    def failing(self) -> int:
        """Cases that do not end as they should."""
        return sum(not case.passed for case in self.cases)


class TryPages(Pages):
    section = "policy"

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.layout)
        self._bench = bench
        self._backtests = Backtests(bench.past, keeps=bench.keeps)

    @shown("/try/{id}")
    def begin(self, asked: Asked) -> Response:
        """The check as it is saved."""
        now, draft = self._draft(asked)
        return self._told(asked, draft, draft.text, self._tried(asked, now, draft, draft.text))

    @changed("/try/{id}")
    def run(self, asked: Asked) -> Response:
        needs_noting(asked.visitor)
        now, draft = self._draft(asked)
        text = asked.form.get("text", "")
        return self._told(asked, draft, text, self._tried(asked, now, draft, text))

    @changed("/try/{id}/save")
    def save(self, asked: Asked) -> Response:
        by = asked.signed()
        now, draft = self._draft(asked)
        text, root = asked.form.get("text", ""), self._bench.own_root
        if root is None:
            raise UsageError("the pack is not written to from here", hint="take the patch")
        if asked.form.get("digest") != draft.digest:
            raise UsageError("the check has changed since you loaded the page", hint="load it again")
        tried = self._tried(asked, now, draft, text)
        if tried.faults:
            raise UsageError(f"nothing was written: {tried.faults[0]}")
        if tried.failing and asked.form.get("despite") != str(tried.failing):
            cases = "1 case fails" if tried.failing == 1 else f"{tried.failing} cases fail"
            raise UsageError(f"nothing was written: {cases}", hint="correct the check, or confirm next to the cases")
        made = save(root, draft, text)
        told = f"saved by {by}. A signature on the policy lapses." if made else "nothing had changed."
        now, draft = self._draft(asked)
        return self._told(
            asked, draft, draft.text, self._tried(asked, now, draft, draft.text), Written(root / draft.file, made, told)
        )

    def _draft(self, asked: Asked) -> tuple[PackState, Draft]:
        now, name = self._bench.pack_now(), asked.request.path_params["id"]
        if name not in now.pack.policies:
            raise Refused("the pack has no such policy", status=404)
        drafts = drafts_of(now, name)
        rule = asked.form.get("rule") or asked.request.query_params.get("rule", "")
        found = [draft for draft in drafts if draft.name == rule] or drafts
        if not found:
            raise Refused("nothing is checked for this policy, so there is nothing to edit", status=404)
        return now, found[0]

    def _tried(self, asked: Asked, now: PackState, draft: Draft, text: str) -> Tried:
        try:
            edited = now.pack if text == draft.text else tried_pack(now, draft, text)
        except BylawError as error:
            return Tried(faults=faults_of(error))
        ran = [each for each in run_cases(edited, of=now.names_of(draft.policy)) if isinstance(each, CaseResult)]
        cases = sorted(ran, key=lambda case: case.passed)
        try:
            if text == draft.text:
                self._backtests.prepare(now.pack, draft.policy, asked.visitor.tenant)
                return Tried(cases=cases)
            past = self._backtests.run(now.pack, edited, draft.policy, asked.visitor.tenant)
            return Tried(cases=cases, past=past)
        except UsageError as error:
            return Tried(cases=cases, why_not=error.message)

    def _told(self, asked: Asked, draft: Draft, text: str, tried: Tried, written: Written | None = None) -> Response:
        now = self._bench.pack_now()
        return self._page(
            "try.html",
            asked,
            draft=draft,
            text=text,
            tried=tried,
            is_changed=text != draft.text,
            patch=self._patch(draft, text) if text != draft.text and not tried.faults else "",
            others=[each for each in drafts_of(now, draft.policy) if each.name != draft.name],
            sentence=_sentence(now.pack.policies[draft.policy]),
            called=_called(now, draft),
            can_write=self._bench.own_root is not None,
            listed=LISTED,
            written=written,
        )

    def _patch(self, draft: Draft, text: str) -> str:
        assert self._bench.root is not None
        try:
            return patch(self._bench.root, draft, text)
        except BylawError as error:
            return f"# {error}\n"


def _called(now: PackState, draft: Draft) -> str:
    """The functions that a check calls, which others may call, too."""
    policy = now.pack.policies[draft.policy]
    return "\n".join(signed_lines(now.pack, policy)[len(check_lines(now.pack, policy)) :]).strip("\n")


def _sentence(policy: Policy) -> str:
    """What a policy says, in the words of its document where they are at hand."""
    return " ".join(cite.text for cite in policy.citations if cite.text) or policy.definition
