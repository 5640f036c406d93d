"""Runs all stages as far as the answers allow. `compile_pack` asks questions until none are left.

document ──extract──▶ drafts ──cover──▶ further drafts
tools, logs ──describe──▶ things
drafts ──sort──▶ kinds and tools ──write_guards, write_rules──▶ checks with cases
all of these ──assemble──▶ the files of a pack
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
from bylaw.compile.related import related
from bylaw.compile.rules import write_rules
from bylaw.compile.sort import Sorted, request_fields, sort
from bylaw.compile.things import Things, asks_who_it_is, describe
from bylaw.errors import BylawError, UsageError
from bylaw.llm import Chat, Pending
from bylaw.llm.source import at_hand
from bylaw.policy.document import Document, stated_clock
from bylaw.rule.structure import Embedder
from bylaw.trace import Trajectory

_ANY_TIME = "2025-01-15T10:00:00"


class CompileError(BylawError):
    """The document and the tools cannot be compiled into a pack."""

    code = "BY802"


class Source(Struct, frozen=True):
    """The input of a compile."""

    document: Document
    title: str
    cards: Mapping[str, Card]
    trajectories: Sequence[Trajectory] = ()
    now: str = ""
    """The fixed time of every call. If empty, each call has its own time."""
    earlier: "Work | None" = None
    """The result of an earlier compile. Everything that the change to the document does not affect is reused."""
    refinements: int = 0
    """The maximum number of rules to refine. 0 turns refinement off."""
    labels: Mapping[str, Sequence[Label]] | None = None
    """Labels keyed by conversation. Rule weights are learned from them."""
    owner: "Owner | None" = None
    """The owner's edits since the earlier compile."""
    rejected: Mapping[str, str] = {}
    """For each rejected policy, why its check was rejected. The next question about the policy includes this reason."""
    embed: Embedder | None = None
    """Finds similar predicates for refinement. Without it, predicates are compared by spelling."""

    @property
    def tried_at(self) -> str:
        """The time used in trials: the pack's clock, or a day that the document names, or an arbitrary day."""
        stated = None if self.now else stated_clock(self.document)
        return self.now or (stated.by_day if stated is not None else _ANY_TIME)


class Owner(Struct, frozen=True):
    """The owner's edits that affect requests and trials."""

    things: Callable[[Mapping[str, Card], Things], Things]
    """Takes the compiler's entities and tools. Returns the entities with the owner's edits."""
    checks: frozenset[str] = frozenset()
    """Policies whose check the owner edited."""


class Work(Struct):
    """The results of the stages. The result of a stage that is waiting for answers is None."""

    things: Things | None = None
    first: Extraction | None = None
    second: Extraction | None = None
    kinds: dict[str, Sorted] = field(default_factory=dict[str, Sorted])
    checks: dict[str, Check] = field(default_factory=dict[str, Check])
    lookups: Lookups | None = None
    steps: tuple[Step, ...] = ()

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return tuple(draft for each in self.extractions for draft in each.drafts)

    @property
    def extractions(self) -> tuple[Extraction, ...]:
        return tuple(each for each in (self.first, self.second) if each is not None)

    @property
    def questions(self) -> dict[str, tuple[Question, ...]]:
        """Questions for the document's owner, keyed by policy."""
        return {name: asked for each in self.extractions for name, asked in each.questions.items()}

    @property
    def request(self) -> dict[str, object]:
        """Facts that only users can state, written as fields."""
        return request_fields([fact for each in self.kinds.values() for fact in each.user_facts])


def compile_pack(
    source: Source, chat: Chat, *, progress: Callable[[str], None] = lambda _: None, as_is: bool = False
) -> tuple[Work, Desk]:
    """Run the stages until every question is answered. Raises `Pending` if answers are missing.

    With `as_is`, stop after reading the document. Policies with unanswered questions then have no check.
    """
    require_tools(source.cards)
    desk = Desk(at_hand(chat))
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
                progress(f"{used} used; requests without an answer were written to the folder")
            if not as_is or work.things is None or work.second is None or not work.kinds:
                raise
            desk.gives_up = True
            desk.begin()
            return run(desk, source, benches), desk


def require_tools(cards: Mapping[str, Card]) -> None:
    """Raise CompileError if there are no tools, because then there are no calls to check."""
    if not cards:
        raise UsageError("no tools", hint="add --tools FILE, or --logs with tool calls")


def run(desk: Desk, source: Source, benches: list[Bench]) -> Work:
    """Run every stage as far as the answers allow, and record missing answers.

    `benches` caches trials for the next run. So that no stage waits unnecessarily, policies are processed in two waves:
    first those from the first reading, then those found in uncited sentences.
    """
    work, earlier = Work(), source.earlier or Work()
    asks_who = asks_who_it_is(source.document)
    given = (desk, source.cards, source.trajectories, earlier.things)
    work.things = describe(*given, asks_who=asks_who, document=source.document)
    if work.things is not None and work.things.complaints:
        hint = "describe the tools in more detail, or add logs with their results"
        message = f"the model did not describe correctly what the tools read and change: {work.things.complaints[0]}"
        raise CompileError(message, hint=hint)
    work.first = (
        extract(desk, source.document, source.title)
        if source.earlier is None
        else still_standing(earlier.extractions, source.document)
    )
    if work.first is None:
        return work
    if not work.first.drafts:
        why = f": {work.first.dropped[0]}" if work.first.dropped else ""
        raise CompileError(f"no policy was found in the document{why}", hint="ask another model")
    remarked = (replace(draft, remark=source.rejected.get(draft.id, "")) for draft in work.first.drafts)
    work.first = replace(work.first, drafts=tuple(remarked))
    known = {name: kind for name, kind in earlier.kinds.items() if name not in source.rejected}
    early = sort(desk, work.first.drafts, source.cards, known)
    work.second = cover(desk, source.document, source.title, work.first)
    late = None
    if work.second is not None:
        work.second = under_old_names(work.second, work.first, earlier.drafts)
        late = sort(desk, work.second.drafts, source.cards, {})
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
    """Run the steps that need all checks: refine the rules together, and write functions for facts that no result
    shows.
    """
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
    earlier = {name: check for name, check in _reusable(source.earlier, work).items() if name not in source.rejected}
    # Put policies from the second reading last, so that questions that were already asked do not change.
    known = drafts if work.first is not None and drafts is work.first.drafts else work.drafts
    beside = related(known, work.kinds, source.document)
    edited = source.owner.checks if source.owner is not None else frozenset[str]()
    work.checks |= write_guards(desk, bench, drafts, work.kinds, general, earlier, beside, edited)
    work.checks |= write_rules(desk, bench, drafts, work.kinds, general, earlier)


def _bench(benches: list[Bench], source: Source, work: Work, described: Things) -> Bench:
    """Return the bench with the owner's entities. An earlier run's bench is reused if the entities are unchanged."""
    for bench in benches:
        if bench.described == described and bench.request == work.request:
            return bench
    things = source.owner.things(source.cards, described) if source.owner is not None else described
    given = (source.cards, things, work.request, source.tried_at, source.trajectories, described)
    benches.append(Bench(*given, has_clock=bool(source.now)))
    return benches[-1]


def _reusable(earlier: Work | None, work: Work) -> Mapping[str, Check]:
    """Return the checks of an earlier compile that can be reused. If any general policy has changed since then, there
    are none.
    """
    if earlier is None:
        return {}
    standing = {replace(draft, remark="") for draft in work.drafts}
    readings = {
        replace(draft, remark="") for draft in earlier.drafts if (kind := earlier.kinds.get(draft.id)) and kind.general
    }
    return earlier.checks if readings <= standing else {}


def _general(work: Work) -> str:
    told = [draft for draft in work.drafts if (kind := work.kinds.get(draft.id)) is not None and kind.general]
    return "\n".join(f"- {draft.definition}" for draft in told) or "none"
