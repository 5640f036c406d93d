"""Tries an edited check on its cases and on past calls, and saves the check."""
# pyright: basic, reportMissingImports=false

import difflib
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import yaml
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from bylaw.audit.redaction import Redaction
from bylaw.audit.request import Shelf, read_audited
from bylaw.console.app import Pages, changed, shown
from bylaw.console.door import Asked, Refused
from bylaw.console.pack_state import PackState, PackStates, case_names
from bylaw.console.records import Written, alone, put
from bylaw.console.service_log import ServiceLog
from bylaw.console.view import View
from bylaw.engine.session import Session
from bylaw.errors import BylawError, PackError, UsageError
from bylaw.facts.world import World
from bylaw.pack import Pack, build_pack
from bylaw.policy.folder import PackFolder
from bylaw.policy.yaml import read_yaml
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.check import check_lines, function_lines, signed_lines
from bylaw.shield.history import read_decision
from bylaw.text.python import parse_python
from bylaw.trace import Identities, Trajectory, read
from bylaw.trace.event import Call
from bylaw.trace.source import log_file

LONGEST = 20_000
"""The maximum length of a check, in characters."""
RULES = "rules.yaml"
_DEF = re.compile(r"^def (\w+)", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z(][\w ()<>=.'-]*[\w)']")
_ELSEWHERE = "the check belongs to a pack that this one extends"


class Draft(Struct, frozen=True):
    """The text of a check, as it is in its file."""

    policy: str
    kind: Literal["guard", "function", "rule"]
    name: str
    """The name of the rule, of the guard's function, or of a function that the guard calls."""
    file: str
    text: str

    @property
    def digest(self) -> str:
        """A digest of the saved text, which shows whether somebody else has changed it."""
        return hashlib.blake2b(f"{self.file}\0{self.text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def drafts_of(now: PackState, policy: str) -> list[Draft]:
    """Return the editable code of a policy.

    It is the guard and the functions that the guard calls, or each of the policy's rules.
    """
    pack = now.pack
    guard = pack.guards.get(policy)
    if guard is None:
        return [Draft(policy, "rule", rule.name, RULES, rule.text) for rule in pack.book.rules if rule.policy == policy]
    own = Draft(policy, "guard", guard.name, guard.file, "\n".join(check_lines(pack, pack.policies[policy])))
    called = ((file, "\n".join(function_lines(pack, file, line))) for file, line in guard.functions)
    return [own, *(Draft(policy, "function", _DEF.findall(text)[0], file, text) for file, text in called)]


def policies_of(now: PackState, draft: Draft) -> list[str]:
    """Return the policies whose checks use the edited text, starting with the edited policy.

    Several policies may use one function.
    """
    sharing = (name for name in now.pack.guards if draft.kind == "function" and name != draft.policy)
    same = (draft.name, draft.file, draft.text)
    others = [n for n in sharing if any((each.name, each.file, each.text) == same for each in drafts_of(now, n)[1:])]
    return [draft.policy, *others]


def tried_pack(now: PackState, draft: Draft, text: str) -> Pack:
    """Return the pack with the edited check. Raise PackError if the edited text is invalid."""
    if len(text) > LONGEST:
        raise UsageError(f"the check has more than {LONGEST:,} characters")
    folder = now.folder
    if draft.kind == "rule":
        source = folder.parts["rules"]
        rules = source.with_data(_with_formula(source.data, draft.name, text))
        folder = _copied(folder, parts={**folder.parts, "rules": rules})
    else:
        guards = {**folder.guards, draft.file: spliced(folder.guards[draft.file], draft, text)}
        folder = _copied(folder, guards=guards)
    try:
        return build_pack(folder)
    except (RecursionError, MemoryError):
        raise UsageError("the check is too deeply nested") from None


def _copied(folder: PackFolder, **changes: Any) -> PackFolder:
    """Copy the pack's folder, so that a trial does not change it."""
    return replace(folder, faults=list(folder.faults), **changes)


def _with_formula(data: dict[str, Any], name: str, text: str) -> dict[str, Any]:
    """Return the data of `rules.yaml`, with the formula of one rule replaced."""
    rules = cast("list[dict[str, Any]]", data.get("rules") or [])
    return {**data, "rules": [body | {"formula": text} if body.get("id") == name else body for body in rules]}


def spliced(whole: str, draft: Draft, text: str) -> str:
    """Return a file's text with the edited function in place of the saved function."""
    lines = whole.split("\n")
    starts = [number for number, line in enumerate(lines) if re.match(rf"def {re.escape(draft.name)}\b", line)]
    old = draft.text.split("\n")
    if len(starts) != 1 or lines[starts[0] : starts[0] + len(old)] != old:
        raise UsageError("the check changed after you loaded the page", hint="reload the page")
    return "\n".join([*lines[: starts[0]], *text.rstrip().split("\n"), *lines[starts[0] + len(old) :]])


def file_with(root: Path, draft: Draft, text: str) -> tuple[str, str]:
    """Return the file's text before and after the edit. Raise UsageError if the file is not in the pack's folder."""
    path = root / draft.file
    if not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
        raise UsageError(_ELSEWHERE, hint="edit it there")
    whole = path.read_text(encoding="utf-8")
    return whole, _with_rule(whole, draft.name, text) if draft.kind == "rule" else spliced(whole, draft, text)


def _with_rule(whole: str, name: str, text: str) -> str:
    """Return the text of `rules.yaml`, with the formula of one rule replaced.

    Comments and other rules do not change.
    """
    compose = cast("Callable[..., Any]", yaml.compose)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    listed = dict(_pairs(compose(whole, Loader=yaml.SafeLoader))).get("rules")
    rules = [dict(_pairs(item)) for item in (listed.value if listed is not None else ())]
    node = next((each["formula"] for each in rules if "formula" in each and each["id"].value == name), None)
    if node is None:
        raise UsageError(f"rule `{name}` is not in {RULES}", hint="edit the file that contains it")
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    formula = " ".join(text.split())
    written = formula if _PLAIN.fullmatch(formula) else json.dumps(formula, ensure_ascii=False)
    changed = whole[:start] + written + ("\n" if whole[start:end].endswith("\n") else "") + whole[end:]
    before, after = (read_yaml(each, file=RULES).data for each in (whole, changed))
    if after != _with_formula(before, name, formula):
        raise UsageError(f"the formula cannot be replaced in {RULES}", hint="edit the file")
    return changed


def _pairs(node: Any) -> list[tuple[str, Any]]:
    return [(str(key.value), value) for key, value in node.value]


def patch(root: Path, draft: Draft, text: str) -> str:
    """Return the change as a patch for `git apply`, or an empty string if nothing changed."""
    before, after = (each.splitlines(keepends=True) for each in file_with(root, draft, text))
    made = difflib.unified_diff(before, after, f"a/{draft.file}", f"b/{draft.file}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)


def save(root: Path, draft: Draft, text: str) -> str:
    """Write the check to its file, and return the change as a patch."""
    path = root / draft.file
    with alone(path):
        made, (_, after) = patch(root, draft, text), file_with(root, draft, text)
        if draft.kind != "rule":
            parse_python(after)
        put(path, after)
    return made


CONVERSATIONS = 300
"""The maximum number of past conversations to use in a trial."""
SECONDS = 2.0
"""The time limit for a trial, in seconds. The page shows how many conversations were tried in this time."""
KEPT = 8
"""The number of entries to cache. An entry is a list of conversations or the saved checks' verdicts on them."""
T = TypeVar("T")


Past = tuple[Trajectory, World | None]
"""A past conversation that calls one of the tools, and its ground-truth database."""


class CheckVerdict(Struct, frozen=True):
    """A check's verdict on a call or message."""

    tool: str
    verdict: str
    because: str


CheckVerdicts = dict[tuple[str, int, str], CheckVerdict]
"""The verdicts, keyed by conversation, step and policy."""


class Change(Struct, frozen=True):
    conversation: str
    step: int
    tool: str
    before: str
    after: str
    because: str
    is_past: bool = False
    """Whether the reason comes from the saved check, because the edited check gives no reason."""


class Backtest(Struct, frozen=True):
    """The changes that an edit makes to past verdicts."""

    tried: int
    of: int
    judged: int
    changes: list[Change]

    @property
    def kinds(self) -> list[tuple[tuple[str, str], int]]:
        """Return the number of changes for each pair of old and new verdict, most frequent first."""
        return Counter((each.before, each.after) for each in self.changes).most_common()


class Backtests:
    """Compares edited checks with saved checks on past conversations.

    Caches the conversations and the saved checks' verdicts.
    """

    def __init__(self, read: Callable[[str, tuple[str, ...]], list[Past]], *, keeps: float = float("inf")) -> None:
        """`read` returns a tenant's past conversations that call one of the given tools, or any tool if none is given.

        The conversations are cached for `keeps` seconds.
        """
        self._read = read
        self._keeps = keeps
        self._turn = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, Any]] = {}

    def run(self, saved: Pack, edited: Pack, policies: Sequence[str], whose: str = "") -> Backtest:
        """Compare the saved and the edited pack's verdicts of these policies on a tenant's past conversations."""
        bound = [saved.policies[name].tools for name in policies]
        tools = tuple(dict.fromkeys(tool for each in bound for tool in each)) if all(bound) else ()
        # Run only one trial at a time, because the service needs the processor for its decisions.
        with self._turn:
            read_at, past = self._once(("past", whose, *tools), lambda: self._read(whose, tools))
            key = ("saved", saved.digest, whose, str(read_at), *policies)
            before: CheckVerdicts = self._once(key, lambda: _verdicts_of(saved, policies, past)[1])[1]
            tried, after = _verdicts_of(edited, policies, past, until=time.monotonic() + SECONDS)
        names = {each.id for each, _ in past[:tried]}
        changes = list(_changes({k: v for k, v in before.items() if k[0] in names}, after))
        return Backtest(tried, len(past), len(after), changes)

    def _once(self, key: tuple[str, ...], make: Callable[[], T]) -> tuple[float, T]:
        now = time.monotonic()
        if key not in self._kept or now - self._kept[key][0] > self._keeps:
            self._kept[key] = (now, make())
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[key]


def _changes(before: CheckVerdicts, after: CheckVerdicts) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        then, now = before.get(key), after.get(key)
        was, is_now = (each.verdict if each is not None else "compliant" for each in (then, now))
        if was != is_now:
            # A permit has no reason, so show the saved check's reason.
            reasons = [each.because if each is not None else "" for each in (now, then)]
            because = reasons[0] or reasons[1]
            tool = cast("CheckVerdict", now or then).tool
            yield Change(key[0], key[1], tool, was, is_now, because, is_past=bool(because and not reasons[0]))


def _verdicts_of(
    pack: Pack, policies: Sequence[str], past: list[Past], *, until: float = float("inf")
) -> tuple[int, CheckVerdicts]:
    """Return how many conversations were tried within the time limit, and the policies' verdicts on these
    conversations.
    """
    own, redaction = _with_only(pack, policies), Redaction(pack)
    found: CheckVerdicts = {}
    for tried, (trajectory, world) in enumerate(past):
        if time.monotonic() > until:
            return tried, found
        session = Session(own, world=redaction.watch(world), mode="hindsight", context=trajectory.context)
        calls = ((step, call) for step, call in enumerate(trajectory.events) if type(call) is Call)
        for _ in session.follow(trajectory.events, (s for s, c in calls if c.tool in own.by_tool or own.book.rules)):
            pass
        settled = session.settle()
        said: dict[tuple[str, int, str], CheckVerdict] = {}
        for call in settled:
            tool, step = call.made.call.tool, call.made.step
            for each in call.policies:
                verdict = getattr(each, pack.criterion)
                said[trajectory.id, step, each.policy.id] = CheckVerdict(tool, verdict, each.because)
            for rule in call.open_rules:
                said[trajectory.id, step, rule.rule.policy] = CheckVerdict(tool, "inconclusive", rule.because)
        for broken in session.findings(ended=True):
            act = trajectory.events[broken.step] if broken.step < len(trajectory.events) else None
            tool = act.tool if isinstance(act, Call) else "a message"
            said[trajectory.id, broken.step, broken.rule.policy] = CheckVerdict(tool, "broken", broken.because)
        if redaction and any(each.because for each in said.values()):
            cover = redaction.cover(trajectory.events, session.judged_world, settled)
            said = {key: replace(each, because=cover.scrubbed(each.because)) for key, each in said.items()}
        found |= said
    return len(past), found


def _with_only(pack: Pack, policies: Sequence[str]) -> Pack:
    """Return the pack with the checks of these policies only. This is safe because checks are independent."""
    bound = {tool: tuple(pair for pair in pairs if pair[0].id in policies) for tool, pairs in pack.by_tool.items()}
    rules = tuple(rule for rule in pack.book.rules if rule.policy in policies)
    book = replace(pack.book, rules=rules)
    return replace(pack, by_tool={tool: pairs for tool, pairs in bound.items() if pairs}, book=book)


LISTED = 50
"""The maximum number of calls to list on a page."""
LOOKED_AT = 200_000
"""The number of logged conversations to search for relevant calls."""
DECISIONS = 5_000
"""The number of recent decisions to search for conversations."""
KEEPS = 60.0
"""How long to cache a service's past conversations, in seconds."""


class Workbench(Struct, frozen=True):
    """A pack to edit, with past conversations on which to try the edits."""

    root: Path | None
    own_root: Path | None
    """The pack's folder if it is writable, otherwise None."""
    pack_now: Callable[[], PackState]
    backtests: Backtests
    layout: dict[str, Any]


@lru_cache(2)
def audit_bench(view: View) -> Workbench:
    layout = {"layout": "view.html", "view": view}
    return Workbench(view.root, view.own_root, view.pack_now, Backtests(partial(_past_of_audit, view)), layout)


def service_bench(service: ServiceLog) -> Workbench:
    """Return a service's pack and its recent conversations.

    The pages cannot edit this pack. The files in its folder may be newer than the loaded pack.
    """
    root, layout = service.pack.root, {"layout": "service.html", "pack": service.pack}
    backtests = Backtests(partial(_past_of_service, service), keeps=KEEPS)
    return Workbench(root, None, PackStates(root).now, backtests, layout)


def _past_of_audit(view: View, _: str, tools: Sequence[str]) -> list[Past]:
    if view.is_redacted:
        raise UsageError("The logs of a redacted audit are not available.")
    audited = read_audited(view.out)
    if audited is None:
        raise UsageError("the audit does not record where its logs are")
    found, identities = list[Past](), Identities()
    try:
        world = Path(audited.world) if audited.world else None
        shelf = Shelf(audited.pack, world=world, document=Path(audited.document) if audited.document else None)
        logged = ((name, each) for name in audited.logs for each in read(name, agent=audited.agent))
        for name, each in islice(logged, LOOKED_AT):
            if isinstance(each, Trajectory) and _calls_any(own := identities.own(each), tools):
                found.append((own, shelf.world_for(shelf.pack_for(own), log_file(name))[1]))
            if len(found) >= CONVERSATIONS:
                break
    except (BylawError, OSError) as error:
        raise UsageError(f"the logs of this audit can no longer be read: {error}") from None
    return found


def _past_of_service(service: ServiceLog, tenant: str, tools: Sequence[str]) -> list[Past]:
    """Return a tenant's latest conversations. There is no ground-truth database for a service."""
    names: dict[str, None] = {}
    for entry in service.log.latest(tenant, "decision", limit=DECISIONS):
        is_ours = entry.body is not None and (not tools or read_decision(entry.body).tool in tools)
        if entry.conversation and is_ours:
            names[entry.conversation] = None
    histories = ((name, history) for name in names if (history := service.history(tenant, name)) is not None)
    return [(history.trajectory(name), None) for name, history in islice(histories, CONVERSATIONS)]


def _calls_any(trajectory: Trajectory, tools: Sequence[str]) -> bool:
    return any(type(event) is Call and (not tools or event.tool in tools) for event in trajectory.events)


class Tried(Struct, frozen=True):
    """The result of trying an edited check."""

    faults: list[str] = []
    cases: list[CaseResult] = []
    """The cases, with failing cases first."""
    past: Backtest | None = None
    why_not: str = ""
    """Why the edited check was not tried on past calls."""

    @property
    def failing(self) -> int:
        return sum(not case.passed for case in self.cases)


class TryPages(Pages):
    section = "policy"

    def __init__(self, find: Callable[[], Workbench]) -> None:
        self._find = find

    @property
    def layout(self) -> dict[str, Any]:
        return self._find().layout

    @shown("/try/{id}")
    def begin(self, asked: Asked) -> Response:
        """Show the saved check before any edit."""
        now, draft = self._draft(asked)
        return self._shown(asked, now, draft, draft.text)

    @changed("/try/{id}")
    def run(self, asked: Asked) -> Response:
        asked.needs_noting()
        return self._shown(asked, *self._draft(asked), asked.form.get("text", ""))

    @changed("/try/{id}/save")
    def save(self, asked: Asked) -> Response:
        by = asked.signed()
        now, draft = self._draft(asked)
        text, root = asked.form.get("text", ""), self._find().own_root
        if root is None:
            raise UsageError("the pack cannot be changed from this page", hint="copy the patch")
        if asked.form.get("digest") != draft.digest:
            raise UsageError("the check changed after you loaded the page", hint="reload the page")
        tried = self._tried(asked, now, draft, text)
        if tried.faults:
            raise UsageError(f"nothing was written: {tried.faults[0]}")
        if tried.failing and asked.form.get("despite") != str(tried.failing):
            cases = "1 case fails" if tried.failing == 1 else f"{tried.failing} cases fail"
            hint = "correct the check, or tick the box next to the cases"
            raise UsageError(f"nothing was written: {cases}", hint=hint)
        made = save(root, draft, text)
        told = f"saved by {by}. The signature on the policy lapses." if made else "no changes."
        now, draft = self._draft(asked)
        return self._shown(asked, now, draft, draft.text, Written(root / draft.file, made, told))

    def _draft(self, asked: Asked) -> tuple[PackState, Draft]:
        now, name = self._find().pack_now(), asked.path["id"]
        if name not in now.pack.policies:
            raise Refused("the pack has no such policy", status=404)
        drafts = drafts_of(now, name)
        rule = asked.form.get("rule") or asked.query.get("rule", "")
        found = [draft for draft in drafts if draft.name == rule] or drafts
        if not found:
            raise Refused("this policy has no check to edit", status=404)
        return now, found[0]

    def _tried(self, asked: Asked, now: PackState, draft: Draft, text: str) -> Tried:
        try:
            edited = now.pack if text == draft.text else tried_pack(now, draft, text)
        except PackError as error:
            return Tried(faults=[str(fault) for fault in error.faults][:10] or [str(error)])
        except BylawError as error:
            return Tried(faults=[str(error)])
        policies = policies_of(now, draft)
        names = {name for policy in policies for name in case_names(now.pack, policy)}
        ran = [each for each in run_cases(edited, of=names) if isinstance(each, CaseResult)]
        cases = sorted(ran, key=lambda case: case.passed)
        if text == draft.text:
            return Tried(cases=cases)
        try:
            past = self._find().backtests.run(now.pack, edited, policies, asked.visitor.tenant)
        except UsageError as error:
            return Tried(cases=cases, why_not=error.message)
        return Tried(cases=cases, past=past)

    def _shown(self, asked: Asked, now: PackState, draft: Draft, text: str, written: Written | None = None) -> Response:
        bench, tried, policy = self._find(), self._tried(asked, now, draft, text), now.pack.policies[draft.policy]
        assert bench.root is not None
        checked = signed_lines(now.pack, policy)[len(check_lines(now.pack, policy)) :]
        return self._page(
            "try.html",
            asked,
            draft=draft,
            text=text,
            tried=tried,
            patch=_patch(bench.root, draft, text) if text != draft.text and not tried.faults else "",
            others=[each for each in drafts_of(now, draft.policy) if each.name != draft.name],
            sentence=" ".join(cite.text for cite in policy.citations if cite.text) or policy.definition,
            called="\n".join(checked).strip("\n") if draft.kind == "guard" else "",
            shared=policies_of(now, draft)[1:],
            can_write=bench.own_root is not None,
            listed=LISTED,
            written=written,
        )


def _patch(root: Path, draft: Draft, text: str) -> str:
    try:
        return patch(root, draft, text)
    except BylawError as error:
        return f"# {error}\n"
