"""Tries an edited check on its cases and on past calls, and saves it."""
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
from bylaw.audit.request import Audited, Shelf, read_audited
from bylaw.console.app import Pages, Prepared, Preparing, changed, shown
from bylaw.console.door import Asked, Refused
from bylaw.console.pack_state import PackState, PackStates, case_names
from bylaw.console.records import Written, alone, put
from bylaw.console.service_log import ServiceLog
from bylaw.console.view import View
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.errors import BylawError, PackError, UsageError
from bylaw.facts.world import World
from bylaw.pack import Criterion, Pack, build_pack
from bylaw.policy.folder import PackFolder
from bylaw.policy.statement import Policy
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


class Draft(Struct, frozen=True):
    """A check, as saved in its file."""

    policy: str
    kind: Literal["guard", "function", "rule"]
    name: str
    """The name of the rule, of the guard's function, or of a function called by the guard."""
    file: str
    text: str

    @property
    def digest(self) -> str:
        """Identifies the saved text, so that changes by other people are detected."""
        return hashlib.blake2b(f"{self.file}\0{self.text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def drafts_of(now: PackState, policy: str) -> list[Draft]:
    """Return the editable code of a policy: its guard and the functions it calls, or each of its rules."""
    pack = now.pack
    guard = pack.guards.get(policy)
    if guard is not None:
        own = Draft(policy, "guard", guard.name, guard.file, "\n".join(check_lines(pack, pack.policies[policy])))
        called = ((file, "\n".join(function_lines(pack, file, line))) for file, line in guard.functions)
        return [own, *(Draft(policy, "function", _DEF.findall(text)[0], file, text) for file, text in called)]
    return [Draft(policy, "rule", rule.name, RULES, rule.text) for rule in pack.book.rules if rule.policy == policy]


def policies_of(now: PackState, draft: Draft) -> list[str]:
    """Return the policies whose checks use the edited text. The edited policy comes first.

    Several policies may call the same function.
    """
    if draft.kind != "function":
        return [draft.policy]
    found = now.pack.guards[draft.policy].functions
    line = next(each for each in found if _starts(now.pack, each, draft))
    others = [name for name, guard in now.pack.guards.items() if line in guard.functions and name != draft.policy]
    return [draft.policy, *others]


def _starts(pack: Pack, place: tuple[str, int], draft: Draft) -> bool:
    return place[0] == draft.file and "\n".join(function_lines(pack, *place)) == draft.text


def tried_pack(now: PackState, draft: Draft, text: str) -> Pack:
    """Return the pack with the edited check. Raise PackError if the text is faulty."""
    if len(text) > LONGEST:
        raise UsageError(f"the check has more than {LONGEST:,} characters")
    folder = now.folder
    if draft.kind == "rule":
        folder = _with_formula(folder, draft, text)
    else:
        changed = spliced(folder.guards[draft.file], draft, text)
        folder = _copied(folder, guards={**folder.guards, draft.file: changed})
    try:
        return build_pack(folder)
    except (RecursionError, MemoryError):
        raise UsageError("the check is too deeply nested") from None


def spliced(whole: str, draft: Draft, text: str) -> str:
    """Replace a guard's text in its file."""
    lines = whole.split("\n")
    starts = [number for number, line in enumerate(lines) if re.match(rf"def {re.escape(draft.name)}\b", line)]
    old = draft.text.split("\n")
    if len(starts) != 1 or lines[starts[0] : starts[0] + len(old)] != old:
        raise UsageError("the check changed after you loaded the page", hint="load it again")
    return "\n".join([*lines[: starts[0]], *text.rstrip().split("\n"), *lines[starts[0] + len(old) :]])


def _with_formula(folder: PackFolder, draft: Draft, text: str) -> PackFolder:
    source = folder.parts["rules"]
    rules = [
        body | {"formula": text} if _rule_name(body) == draft.name else body for body in _rules(source.data)
    ]  # fmt: skip
    return _copied(folder, parts={**folder.parts, "rules": source.with_data({**source.data, "rules": rules})})


def _copied(folder: PackFolder, **changes: Any) -> PackFolder:
    """Copy the folder, so that a trial has no side effects."""
    return replace(folder, faults=list(folder.faults), **changes)


def _rules(data: dict[str, Any]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", data.get("rules") or [])


def _rule_name(body: Any) -> str:
    return str(cast("dict[str, Any]", body).get("id", "")) if isinstance(body, dict) else ""


def file_with(root: Path, draft: Draft, text: str) -> tuple[str, str]:
    """Return the file's text before and after the edit. Raise UsageError if the file is outside the pack's folder."""
    path = root / draft.file
    if not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
        raise UsageError("the check belongs to a pack that this one extends", hint="edit it there")
    whole = path.read_text(encoding="utf-8")
    return whole, _with_rule(whole, draft, text) if draft.kind == "rule" else spliced(whole, draft, text)


def _with_rule(whole: str, draft: Draft, text: str) -> str:
    place = _formula_place(whole, draft.name)
    if place is None:
        raise UsageError(f"rule `{draft.name}` is not in {RULES}", hint="edit the file that contains it")
    start, end, is_last_line = place
    one_line = " ".join(text.split())
    written = one_line if _PLAIN.fullmatch(one_line) else json.dumps(one_line, ensure_ascii=False)
    changed = whole[:start] + written + ("\n" if is_last_line else "") + whole[end:]
    before, after = (read_yaml(each, file=RULES).data for each in (whole, changed))
    wanted = [body | {"formula": one_line} if _rule_name(body) == draft.name else body for body in _rules(before)]
    if _rules(after) != wanted or {**after, "rules": None} != {**before, "rules": None}:
        raise UsageError(f"the formula cannot be replaced in {RULES}", hint="edit the file")
    return changed


def _formula_place(whole: str, name: str) -> tuple[int, int, bool] | None:
    """Return the position of a rule's formula in the file, and whether it ends with a line break."""
    compose = cast("Callable[..., Any]", yaml.compose)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    for key, listed in _pairs(compose(whole, Loader=yaml.SafeLoader)):
        items: list[Any] = listed.value if key == "rules" else []
        for fields in (dict(_pairs(item)) for item in items):
            if "formula" in fields and fields["id"].value == name:
                node = fields["formula"]
                start, end = int(node.start_mark.index), int(node.end_mark.index)
                return start, end, whole[start:end].endswith("\n")
    return None


def _pairs(node: Any) -> list[tuple[str, Any]]:
    return [(str(key.value), value) for key, value in node.value]


def patch(root: Path, draft: Draft, text: str) -> str:
    """Return the change as a patch for `git apply`. If nothing changed, return an empty string."""
    before, after = file_with(root, draft, text)
    return _diff(before, after, draft.file)


def _diff(before: str, after: str, name: str) -> str:
    lines = [each.splitlines(keepends=True) for each in (before, after)]
    made = difflib.unified_diff(lines[0], lines[1], f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)


def save(root: Path, draft: Draft, text: str) -> str:
    """Write the check to its file. Return the change as a patch."""
    path = root / draft.file
    with alone(path):
        before, after = file_with(root, draft, text)
        if draft.kind != "rule":
            parse_python(after)
        put(path, after)
    return _diff(before, after, draft.file)


def faults_of(error: Exception) -> list[str]:
    if isinstance(error, PackError) and error.faults:
        return [str(fault) for fault in error.faults][:10]
    return [str(error)]


CONVERSATIONS = 300
"""The maximum number of past conversations in a trial."""
SECONDS = 2.0
"""The time limit for a trial, in seconds. The page shows how many conversations were tried."""
KEPT = 8
"""The number of conversations and results to cache."""
T = TypeVar("T")


Past = tuple[Trajectory, World | None]
"""A conversation and its world. At least one of its calls is subject to the policy."""


class CheckVerdict(Struct, frozen=True):
    """The verdict of a check on a call or message."""

    tool: str
    verdict: str
    because: str


CheckVerdicts = dict[tuple[str, int], CheckVerdict]
"""Verdicts by conversation and step. Calls that break no rule are left out."""


class Change(Struct, frozen=True):
    conversation: str
    step: int
    tool: str
    before: str
    after: str
    because: str
    is_past: bool = False
    """Whether the reason is from the saved check, because the edited check has none."""


class Backtest(Struct, frozen=True):
    """The effect of a change on past verdicts."""

    tried: int
    of: int
    judged: int
    changes: list[Change]

    @property
    def kinds(self) -> list[tuple[tuple[str, str], int]]:
        """Count the changes by old and new verdict. The most frequent come first."""
        return Counter((each.before, each.after) for each in self.changes).most_common()


def merged(found: Sequence[Backtest]) -> Backtest:
    """Merge the effects of a change to several policies."""
    changes = [change for each in found for change in each.changes]
    least, judged = min(found, key=lambda each: each.tried), sum(each.judged for each in found)
    return Backtest(least.tried, least.of, judged, changes)


class Backtests:
    """Caches past conversations and the saved check's verdicts on them."""

    def __init__(self, read: Callable[[str, tuple[str, ...]], list[Past]], *, keeps: float = float("inf")) -> None:
        """`read` returns a tenant's past conversations with calls to the given tools. The cache keeps them for `keeps`
        seconds.
        """
        self._read = read
        self._keeps = keeps
        self._turn = threading.Lock()
        self._running = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, Any]] = {}

    def run(self, saved: Pack, edited: Pack, policy: str, whose: str = "") -> Backtest:
        """Compare the edited check with the saved check on a tenant's past conversations."""
        past, before = self._before(saved, policy, whose)
        # Run one trial at a time, because the service needs the processor for decisions.
        with self._running:
            tried, after = _verdicts_of(edited, policy, past, CONVERSATIONS, until=time.monotonic() + SECONDS)
        names = {each.id for each, _ in past[:tried]}
        changes = list(_changes({k: v for k, v in before.items() if k[0] in names}, after))
        return Backtest(tried, len(past), len(after), changes)

    def prepare(self, saved: Pack, policy: str, whose: str = "") -> None:
        """Start reading the past conversations. If an error occurs at once, raise it."""
        try:
            Prepared("", lambda: self._before(saved, policy, whose)).get()
        except Preparing:
            return

    def _before(self, saved: Pack, policy: str, whose: str) -> tuple[list[Past], CheckVerdicts]:
        tools = tuple(saved.policies[policy].tools)
        with self._turn:
            read_at, past = self._once(("past", whose, *tools), lambda: self._read(whose, tools))
            key = ("said", saved.digest, policy, whose, str(read_at))
            return past, self._once(key, lambda: _verdicts_of(saved, policy, past, len(past))[1])[1]

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
            told = now if now is not None else then
            assert told is not None
            # A permit has no reason. Use the saved check's reason.
            because = now.because if now is not None else ""
            before_it = then.because if then is not None and not because else ""
            yield Change(key[0], key[1], told.tool, was, is_now, because or before_it, is_past=bool(before_it))


def _verdicts_of(
    pack: Pack, policy: str, past: list[Past], most: int, *, until: float = float("inf")
) -> tuple[int, CheckVerdicts]:
    """Return the number of conversations tried within the time limit, and the check's verdicts on them."""
    own = _with_only(pack, policy)
    redaction = Redaction(pack)
    words: CheckVerdicts = {}
    tried = 0
    for trajectory, world in past[:most]:
        if time.monotonic() > until:
            break
        tried += 1
        session = Session(own, world=redaction.watch(world), mode="hindsight", context=trajectory.context)
        calls = ((step, call) for step, call in enumerate(trajectory.events) if type(call) is Call)
        bound = (step for step, call in calls if call.tool in own.by_tool or own.book.rules)
        for _ in session.follow(trajectory.events, bound):
            pass
        verdicts = session.settle()
        said = dict(_of_calls(verdicts, pack.criterion)) | dict(_of_rules(session, trajectory))
        if redaction and any(word.because for word in said.values()):
            cover = redaction.cover(trajectory.events, session.judged_world, verdicts)
            said = {step: replace(word, because=cover.scrubbed(word.because)) for step, word in said.items()}
        words.update({(trajectory.id, step): word for step, word in said.items()})
    return tried, words


def _of_calls(verdicts: list[CallVerdict], criterion: Criterion) -> Iterator[tuple[int, CheckVerdict]]:
    for verdict in verdicts:
        tool = verdict.made.call.tool
        for each in verdict.policies:
            yield verdict.made.step, CheckVerdict(tool, getattr(each, criterion), each.because)
        for rule in verdict.open_rules:
            yield verdict.made.step, CheckVerdict(tool, "inconclusive", rule.because)


def _of_rules(session: Session, trajectory: Trajectory) -> Iterator[tuple[int, CheckVerdict]]:
    for broken in session.findings(ended=True):
        made = trajectory.events[broken.step] if broken.step < len(trajectory.events) else None
        yield broken.step, CheckVerdict(made.tool if isinstance(made, Call) else "a message", "broken", broken.because)


def _with_only(pack: Pack, policy: str) -> Pack:
    """Return the pack with only this policy's check. Checks are independent."""
    bound = {tool: tuple(pair for pair in pairs if pair[0].id == policy) for tool, pairs in pack.by_tool.items()}
    rules = tuple(rule for rule in pack.book.rules if rule.policy == policy)
    book = replace(pack.book, rules=rules)
    return replace(pack, by_tool={tool: pairs for tool, pairs in bound.items() if pairs}, book=book)


LISTED = 50
"""The maximum number of calls on a page."""
LOOKED_AT = 200_000
"""How many logged conversations to search for relevant calls."""
DECISIONS = 5_000
"""How many recent decisions to search for conversations."""
KEEPS = 60.0
"""How long to cache a service's past conversations, in seconds."""


class Workbench(Struct, frozen=True):
    """A pack to edit, and past conversations to test it on."""

    root: Path | None
    own_root: Path | None
    """The pack's folder if it is writable. Otherwise None."""
    pack_now: Callable[[], PackState]
    backtests: Backtests
    layout: dict[str, Any]


@lru_cache(2)
def audit_bench(view: View) -> Workbench:
    layout = {"layout": "view.html", "view": view}
    return Workbench(view.root, view.own_root, view.pack_now, Backtests(partial(_past_of_audit, view)), layout)


def service_bench(service: ServiceLog) -> Workbench:
    """Return a service's pack and recent conversations.

    The pages cannot edit this pack. The files in its folder may be newer.
    """
    root, layout = service.pack.root, {"layout": "service.html", "pack": service.pack}
    return Workbench(
        root, None, PackStates(root).now, Backtests(partial(_past_of_service, service), keeps=KEEPS), layout
    )


def _past_of_audit(view: View, _: str, tools: Sequence[str]) -> list[Past]:
    if view.is_redacted:
        raise UsageError("The logs of a redacted audit are not available.")
    audited = read_audited(view.out)
    if audited is None:
        raise UsageError("the audit does not record where its logs are")
    try:
        world = Path(audited.world) if audited.world else None
        shelf = Shelf(audited.pack, world=world, document=Path(audited.document) if audited.document else None)
        return _gathered(audited, shelf, tools)
    except (BylawError, OSError) as error:
        raise UsageError(f"the logs of this audit can no longer be read: {error}") from None


def _gathered(audited: Audited, shelf: Shelf, tools: Sequence[str]) -> list[Past]:
    identities, found = Identities(), list[Past]()
    logged = ((name, each) for name in audited.logs for each in read(name, agent=audited.agent))
    for name, each in islice(logged, LOOKED_AT):
        if isinstance(each, Trajectory) and _calls_any(own := identities.own(each), tools):
            found.append((own, shelf.world_for(shelf.pack_for(own), log_file(name))[1]))
        if len(found) >= CONVERSATIONS:
            break
    return found


def _past_of_service(service: ServiceLog, tenant: str, tools: Sequence[str]) -> list[Past]:
    """Return a tenant's latest conversations. A service has no world."""
    names: dict[str, None] = {}
    for entry in service.log.latest(tenant, "decision", limit=DECISIONS):
        is_ours = entry.body is not None and (not tools or read_decision(entry.body).tool in tools)
        if entry.conversation and is_ours:
            names[entry.conversation] = None
    histories = ((name, history) for name in names if (history := service.history(tenant, name)) is not None)
    return [(history.trajectory(name), None) for name, history in islice(histories, CONVERSATIONS)]


def _calls_any(trajectory: Trajectory, tools: Sequence[str]) -> bool:
    calls = (event.tool for event in trajectory.events if type(event) is Call)
    return any(not tools or tool in tools for tool in calls)


class Tried(Struct, frozen=True):
    faults: list[str] = []
    cases: list[CaseResult] = []
    """The cases, with failing ones first."""
    past: Backtest | None = None
    why_not: str = ""
    """Why the text was not tried on past calls."""

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
        """Show the saved check."""
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
            raise UsageError("the check changed after you loaded the page", hint="load it again")
        tried = self._tried(asked, now, draft, text)
        if tried.faults:
            raise UsageError(f"nothing was written: {tried.faults[0]}")
        if tried.failing and asked.form.get("despite") != str(tried.failing):
            cases = "1 case fails" if tried.failing == 1 else f"{tried.failing} cases fail"
            raise UsageError(
                f"nothing was written: {cases}", hint="correct the check, or tick the box next to the cases"
            )
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
        except BylawError as error:
            return Tried(faults=faults_of(error))
        policies = policies_of(now, draft)
        names = {name for policy in policies for name in case_names(now.pack, policy)}
        ran = [each for each in run_cases(edited, of=names) if isinstance(each, CaseResult)]
        cases = sorted(ran, key=lambda case: case.passed)
        backtests, tenant = self._find().backtests, asked.visitor.tenant
        try:
            if text == draft.text:
                backtests.prepare(now.pack, draft.policy, tenant)
                return Tried(cases=cases)
            return Tried(cases=cases, past=merged([backtests.run(now.pack, edited, each, tenant) for each in policies]))
        except UsageError as error:
            return Tried(cases=cases, why_not=error.message)

    def _shown(self, asked: Asked, now: PackState, draft: Draft, text: str, written: Written | None = None) -> Response:
        tried, policy = self._tried(asked, now, draft, text), now.pack.policies[draft.policy]
        bench = self._find()
        assert bench.root is not None
        return self._page(
            "try.html",
            asked,
            draft=draft,
            text=text,
            tried=tried,
            patch=_patch(bench.root, draft, text) if text != draft.text and not tried.faults else "",
            others=[each for each in drafts_of(now, draft.policy) if each.name != draft.name],
            sentence=_sentence(policy),
            called=_called(now, policy) if draft.kind == "guard" else "",
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


def _called(now: PackState, policy: Policy) -> str:
    return "\n".join(signed_lines(now.pack, policy)[len(check_lines(now.pack, policy)) :]).strip("\n")


def _sentence(policy: Policy) -> str:
    return " ".join(cite.text for cite in policy.citations if cite.text) or policy.definition
