"""Shows the policy document, with the policies that cite each sentence.

Reviewers can read, sign, reject and comment on the checks.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from bylaw.audit.store import JsonRecord
from bylaw.console.app import Pages, changed, shown
from bylaw.console.door import Asked, Refused
from bylaw.console.findings import sentence_of
from bylaw.console.index import Wanted
from bylaw.console.index.query import FindingRow
from bylaw.console.pack_state import PackState, case_names, cases_of, parts_of
from bylaw.console.queue import check_address, unsigned
from bylaw.console.records import Comment, Written, comment_on, comments_of, sign
from bylaw.console.trying import Workbench
from bylaw.console.view import AuditPages
from bylaw.errors import UsageError
from bylaw.pack import Criterion
from bylaw.pack.review import REVIEW, Sides, read_signatures, standings
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult
from bylaw.review.check import Covered, Noted, signed_lines
from bylaw.rule.drawing import draw_automaton, draw_circuit
from bylaw.rule.formula import atoms
from bylaw.rule.structure import circuits

EXCERPT = 5
"""The maximum number of flagged calls to show on a policy's page."""
NEEDS = ("unsigned", "lapsed", "rejected")


class ShownCase(Struct, frozen=True):
    note: str
    want: str
    got: str
    passed: bool | None
    parts: tuple[tuple[str, str], ...]


class Margin(Struct, frozen=True):
    """A sentence, the policies that cite it, and their review states."""

    covered: Covered
    notes: tuple[tuple[Policy, str], ...]


Group = tuple[str, str, list[Margin]]


def margins_of(covered: Iterable[Covered], states: Mapping[str, str]) -> tuple[list[Group], set[str]]:
    """Return the sentences by file and heading. Each sentence has the policies that cite it."""
    groups: list[Group] = []
    cited: set[str] = set()
    for each in covered:
        place = (each.document, each.sentence.heading)
        if not groups or groups[-1][:2] != place:
            groups.append((*place, []))
        groups[-1][2].append(Margin(each, tuple((policy, states.get(policy.id, "")) for policy in each.policies)))
        cited.update(policy.id for policy in each.policies)
    return groups, cited


class ServedPolicyPages(Pages):
    """Pages that show the pack of a service."""

    section = "policy"

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @property
    def layout(self) -> dict[str, Any]:
        return self._bench.layout

    @shown("/policy/{id}")
    def one(self, asked: Asked) -> Response:
        """Redirect to this policy from its address in the pages of an audit."""
        return RedirectResponse(f"/try/{quote(asked.path['id'], safe='')}", 303)

    @shown("/policy")
    def document(self, asked: Asked) -> Response:
        """Show the document as prose. If the pack has no document, list the policies in order."""
        assert self._bench.root is not None
        now = self._bench.pack_now()
        groups, cited = margins_of(now.covered, standings(self._bench.root, now.sides))
        rest = [policy for name, policy in now.pack.policies.items() if name not in cited]
        checked = {*now.pack.guards, *(rule.policy for rule in now.pack.book.rules)}
        return self._page("served_policy.html", asked, groups=groups, rest=rest, checked=checked)


class PolicyPages(AuditPages):
    """Pages that show the pack of an audit and let a reviewer sign it."""

    section = "policy"

    @shown("/policy")
    def document(self, asked: Asked) -> Response:
        """Show the document as prose. If the pack has no document, list the policies in order."""
        groups: list[Group] = []
        cited: set[str] = set()
        states: Mapping[str, str] = {}
        if self._view.root is not None:
            now = self._view.pack_now()
            states = standings(self._view.root, now.sides)
            groups, cited = margins_of(now.covered, states)
        return self._page(
            "policy.html",
            asked,
            groups=groups,
            states=states,
            counts=self._view.standings().index.by_policy(),
            rest=[(name, policy) for name, policy in self._view.policies.items() if name not in cited],
            sentence=lambda name: sentence_of(self._view, name, 1000),
        )

    @shown("/policy/{id}")
    def one(self, asked: Asked) -> Response:
        return self._shown(asked, asked.path["id"], is_queued=asked.query.get("queue") == "checks")

    @shown("/policy/{id}/automaton.svg")
    def automaton(self, asked: Asked) -> Response:
        rules = [rule for rule in self._view.pack_now().pack.book.rules if rule.policy == asked.path["id"]]
        found = next((rule for rule in rules if rule.name == asked.query.get("rule", "")), None)
        if found is None:
            raise Refused("the pack has no such rule", status=404)
        return Response(draw_automaton(found), media_type="image/svg+xml")

    @shown("/policy/{id}/circuit.svg")
    def circuit(self, asked: Asked) -> Response:
        """Draw the rules for an action, with their weights."""
        book, name = self._view.pack_now().pack.book, asked.query.get("action", "")
        if name not in book.actions:
            raise Refused("the pack has no such action", status=404)
        return Response(draw_circuit(circuits(book.every, (name,), eps=book.eps)[name]), media_type="image/svg+xml")

    @changed("/policy/{id}/sign")
    def sign(self, asked: Asked) -> Response:
        """Accept or reject a policy, in the version that the page showed."""
        name, root, sides = self._to_write(asked)
        word, note = asked.form.get("word", ""), asked.text("note")
        if word not in ("accepted", "rejected"):
            raise UsageError("choose accept or reject")
        if word == "rejected" and not note:
            raise UsageError("enter what is wrong; the compiler reads your note")
        if asked.form.get("digest") != f"{sides.sentence}{sides.check}":
            raise UsageError(
                "the policy or its check changed after you loaded the page",
                hint="reload the page and read the policy again",
            )
        following = self._after(name)
        sign(root, {name: sides}, {name: word}, asked.signed(), note)
        written = Written(root / REVIEW, f"{name}: {word} by {asked.signed()}", note)
        if asked.form.get("queue") != "checks":
            return self._shown(asked, name, written)
        if not following:
            asked.headers["hx-redirect"] = "/review"
            return RedirectResponse("/review", 303) if not asked.is_part else Response(headers=asked.headers)
        asked.headers["hx-push-url"] = check_address(following)
        return self._shown(asked, following, written, is_queued=True)

    @changed("/policy/{id}/comment")
    def comment(self, asked: Asked) -> Response:
        """Add a comment. Comments do not affect sign-off."""
        name, root, sides = self._to_write(asked)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        given = Comment(name, asked.signed(), now, asked.form.get("text", ""), sides.sentence, sides.check)
        return self._shown(asked, name, comment_on(root, given))

    def _to_write(self, asked: Asked) -> tuple[str, Path, Sides]:
        """Return the policy, its pack's folder, and the policy's current digests."""
        name, root = asked.path["id"], self._view.writable_root()
        sides = self._view.pack_now().sides.get(name)
        if sides is None:
            raise Refused("the pack has no such policy", status=404)
        return name, root, sides

    def _after(self, name: str) -> str:
        root, names = self._view.own_root, list(self._view.pack_now().pack.policies)
        waiting = [each for each in unsigned(self._view.pack_now(), root) if each != name] if root is not None else []
        place = names.index(name) if name in names else 0
        return next((each for each in waiting if names.index(each) > place), next(iter(waiting), ""))

    def _shown(self, asked: Asked, name: str, written: Written | None = None, *, is_queued: bool = False) -> Response:
        view = self._view
        index = view.standings().index
        rows = index.findings(Wanted(policy=name, state="all"), limit=EXCERPT)
        stated: JsonRecord = view.policies.get(name) or {}
        judged: JsonRecord = view.summary["by_policy"].get(name) or {}
        now = view.pack_now() if view.root is not None else None
        own = _of_pack(now, name, view.root) if now is not None and view.root is not None else None
        if own is None and not stated:
            raise Refused("the pack has no such policy", status=404)
        policy = own["policy"] if own is not None else None
        by_tool: JsonRecord = view.summary["by_tool"]
        return self._page(
            "policy_one.html",
            asked,
            written=written,
            section="review" if is_queued else self.section,
            is_queued=is_queued,
            skip=check_address(self._after(name)) if is_queued and self._after(name) else "",
            left=len(unsigned(view.pack_now(), view.own_root)) if is_queued and view.own_root is not None else 0,
            name=name,
            stated=stated,
            judged=judged,
            found=[(row, *_said_of(index.line(row), row, name, view.criterion)) for row in rows],
            counts=index.by_policy().get(name),
            conversations=view.conversations,
            verdicts=judged.get(view.criterion) or {},
            can_write=view.own_root is not None,
            calls=sum(by_tool.get(tool, {}).get("calls", 0) for tool in policy.tools) if policy else 0,
            **(own or _UNKNOWN),
        )


_UNKNOWN: dict[str, Any] = {
    "policy": None, "check": None, "state": "", "needs": False, "signature": None, "cases": [], "rules": [],
    "actions": [], "noted": Noted(), "comments": [], "digest": "",
}  # fmt: skip
"""The content that a policy's page shows if there is no pack."""


def _of_pack(now: PackState, name: str, root: Path) -> dict[str, Any] | None:
    policy = now.pack.policies.get(name)
    if policy is None:
        return None
    sides, state = now.sides[name], standings(root, now.sides)[name]
    rules = [rule for rule in now.pack.book.rules if rule.policy == name]
    return {
        "policy": policy,
        "check": signed_lines(now.pack, policy),
        "state": state,
        "needs": state in NEEDS or (state == "unreviewed" and now.is_compiled),
        "signature": read_signatures(root).get(name),
        "cases": _cases(now, name),
        "rules": rules,
        "actions": [each for each in now.pack.book.actions if any(each in atoms(rule.formula) for rule in rules)],
        "noted": now.noted.get(name, Noted()),
        "comments": comments_of(root, name),
        "digest": f"{sides.sentence}{sides.check}",
    }


def _said_of(line: JsonRecord, row: FindingRow, name: str, criterion: Criterion) -> tuple[str, str]:
    """Return the verdict and reason of one policy for a call. The call may also have been flagged by other policies."""
    judged: list[JsonRecord] = line.get("policies") or []
    for each in judged:
        if each["id"] == name and row.policy != name:
            return str(each[criterion]), str(each["because"] or "") or row.because
    return row.verdict, row.because


def _cases(now: PackState, name: str) -> list[ShownCase]:
    found: list[ShownCase] = []
    for case, result in zip(cases_of(now.pack, case_names(now.pack, name)), now.results(name), strict=True):
        got, passed = (result.got, result.passed) if isinstance(result, CaseResult) else (str(result), None)
        found.append(ShownCase(str(case.note), case.wanted, got, passed, parts_of(case)))
    return found
