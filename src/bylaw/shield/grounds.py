"""From evidence to decision: what guards and rules said of a call becomes allow, deny, look_up or ask.

Uncertainty is never allow: an unknown fact is looked up if a look-up can show it, else somebody is asked. A call that
could not be judged is refused or asked about, as the pack says.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.session import Session
from bylaw.engine.wording import AFTER_NO
from bylaw.facts.call_record import CallRecord, could_be_same_call, may_have_run
from bylaw.facts.entity import Entity, Fact, Key, is_known, question_about
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.facts.value import key_of
from bylaw.pack import Pack
from bylaw.policy.posture import ApprovalTerms, Postures
from bylaw.policy.tool import misfit
from bylaw.rule.circuit import Assessment
from bylaw.shield.decision import (
    GRAVEST,
    Answer,
    Decision,
    Earlier,
    Ground,
    LookUp,
    Question,
    Text,
    Whom,
    gravest,
    outcome,
)
from bylaw.shield.feedback import FAULT, feedback, for_person
from bylaw.trace.event import Call, Card, Event, LookedUp, Message

_AGREES = "Do you agree to this?"
_BINDS_NOTHING = frozenset(("call", "stop", "unguarded", "doubt"))
"""Kinds of grounds that are no policy's."""


def find_grounds(
    session: Session, postures: Postures, judgement: Judgement, lacks: str = "", weighed: Assessment | None = None
) -> tuple[Ground, ...]:
    """What every policy says of a judged call, those that object first.

    `lacks` says why no history is known, `weighed` how the rules together lean on the call: a hard rule vetoes, a soft
    one that is broken or undecided counts by its weight.
    """
    pack, tool = session.pack, judgement.made.call.tool
    fault = judgement.fault or misfit(judgement.made.tool, judgement.made.call.arguments)
    if lacks and not fault and _is_bound(pack, judgement):
        fault = lacks
    found: list[Ground] = []
    try:
        ways = _LookUps(pack.schema, session.ledger, judgement.made)
        found += [_of_guard(pack, postures, judgement, evidence, ways) for evidence in judgement.evidence]
        found += [_of_broken(pack, postures, finding, tool, weighed) for finding in judgement.rules]
        found += [_of_undecided(pack, postures, finding, tool, weighed) for finding in judgement.open_rules]
        # Once the user has answered a card, all is weighed again.
        if weighed is not None and not any(finding.puts_card for finding in judgement.rules):
            found += _of_circuit(postures, found, tool, weighed)
    except Exception as error:
        # Whatever is wrong with our own code: the call is not judged, and that is said.
        fault = fault or f"{FAULT}: {type(error).__name__}: {error}"
    if not fault and _may_write(judgement) and not _is_guarded(pack, found) and not pack.binds(tool):
        found += _of_unguarded(postures, tool)
    if fault:
        found.append(Ground("", "call", on_error(pack, postures, tool), postures.of(tool), fault))
    return tuple(sorted(found, key=lambda ground: ground.answer == "allow"))


def weigh(session: Session, judgement: Judgement) -> Assessment | None:
    """How the rules together lean on a call, if they have a say: one is broken or undecided, or the pack asks for more
    than that none is."""
    book = session.pack.book
    must_weigh = judgement.rules or judgement.open_rules or (book.eps > 0.0 and book.rules and _may_write(judgement))
    return session.weigh(judgement.made.call) if must_weigh else None


def decide(
    pack: Pack,
    judgement: Judgement,
    grounds: Sequence[Ground],
    name: str,
    approval: str = "",
    weighed: Assessment | None = None,
    card: Card | None = None,
    shown: Sequence[LookedUp] = (),
    earlier: Earlier = "",
    failures: int = 0,
) -> Decision:
    """The decision on a judged call. The agent is told the results of `shown`, `earlier` says whether the same call ran
    before, and `failures` how often its card was answered in vain."""
    call = judgement.made.call
    answer, allowed, enforced = outcome(grounds)
    unguarded = _may_write(judgement) and not _is_guarded(pack, grounds) and not judgement.fault
    text = person = ""
    if answer != "allow":
        said = [ground for ground in grounds if ground.posture != "shadow"]
        worst, shows_card = gravest([ground.answer for ground in said]), card.text if card is not None else ""
        told = partial(feedback, pack, call.tool, worst, said, runs=allowed, approval=approval, card=shows_card)
        text = Text(partial(told, shown=shown, earlier=earlier, failures=failures))
        # The text may be read later than now, and must say what is known now.
        seen = list(judgement.seen.answers()) if answer == "ask" else ()
        person = Text(lambda: for_person(call, grounds, seen))
    parts = (answer, allowed, enforced, tuple(grounds), unguarded, text, person, approval)
    found = Decision(name, call.tool, dict(call.arguments), *parts, card=card, earlier=earlier)
    return found if weighed is None else replace(found, probability=weighed.p_action, interval=weighed.interval)


def earlier_run(ledger: Ledger, made: CallRecord) -> Earlier:
    """Whether the same call was carried out since the user last wrote something."""
    since = ledger.said[-1][0] if ledger.said else -1
    found: Earlier = ""
    for write in reversed(ledger.writes):
        if write.step <= since:
            break
        if write.step < made.step and may_have_run(write, made.step) and could_be_same_call(write, made):
            is_known = write.accepted and write.is_answered_at(made.step) and not write.is_doubtful()
            if not is_known:
                return "perhaps"
            found = "done"
    return found


def stood_in(grounds: Sequence[Ground], terms: ApprovalTerms, *, hears: bool, files: bool) -> list[Ground]:
    """The grounds if the user's answer is not reported: their questions for the user are put to a person, if the pack
    lets one stand in or the host `files` all of them. If what the user says next is reported (`hears`), the others stay
    questions for them."""
    found: list[Ground] = []
    for ground in grounds:
        if ground.answer == "ask" and any(each.whom == "user" for each in ground.questions):
            if files or ground.policy in terms.stands_in:
                asked = tuple(replace(each, whom="person") for each in ground.questions)
                ground = replace(ground, questions=asked, stands_in=True)
            elif not hears:
                ground = replace(ground, is_unheard=True)
        found.append(ground)
    return found


def until_when(grounds: Sequence[Ground], events: Sequence[Event], digest: str) -> Sequence[Ground]:
    """The grounds; if the user declined a card of this digest, with the time at which their no ends, which is when the
    card would have expired."""
    if not any(AFTER_NO in each.for_agent for each in grounds):
        return grounds
    cards = {event.card.id: event.card for event in events if isinstance(event, Call) and event.card is not None}
    said = [event.confirmation for event in events if isinstance(event, Message) and event.confirmation is not None]
    ends = [cards[each.card].expires for each in said if not each.yes and cards[each.card].digest == digest]
    if not ends or ends[-1] is None:
        return grounds
    when = datetime.fromtimestamp(ends[-1] + 60, UTC).isoformat(" ", "minutes")[:16]
    later = f"Do not make this call again before {when} UTC: the user is asked once more only then"
    return [replace(each, for_agent=each.for_agent.replace(AFTER_NO, later)) for each in grounds]


def on_error(pack: Pack, postures: Postures, tool: str) -> Answer:
    """The answer to a call of `tool` that could not be judged: never `allow`, unless the tool is known to only read."""
    declared = pack.schema.tools.get(tool)
    return postures.on_read_error if declared is not None and declared.effect == "read" else postures.on_error


def of_doubt(postures: Postures, tool: str, because: str) -> Ground:
    """The host's objection to a tool: a person decides on each call."""
    question = Question("doubt", f"{because}: should it be called?", "person")
    return Ground("", "doubt", "ask", postures.of(tool), because, questions=(question,))


def of_rule(
    pack: Pack,
    postures: Postures,
    finding: RuleFinding,
    tool: str,
    answer: Answer,
    questions: tuple[Question, ...] = (),
) -> Ground:
    """What a rule says of a call."""
    name = finding.rule.policy
    return Ground(
        name,
        "rule",
        answer,
        postures.of(tool, name),
        finding.because,
        pack.policies[name].citations,
        questions=questions,
        for_agent=finding.for_agent,
        puts_card=finding.puts_card,
    )


def _of_broken(pack: Pack, postures: Postures, finding: RuleFinding, tool: str, weighed: Assessment | None) -> Ground:
    answer: Answer = "deny" if weighed is None else weighed.decision
    if finding.rule.hard:
        # A rule that is broken whether or not the call is made does not object to the call, and does not allow it.
        answer = "ask" if weighed is not None and finding.rule.name in weighed.conflict else "deny"
    if answer != "deny" or not finding.puts_card:
        return of_rule(pack, postures, finding, tool, answer)
    predicates = pack.book.predicates
    asked = [(name, _as_question(predicates[name].description) or _AGREES) for name, _ in finding.whys]
    return of_rule(pack, postures, finding, tool, "ask", tuple(Question(*each, "user") for each in asked))


def _of_undecided(
    pack: Pack, postures: Postures, finding: RuleFinding, tool: str, weighed: Assessment | None
) -> Ground:
    if weighed is not None and not finding.rule.hard and weighed.decision == "allow":
        return of_rule(pack, postures, finding, tool, "allow")
    return of_rule(pack, postures, finding, tool, "ask", _questions_of(pack, finding))


def _questions_of(pack: Pack, finding: RuleFinding) -> tuple[Question, ...]:
    """What would settle an undecided rule: its unknown predicates. The user is asked about consent."""
    predicates, policy = pack.book.predicates, finding.rule.policy
    definition = pack.policies[policy].definition
    found: list[Question] = []
    for each in [predicates[name] for name, value in finding.values if value is None and name in predicates]:
        fallback = _AGREES if each.way == "consented" else f"Is `{each.name}` so here?"
        text = each.question.strip() or _as_question(each.description or definition) or fallback
        found.append(Question(each.name, text, "user" if each.way in ("consented", "said") else "person"))
    return tuple(found) or (Question(policy, f"{definition or policy}: is that so here?", "person"),)


def _of_circuit(postures: Postures, found: Sequence[Ground], tool: str, weighed: Assessment) -> list[Ground]:
    """What the rules say together, if none of them says it alone."""
    said = gravest([ground.answer for ground in found if ground.kind == "rule"])
    if GRAVEST.index(said) <= GRAVEST.index(weighed.decision):
        return []
    low, high = weighed.interval
    because = f"the rules together put the call between {low:+.2f} and {high:+.2f}, and it needs {weighed.eps:+.2f}"
    return [Ground("", "rule", weighed.decision, postures.of(tool), because)]


def _of_unguarded(postures: Postures, tool: str) -> list[Ground]:
    """What the pack says of a write that no policy binds; nothing if the pack allows it."""
    answer = postures.of_unguarded(tool)
    if answer == "allow":
        return []
    because = "no policy says whether this may be done"
    questions = () if answer == "deny" else (Question("unguarded", f"{because}: should it be done?", "person"),)
    return [Ground("", "unguarded", answer, postures.of(tool), because, questions=questions)]


def _of_guard(
    pack: Pack, postures: Postures, judgement: Judgement, evidence: PolicyEvidence, ways: "_LookUps"
) -> Ground:
    policy, tool, said = evidence.policy, judgement.made.call.tool, evidence.completions
    posture, cited = postures.of(tool, policy.id), policy.citations
    match evidence.outcome:
        case "permit":
            return Ground(policy.id, "guard", "allow", posture, citations=cited)
        case "deny" if len(said) == 1 and said[0].paths == 1:
            return Ground(policy.id, "guard", "deny", posture, said[0].because, cited)
        case "deny":
            # Several paths end in a denial: to quote the reason of one of them would be a guess.
            wanted, _, _ = ways.find(_undecided_facts(pack, judgement, evidence))
            # The user's answer may tell which denial it is, such as the amount that would be right.
            asked = _unique(fact for each in said for fact in each.asked)
            questions = tuple(_question(pack, fact, "user") for fact in asked if fact.entity != "context")
            return Ground(policy.id, "guard", "deny", posture, "", cited, look_ups=wanted, questions=questions)
        case "failed":
            why = next(each.because for each in said if each.outcome == "failed")
            return Ground(policy.id, "guard", on_error(pack, postures, tool), posture, why, cited, failed=True)
        case _:
            return _of_unknown(pack, postures, judgement, evidence, ways)


def _of_unknown(
    pack: Pack, postures: Postures, judgement: Judgement, evidence: PolicyEvidence, ways: "_LookUps"
) -> Ground:
    """What a guard that depends on unknown facts says: look them up, else ask."""
    policy, tool, said = evidence.policy, judgement.made.call.tool, evidence.completions
    lacking = _unique(fact for each in said for fact in each.lacking)
    asked = _unique(fact for each in said for fact in each.asked)
    wanted, blind, retries = ways.find(lacking)
    questions = [_question(pack, fact, "person" if fact.entity == "context" else "user") for fact in asked]
    questions += [_question(pack, fact, "person") for fact in blind]
    answer: Answer = "look_up" if wanted else "ask" if questions else on_error(pack, postures, tool)
    if answer == "allow":
        # An undecided guard is not an error: only a read that could not be judged may be let through.
        answer = postures.on_error
    reasons = [each.because for each in said if each.outcome == "deny"] + [each.because for each in said]
    objections = judgement.seen.objections() if any(fact.entity == "request" for fact in asked) else ()
    return Ground(
        policy.id,
        "guard",
        answer,
        postures.of(tool, policy.id),
        "; ".join(map(str, objections)) or next(filter(None, reasons), ""),
        policy.citations,
        missing=tuple(map(str, lacking)),
        look_ups=wanted,
        questions=tuple(questions),
        retries=retries,
    )


def _undecided_facts(pack: Pack, judgement: Judgement, evidence: PolicyEvidence) -> tuple[Fact, ...]:
    """If every path ends in a denial: the facts that would tell which of them it is."""
    entities = pack.schema.entities
    found: list[Fact] = []
    for completion in evidence.completions:
        fact = completion.reads[-1] if completion.paths > 1 and completion.reads else None
        entity = entities.get(fact.entity) if fact is not None else None
        if fact is None or entity is None or fact.key is None or fact.field not in entity.fields:
            continue
        field = entity.fields[fact.field]
        if field.origin == "system" and not is_known(judgement.seen.read(entity, fact.key, field)):
            found.append(fact)
    return _unique(found)


def _question(pack: Pack, fact: Fact, whom: Whom) -> Question:
    if fact.entity == "request":
        return Question(str(fact), "Nothing shows that you asked for this. Should it be done?", whom)
    return Question(str(fact), question_about(fact, pack.schema.entities.get(fact.entity)), whom)


def _may_write(judgement: Judgement) -> bool:
    tool = judgement.made.tool
    return tool is None or tool.effect == "write"


def _is_bound(pack: Pack, judgement: Judgement) -> bool:
    """Whether any policy may have a say: a guard, or, if the call may write, a rule."""
    speaks = judgement.evidence or judgement.rules or judgement.open_rules
    return bool(speaks or (_may_write(judgement) and pack.book.rules))


def _is_guarded(pack: Pack, grounds: Iterable[Ground]) -> bool:
    """Whether any of these is of an enforced policy."""
    return any(each.kind not in _BINDS_NOTHING and each.policy not in pack.held_back for each in grounds)


def _unique(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(facts))


def _as_question(text: str) -> str:
    """A statement as a question."""
    return f"{text.rstrip(' .?!')}?" if text.rstrip(" .?!") else ""


class _LookUp(Struct, frozen=True):
    """A look-up, and the calls that made it before."""

    tool: str
    arguments: dict[str, Any]
    made: Sequence[CallRecord]


class _LookUps:
    """The look-ups that would show what guards lack before one call; most guards lack the same facts."""

    def __init__(self, schema: Schema, ledger: Ledger, at: CallRecord) -> None:
        self._schema = schema
        self._ledger = ledger
        self._at = at
        self._ways: dict[Fact, tuple[str, list[str]]] = {}
        """By fact, the look-up to make, if there is one, and those that were made in vain."""
        self._found: dict[str, _LookUp] = {}

    def find(self, lacking: Iterable[Fact]) -> tuple[tuple[LookUp, ...], list[Fact], tuple[LookUp, ...]]:
        """The look-ups to make for these facts, the facts that no look-up shows, and the look-ups that failed."""
        wanted: dict[str, list[str]] = {}
        failed: dict[str, list[str]] = {}
        blind: list[Fact] = []
        for fact in lacking:
            if fact.key is None:
                continue
            if fact not in self._ways:
                self._ways[fact] = self._way_to(fact, fact.key)
            name, tried = self._ways[fact]
            if name:
                wanted.setdefault(name, []).append(str(fact))
                continue
            blind.append(fact)
            for each in tried:
                known = self._found[each]
                if self._ledger.answers.has_failed(known.tool, known.arguments, self._at):
                    failed[each] = [str(fact)]
        return self._look_ups(wanted), blind, self._look_ups(failed)

    def _look_ups(self, facts: Mapping[str, list[str]]) -> tuple[LookUp, ...]:
        found = ((self._found[name], shown) for name, shown in facts.items())
        return tuple([LookUp(each.tool, each.arguments, tuple(shown)) for each, shown in found])

    def _way_to(self, fact: Fact, named: Sequence[Any]) -> tuple[str, list[str]]:
        entity, key, tried = self._schema.entities[fact.entity], key_of(named), list[str]()
        parts = dict(zip(entity.key, key, strict=False))
        for way in self._schema.ways[entity.name, fact.field]:
            arguments = {argument: parts.get(part) for argument, part in way.arguments.items()}
            name = f"{way.tool} {arguments!r}"
            if name not in self._found:
                made = self._ledger.answers.to(way.tool, arguments, self._at)
                self._found[name] = _LookUp(way.tool, arguments, made)
            made = self._found[name].made
            if not made or self._may_show_more(made, entity, key, fact.field):
                return name, tried
            tried.append(name)
        return "", tried

    def _may_show_more(self, made: Sequence[CallRecord], entity: Entity, key: Key, field: str) -> bool:
        """Whether a look-up that was made before may show more of a field now."""
        ledger, at = self._ledger, self._at
        is_current = any(ledger.changes.is_current(entity.name, key, field, each.step, at) for each in made)
        seen = ledger.seen_by(at, entity, key)
        return (
            not is_current
            or (seen is not None and seen.may_be_settled(entity.named(field)))
            or ledger.may_be_read_again(entity, key, field, at)
        )
