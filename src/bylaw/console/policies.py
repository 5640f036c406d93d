"""The policy: its document with what holds each sentence, and each check to read, sign, reject or comment on."""
# pyright: basic, reportMissingImports=false

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from bylaw.audit.store import JsonRecord
from bylaw.console.app import changed, shown
from bylaw.console.cases import cases_of, parts_of
from bylaw.console.comment import Comment, comment_on, comments_of
from bylaw.console.door import Refused
from bylaw.console.index import Wanted
from bylaw.console.index.query import FindingRow
from bylaw.console.margin import margins_of
from bylaw.console.pack_state import PackState
from bylaw.console.record_file import Written
from bylaw.console.shown import sentence_of
from bylaw.console.signing import sign
from bylaw.console.view import AuditPages
from bylaw.console.visitor import Asked
from bylaw.errors import UsageError
from bylaw.pack import Criterion
from bylaw.pack.review import REVIEW, Sides, read_signatures, standings
from bylaw.review.case import CaseResult
from bylaw.review.noted import Noted
from bylaw.review.reading import signed_lines
from bylaw.rule.drawing import draw_automaton, draw_circuit
from bylaw.rule.formula import atoms
from bylaw.rule.structure import circuits

EXCERPT = 5
"""Flagged calls that a policy's page shows."""
NEEDS = ("open", "lapsed", "rejected")
"""Standings that ask for a signature."""


class ShownCase(Struct, frozen=True):
    """A case with everything that decides it."""

    note: str
    want: str
    got: str
    passed: bool | None
    parts: tuple[tuple[str, str], ...]


class PolicyPages(AuditPages):
    """The pack that judged an audit, to be read and signed."""

    section = "policy"

    @shown("/policy")
    def document(self, asked: Asked) -> Response:
        """The document as prose; without one, the policies in their order."""
        counts = self._counts()
        if self._view.root is None:
            return self._document(asked, groups=[], states={}, counts=counts, rest=self._stated())
        now = self._now()
        states = standings(self._view.root, now.sides)
        groups, cited = margins_of(now.covered, states)
        rest = [(name, policy) for name, policy in self._stated() if name not in cited]
        return self._document(asked, groups=groups, states=states, counts=counts, rest=rest)

    def _document(self, asked: Asked, **values: Any) -> Response:
        return self._page("policy.html", asked, sentence=lambda name: sentence_of(self._view, name, 1000), **values)

    @shown("/policy/{id}")
    def one(self, asked: Asked) -> Response:
        return self._shown(asked, asked.request.path_params["id"])

    @shown("/policy/{id}/automaton.svg")
    def automaton(self, asked: Asked) -> Response:
        """A rule as a picture."""
        rules = [rule for rule in self._now().pack.book.rules if rule.policy == asked.request.path_params["id"]]
        name = asked.request.query_params.get("rule", "")
        found = next((rule for rule in rules if rule.name == name), None)
        if found is None:
            raise Refused("there is no such rule", status=404)
        return Response(draw_automaton(found), media_type="image/svg+xml")

    @shown("/policy/{id}/circuit.svg")
    def circuit(self, asked: Asked) -> Response:
        """The rules that bear on an action, with their weights, as a picture."""
        book, name = self._now().pack.book, asked.request.query_params.get("action", "")
        if name not in book.actions:
            raise Refused("there is no such action", status=404)
        return Response(draw_circuit(circuits(book.every, (name,), eps=book.eps)[name]), media_type="image/svg+xml")

    @changed("/policy/{id}/sign")
    def sign(self, asked: Asked) -> Response:
        """Accept or reject a policy as the page showed it."""
        name, root, sides = self._to_write(asked, "review")
        word, note = asked.form.get("word", ""), " ".join(asked.form.get("note", "").split())[:1000]
        if word not in ("accepted", "rejected"):
            raise UsageError("say whether you accept or reject it")
        if word == "rejected" and not note:
            raise UsageError("say what is wrong with it: the compiler reads your note")
        if asked.form.get("digest") != f"{sides.sentence}{sides.check}":
            raise UsageError("the policy or its check has changed since you loaded the page", hint="read it again")
        sign(root, {name: sides}, {name: word}, asked.signed(), note)
        return self._shown(asked, name, Written(root / REVIEW, f"{name}: {word} by {asked.signed()}", note))

    @changed("/policy/{id}/comment")
    def comment(self, asked: Asked) -> Response:
        """Leave a note that decides nothing."""
        name, root, sides = self._to_write(asked, "comment")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        given = Comment(name, asked.signed(), now, asked.form.get("text", ""), sides.sentence, sides.check)
        return self._shown(asked, name, comment_on(root, given))

    def _to_write(self, asked: Asked, what: str) -> tuple[str, Path, Sides]:
        """The policy that somebody writes of, the pack's folder, and the policy's sides as they are now."""
        name, root = asked.request.path_params["id"], self._view.own_root
        if root is None:
            hint = "copy the folder, and give it with --pack"
            raise UsageError(f"a {what} written to an installed package would be lost", hint=hint)
        sides = self._now().sides.get(name)
        if sides is None:
            raise Refused("the pack has no such policy", status=404)
        return name, root, sides

    def _shown(self, asked: Asked, name: str, written: Written | None = None) -> Response:
        index = self._view.standings().index
        rows = index.findings(Wanted(policy=name, state="all"), limit=EXCERPT)
        found = [(row, *_said_of(index.line(row), row, name, self._view.criterion)) for row in rows]
        stated: JsonRecord = self._view.policies.get(name) or {}
        judged: JsonRecord = (self._view.summary.get("by_policy") or {}).get(name) or {}
        own: dict[str, Any] = {"check": None, "policy": None, "state": "", "signature": None, "cases": []}
        own |= {"rules": [], "actions": [], "calls": 0, "noted": Noted(), "comments": [], "digest": "", "needs": False}
        if self._view.root is not None:
            own |= self._of_pack(name, self._view.root)
        if own["policy"] is None and not stated:
            raise Refused("there is no such policy", status=404)
        values = {"name": name, "stated": stated, "judged": judged, "found": found, "counts": self._counts().get(name)}
        agents: list[JsonRecord] = self._view.summary.get("agents") or []
        values |= {"conversations": sum(each.get("trajectories", 0) for each in agents)}
        values |= {"verdicts": judged.get(self._view.criterion) or {}, "can_write": self._view.own_root is not None}
        return self._page("policy_one.html", asked, written=written, **values, **own)

    def _of_pack(self, name: str, root: Path) -> dict[str, Any]:
        now = self._now()
        policy = now.pack.policies.get(name)
        if policy is None:
            return {}
        by_tool: JsonRecord = self._view.summary.get("by_tool") or {}
        sides, state = now.sides[name], standings(root, now.sides)[name]
        return {
            "policy": policy,
            "check": signed_lines(now.pack, policy),
            "state": state,
            "needs": state in NEEDS or (state == "unreviewed" and now.is_compiled),
            "signature": read_signatures(root).get(name),
            "cases": _cases(now, name),
            "rules": (rules := [rule for rule in now.pack.book.rules if rule.policy == name]),
            "actions": [each for each in now.pack.book.actions if any(each in atoms(rule.formula) for rule in rules)],
            "calls": sum(by_tool.get(tool, {}).get("calls", 0) for tool in policy.tools),
            "noted": now.noted.get(name, Noted()),
            "comments": comments_of(root, name),
            "digest": f"{sides.sentence}{sides.check}",
        }

    def _now(self) -> PackState:
        if self._view.root is None:
            raise Refused("the pack of this audit is not at hand: give it with --pack", status=404)
        return self._view.pack_now()

    def _counts(self) -> dict[str, dict[str, int]]:
        return self._view.standings().index.by_policy()

    def _stated(self) -> list[tuple[str, JsonRecord]]:
        return list(self._view.policies.items())


def _said_of(line: JsonRecord, row: FindingRow, name: str, criterion: Criterion) -> tuple[str, str]:
    """What a policy says of a call that others may have flagged, too: its verdict, and why."""
    judged: list[JsonRecord] = line.get("policies") or []
    for each in judged:
        if each["id"] == name and row.policy != name:
            return str(each[criterion]), str(each["because"] or "") or row.because
    return row.verdict, row.because


def _cases(now: PackState, name: str) -> list[ShownCase]:
    found: list[ShownCase] = []
    for case, result in zip(cases_of(now.pack, now.names_of(name)), now.results(name), strict=True):
        got, passed = (result.got, result.passed) if isinstance(result, CaseResult) else (str(result), None)
        found.append(ShownCase(str(case.note), case.wanted, got, passed, parts_of(case)))
    return found
