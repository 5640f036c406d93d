"""All stages, one after the other, as far as the answers go; `compile_pack` asks until nothing is left to ask.

document ──extract──▶ drafts ──cover──▶ further drafts          tools, logs ──describe──▶ things
drafts ──sort──▶ kinds and tools ──write_guards, write_rules──▶ checks with cases ──assemble──▶ the files of a pack
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.compile.bench import Bench
from bylaw.compile.card import Card
from bylaw.compile.check import UNANSWERED, Check, Question
from bylaw.compile.desk import Desk
from bylaw.compile.extract import Draft, Extraction, cover, extract, still_standing, under_old_names
from bylaw.compile.guards import write_guards
from bylaw.compile.lesson import Label
from bylaw.compile.lookups import Lookups, out_of_reach, write_lookups
from bylaw.compile.refine import Step, refine
from bylaw.compile.related import overlaps, related
from bylaw.compile.rules import write_rules
from bylaw.compile.sort import Sorted, request_fields, sort
from bylaw.compile.things import Things, asks_who_it_is, describe
from bylaw.errors import BylawError, UsageError
from bylaw.llm import Chat, Pending
from bylaw.llm.recorded import Recorded
from bylaw.llm.source import at_hand
from bylaw.policy.clock import stated_clock
from bylaw.policy.document import Document
from bylaw.rule.structure import Embedder
from bylaw.trace import Trajectory

_ANY_TIME = "2025-01-15T10:00:00"


class CompileError(BylawError):
    """A pack cannot be compiled from this document and these tools."""

    code = "BY802"


class Source(Struct, frozen=True):
    """What a pack is made of."""

    document: Document
    title: str
    cards: Mapping[str, Card]
    trajectories: Sequence[Trajectory] = ()
    now: str = ""
    """A fixed clock; empty where calls bear their own time."""
    earlier: "Work | None" = None
    """What an earlier compile made: what the change of a document does not touch is taken from it."""
    refinements: int = 0
    """How many rules may be replaced by refined ones; 0 leaves rules as they were written."""
    labels: Mapping[str, Sequence[Label]] | None = None
    """By conversation which calls were safe: weights of rules are learned from them."""
    owner: "Owner | None" = None
    """What the pack's owner has edited since the earlier compile."""
    rejected: Mapping[str, str] = {}
    """By policy why its check was rejected, and what to tell beside it: it is asked for again."""
    embed: Embedder | None = None
    """Tells which predicates are alike, for refining; None: by their spelling."""

    @property
    def tried_at(self) -> str:
        """The time at which checks are tried: the pack's clock, else the day that the document names, else any."""
        stated = None if self.now else stated_clock(self.document)
        return self.now or (stated.by_day if stated is not None else _ANY_TIME)


class Owner(Struct, frozen=True):
    """What the owner of a pack has edited, as far as requests and trials depend on it."""

    things: Callable[[Mapping[str, Card], Things], Things]
    """Entities and tools as the owner has them, of those that the compiler describes."""
    checks: frozenset[str] = frozenset()
    """Policies whose check the owner edited."""


class Work(Struct):
    """What the stages have made; a stage that still waits for answers has left None."""

    things: Things | None = None
    first: Extraction | None = None
    second: Extraction | None = None
    kinds: dict[str, Sorted] = field(default_factory=dict[str, Sorted])
    checks: dict[str, Check] = field(default_factory=dict[str, Check])
    lookups: Lookups | None = None
    overlaps: dict[str, tuple[Question, ...]] = field(default_factory=dict[str, tuple[Question, ...]])
    """By policy which of another document it may repeat or contradict."""
    steps: tuple[Step, ...] = ()
    """How the rules were refined."""

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return tuple(draft for each in self.extractions for draft in each.drafts)

    @property
    def extractions(self) -> tuple[Extraction, ...]:
        """Both readings of the document, as far as they went."""
        return tuple(each for each in (self.first, self.second) if each is not None)

    @property
    def questions(self) -> dict[str, tuple[Question, ...]]:
        """By policy what its words leave to the owner of the document."""
        found = dict(self.overlaps)
        for name, asked in (pair for each in self.extractions for pair in each.questions.items()):
            found[name] = (*asked, *found.get(name, ()))
        return found

    @property
    def request(self) -> dict[str, object]:
        """What only users can say, as fields."""
        return request_fields([fact for each in self.kinds.values() for fact in each.user_facts])


def compile_pack(
    source: Source, chat: Chat, *, progress: Callable[[str], None] = lambda _: None, as_is: bool = False
) -> tuple[Work, Desk]:
    """Run the stages until every question is answered; `Pending` where answers have yet to come.

    With `as_is` the work ends there, once the document is read: policies whose questions wait have no check.
    """
    require_tools(source.cards)
    desk = Desk(at_hand(chat))
    desk.can_ask = not isinstance(chat, Recorded) or chat.behind is not None
    benches: list[Bench] = []
    while True:
        desk.begin()
        work = run(desk, source, benches)
        if not desk.wanted:
            return work, desk
        stages = ", ".join(sorted({request.name for request in desk.wanted.values()}))
        progress(f"asking {len(desk.wanted)} ({stages}), {len(desk.asked)} answered")
        try:
            desk.fetch(chat)
        except Pending:
            if desk.asked:
                used = "1 answer is" if len(desk.asked) == 1 else f"{len(desk.asked)} answers are"
                progress(f"{used} used; what has none yet is written down")
            if not as_is or work.things is None or work.second is None or not work.kinds:
                raise
            desk.gives_up = True
            desk.begin()
            return run(desk, source, benches), desk


def require_tools(cards: Mapping[str, Card]) -> None:
    """Without a tool there is nothing to hold to a policy, whoever is asked."""
    if not cards:
        raise UsageError("no tool is given", hint="--tools FILE, or --logs with calls of tools")


def run(desk: Desk, source: Source, benches: list[Bench]) -> Work:
    """Every stage as far as the answers go; what is missing is then wanted at the desk.

    `benches` keeps what was tried, for the next run.

    Policies come in two waves, those of the first reading and those that a second look at uncovered sentences adds, so
    that nothing waits for what it does not need.
    """
    work = Work()
    known = source.earlier.things if source.earlier is not None else None
    asks_who = asks_who_it_is(source.document)
    work.things = describe(desk, source.cards, source.trajectories, known, asks_who=asks_who)
    if work.things is not None and work.things.complaints:
        hint = "describe the tools more fully, or give logs of their results"
        message = f"the model did not describe correctly what the tools read and change: {work.things.complaints[0]}"
        raise CompileError(message, hint=hint)
    work.first = (
        extract(desk, source.document, source.title)
        if source.earlier is None
        else still_standing(source.earlier.extractions, source.document)
    )
    if work.first is None:
        return work
    remarked = (replace(draft, remark=source.rejected.get(draft.id, "")) for draft in work.first.drafts)
    work.first = replace(work.first, drafts=tuple(remarked))
    if not work.first.drafts:
        why = f": {work.first.dropped[0]}" if work.first.dropped else ""
        raise CompileError(f"no policy was found in the document{why}", hint="ask another model")
    kinds = source.earlier.kinds if source.earlier is not None else {}
    kinds = {name: kind for name, kind in kinds.items() if name not in source.rejected}
    early = sort(desk, work.first.drafts, source.cards, kinds)
    work.second = cover(desk, source.document, source.title, work.first)
    if work.second is not None and source.earlier is not None:
        work.second = under_old_names(work.second, work.first, source.earlier.drafts)
    if work.second is not None:
        work.overlaps = overlaps(work.drafts, source.document)
    late = sort(desk, work.second.drafts, source.cards, {}) if work.second is not None else None
    for kinds, drafts in ((early, work.first.drafts), (late, work.second.drafts if work.second is not None else ())):
        if kinds is None:
            break
        work.kinds |= kinds
        if work.things is not None and drafts:
            _write(desk, source, work, _bench(benches, source, work, work.things), drafts)
    if late is not None and work.things is not None:
        _finish(desk, source, work, _bench(benches, source, work, work.things))
    return work


def _finish(desk: Desk, source: Source, work: Work, bench: Bench) -> None:
    """What takes all checks of a kind to be there: rules refined together, functions for facts that nothing shows."""
    waits = any(work.checks[name].failed == UNANSWERED for name, kind in work.kinds.items() if kind.kind == "rule")
    if source.refinements and (desk.gives_up or not waits):
        given = (desk, bench, work.checks, work.drafts, _general(work))
        refined = refine(*given, budget=source.refinements, embed=source.embed)
        if refined is not None:
            work.checks, work.steps = refined.checks, refined.steps
    if desk.wanted and not desk.gives_up:
        return
    wanted = out_of_reach(bench, work.checks)
    work.lookups = write_lookups(
        desk, bench.vocabulary, source.cards, wanted, bench.things.entities, source.trajectories
    )


def _write(desk: Desk, source: Source, work: Work, bench: Bench, drafts: Sequence[Draft]) -> None:
    general = _general(work)
    earlier = _still_read_alike(source.earlier, work)
    earlier = {name: check for name, check in earlier.items() if name not in source.rejected}
    # What a second look adds comes later: a question that is asked already must not change.
    known = drafts if work.first is not None and drafts is work.first.drafts else work.drafts
    beside = related(known, work.kinds, source.document)
    edited = source.owner.checks if source.owner is not None else frozenset[str]()
    work.checks |= write_guards(desk, bench, drafts, work.kinds, general, earlier, beside, edited)
    work.checks |= write_rules(desk, bench, drafts, work.kinds, general, earlier)


def _bench(benches: list[Bench], source: Source, work: Work, described: Things) -> Bench:
    """Where checks are tried, with the owner's entities: that of an earlier run, where it is of the same things."""
    for bench in benches:
        if bench.described == described and bench.request == work.request:
            return bench
    things = source.owner.things(source.cards, described) if source.owner is not None else described
    given = (source.cards, things, work.request, source.tried_at, source.trajectories, described)
    benches.append(Bench(*given, has_clock=bool(source.now)))
    return benches[-1]


def _still_read_alike(earlier: Work | None, work: Work) -> Mapping[str, Check]:
    """The checks of an earlier compile; none where a way of reading the document, which all were shown, is gone."""
    if earlier is None:
        return {}
    standing = {replace(draft, remark="") for draft in work.drafts}
    readings = {
        replace(draft, remark="") for draft in earlier.drafts if (kind := earlier.kinds.get(draft.id)) and kind.general
    }
    return earlier.checks if readings <= standing else {}


def _general(work: Work) -> str:
    """What whoever reads a policy must know of the document as a whole."""
    told = [draft for draft in work.drafts if (kind := work.kinds.get(draft.id)) is not None and kind.general]
    return "\n".join(f"- {draft.definition}" for draft in told) or "none"
