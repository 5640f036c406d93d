"""Turns the results of guards and rules into grounds: `allow`, `deny`, `look_up` or `ask`.

Uncertainty never allows a call. An unknown fact is looked up if possible. Otherwise, a person is asked. The pack
decides whether a call that could not be judged is refused or leads to a question.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.consent import CardFacts, card_facts
from bylaw.engine.conduct import RuleFinding
from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.engine.session import Session
from bylaw.engine.wording import AFTER_NO
from bylaw.facts.call_record import CallRecord, could_be_same_call, may_have_run
from bylaw.facts.entity import Entity, Fact, Key, is_known, question_about
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import key_of
from bylaw.pack import Pack
from bylaw.policy.tool import ApprovalTerms, Postures, misfit
from bylaw.rule.circuit import Assessment
from bylaw.shield.decision import GRAVEST, Answer, Earlier, Ground, GroundKind, LookUp, Question, Whom, gravest
from bylaw.shield.feedback import FAULT
from bylaw.trace.event import Call, Event, Message

_TOGETHER = "actions made together"
_AGREES = "Do you agree to this?"
_BINDS_NOTHING = frozenset(("call", "action", "stop", "unguarded", "doubt"))
"""The kinds of grounds that come from no policy."""


class Binding(Struct, frozen=True):
    """Creates the grounds for a call to one tool, using a pack and its postures."""

    pack: Pack
    postures: Postures
    tool: str
    called: str = ""
    """The tool that performs the action. Set if `tool` is an action."""

    def ground(self, policy: str, kind: GroundKind, answer: Answer, because: str = "", **more: Any) -> Ground:
        """Return a ground with the policy's citations. With an empty `policy`, the objection comes from elsewhere."""
        cited = self.pack.policies[policy].citations if policy else ()
        return Ground(policy, kind, answer, self.postures.of(self.tool, policy, self.called), because, cited, **more)

    def of_rule(self, finding: RuleFinding, answer: Answer, questions: Sequence[Question] = ()) -> Ground:
        told = {"for_agent": finding.for_agent, "puts_card": finding.puts_card}
        return self.ground(finding.rule.policy, "rule", answer, finding.because, questions=tuple(questions), **told)

    def of_doubt(self, because: str) -> Ground:
        """Return the ground for the host's objection to a tool. A reviewer decides on each call to such a tool."""
        question = Question("doubt", f"{because}. Should this call be made?", "person")
        return self.ground("", "doubt", "ask", because, questions=(question,))

    def of_declined(self) -> Ground:
        """Return the ground for a card that the user declined. The user is asked once more, because the history does
        not show the answer.
        """
        because = "the user declined this call"
        question = Question("declined", _AGREES, "user")
        return self.ground("", "rule", "ask", because, questions=(question,), for_agent=because, puts_card=True)

    def on_error(self) -> Answer:
        """Return the decision on a call that could not be judged. It can be `allow` only if the call is certainly a
        read.
        """
        declared = self.pack.schema.tools.get(self.tool)
        is_read = declared is not None and declared.effect == "read"
        return self.postures.on_read_error if is_read else self.postures.on_error


def find_grounds(
    session: Session, postures: Postures, judgement: Judgement, lacks: str = "", weighed: Assessment | None = None
) -> tuple[Ground, ...]:
    """Return the ground of every policy for a judged call, objections first.

    `lacks` is the reason why the history is unknown. `weighed` is the result of all rules together: a broken hard rule
    denies the call, and a broken soft rule counts with its weight.
    """
    if judgement.parts:
        return _of_actions(session, postures, judgement, lacks)
    binding = Binding(session.pack, postures, judgement.made.call.tool, judgement.call.tool)
    is_unresolved = bool(judgement.otherwise) and not lacks
    fault = judgement.fault or misfit(judgement.made.tool, judgement.made.call.arguments)
    if judgement.asked is not None:
        # Undeclared arguments may have effects that none of the actions describe.
        declared = session.pack.schema.tools.get(judgement.asked.tool)
        fault = fault or misfit(declared, judgement.asked.arguments)
    if is_unresolved:
        fault = ""
    if lacks and not fault and _is_bound(binding.pack, judgement):
        fault = lacks
    found: list[Ground] = []
    try:
        guards = _GuardGrounds(binding, judgement, session.ledger)
        found += [guards.ground(evidence) for evidence in judgement.evidence]
        rules = [_of_broken(binding, finding, weighed) for finding in judgement.rules]
        rules += [_of_undecided(binding, finding, weighed) for finding in judgement.open_rules]
        if is_unresolved:
            # A card cannot describe the effect of this call.
            rules = [replace(each, puts_card=False) for each in rules]
        if any(map(_asks_for_yes, rules)):
            facts = card_facts(judgement.made, session.ledger)
            rules = [guards.before_card(each, facts) if _asks_for_yes(each) else each for each in rules]
        found += rules
        # The rules are weighed again once the user has answered the card.
        if weighed is not None and not any(finding.puts_card for finding in judgement.rules):
            found += _of_circuit(binding, found, weighed)
    except Exception as error:
        # After an internal error, the decision only says that the call was not judged.
        fault = fault or f"{FAULT}: {type(error).__name__}: {error}"
    if is_unresolved:
        found.append(_of_unresolved(binding, judgement))
    elif not fault and is_unguarded(binding.pack, judgement, found) and not binding.pack.binds(binding.tool):
        found += _of_unguarded(binding)
    if fault:
        found.append(binding.ground("", "call", binding.on_error(), fault))
    return tuple(sorted(found, key=lambda ground: ground.answer == "allow"))


def _of_actions(session: Session, postures: Postures, judgement: Judgement, lacks: str) -> tuple[Ground, ...]:
    """Return the ground of every policy for each action of a call.

    A card covers one action. If a call does more than the action that the user must confirm, a reviewer is asked about
    the whole call.
    """
    found: list[Ground] = []
    for part in judgement.parts:
        grounds = find_grounds(session, postures, part, lacks, weigh(session, part))
        found += [_on_its_own(each, part) if _asks_for_yes(each) else each for each in grounds]
    return tuple(sorted(found, key=lambda ground: ground.answer == "allow"))


def _on_its_own(ground: Ground, part: Judgement) -> Ground:
    because = f"the user must confirm `{part.made.call.tool}`, but this call also does something else"
    told = f"{because}. Make a separate call for it"
    question = Question(_TOGETHER, f"{because}. Should the whole call be made?", "person")
    return replace(ground, answer="ask", because=because, for_agent=told, questions=(question,), puts_card=False)


def _of_unresolved(binding: Binding, judgement: Judgement) -> Ground:
    """Return the ground for a call that performs no declared action: look at the page, ask a reviewer, or deny."""
    because = judgement.fault
    if (call := judgement.instead) is not None:
        look_ups = (LookUp(call.tool, dict(call.arguments), ("the page to which the link leads",), instead=True),)
        return binding.ground("", "action", "look_up", because, look_ups=look_ups, for_agent=because)
    if judgement.otherwise != "ask":
        return binding.ground("", "action", "deny", because, for_agent=because)
    if judgement.look_up in binding.pack.schema.called:
        look_ups = (LookUp(judgement.look_up, {}, ("what the page shows now",)),)
        told = f"{because}. Take a new snapshot and use its references"
        return binding.ground("", "action", "look_up", because, look_ups=look_ups, for_agent=told)
    question = Question(
        "action", f"The pack does not declare what this call does ({because}). Should it be made?", "person"
    )
    return binding.ground("", "action", "ask", because, questions=(question,), for_agent=because)


def weigh(session: Session, judgement: Judgement) -> Assessment | None:
    """Weigh all rules together if at least one is broken or undecided, or if the pack sets a margin."""
    book = session.pack.book
    if judgement.parts:
        # `_of_actions` weighs each action separately.
        return None
    must_weigh = judgement.rules or judgement.open_rules or (book.eps > 0.0 and book.rules and _may_write(judgement))
    if not must_weigh:
        return None
    return judgement.weighed if judgement.weighed is not None else session.weigh(judgement.made.call)


def is_unguarded(pack: Pack, judgement: Judgement, grounds: Iterable[Ground]) -> bool:
    """Whether a call may write although no policy that is enforced has a ground for it."""
    if judgement.parts:
        return any(is_unguarded(pack, part, grounds) for part in judgement.parts)
    is_guarded = any(each.kind not in _BINDS_NOTHING and each.policy not in pack.held_back for each in grounds)
    return _may_write(judgement) and not is_guarded


def earlier_run(ledger: Ledger, made: CallRecord) -> Earlier:
    """Return whether the same call has run since the user's last message, and how certain that is."""
    since = ledger.said[-1][0] if ledger.said else -1
    found: Earlier = ""
    for write in reversed(ledger.writes):
        if write.step < made.step and may_have_run(write, made.step) and could_be_same_call(write, made):
            is_known = write.accepted and write.is_answered_at(made.step) and not write.is_doubtful()
            if not is_known:
                return "perhaps"
            if write.step <= since:
                break
            found = "done"
    return found


def stood_in(grounds: Sequence[Ground], terms: ApprovalTerms, *, hears: bool, files: bool) -> list[Ground]:
    """Redirect questions that the user cannot answer.

    A question goes to a reviewer if the pack allows this or if the host `files` all questions. Other questions stay
    with the user. If the host does not report the user's next message (`hears`), they are marked as unheard.
    """
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


def after_no(grounds: Sequence[Ground], events: Sequence[Event], tool: str) -> Sequence[Ground]:
    """Refuse a call that does more than the action to confirm, if the user's last answer to a card of this tool is a
    no.

    The call may contain what the user declined.
    """
    cards = {event.card.id for event in events if isinstance(event, Call) and event.card and event.tool == tool}
    answers = [event.confirmation for event in events if isinstance(event, Message) and event.confirmation is not None]
    last = next((each for each in reversed(answers) if each.card in cards), None)
    if last is None or last.yes:
        return grounds
    return [
        replace(each, answer="deny", questions=()) if any(q.fact == _TOGETHER for q in each.questions) else each
        for each in grounds
    ]


def until_when(grounds: Sequence[Ground], events: Sequence[Event], digest: str) -> Sequence[Ground]:
    """If the user declined the card with this digest, tell the agent when the denial ends, which is when the card
    expires.
    """
    if not any(AFTER_NO in each.for_agent for each in grounds):
        return grounds
    cards = {event.card.id: event.card for event in events if isinstance(event, Call) and event.card is not None}
    said = [event.confirmation for event in events if isinstance(event, Message) and event.confirmation is not None]
    ends = [cards[each.card].expires for each in said if not each.yes and cards[each.card].digest == digest]
    if not ends or ends[-1] is None:
        return grounds
    when = datetime.fromtimestamp(ends[-1] + 60, UTC).isoformat(" ", "minutes")[:16]
    later = f"Do not make this call again before {when} UTC. The user is not asked again before then"
    return [replace(each, for_agent=each.for_agent.replace(AFTER_NO, later)) for each in grounds]


def _of_broken(binding: Binding, finding: RuleFinding, weighed: Assessment | None) -> Ground:
    answer: Answer = "deny" if weighed is None else weighed.decision
    if finding.rule.hard:
        # In a conflict, the rule is broken whether or not the call is made, so ask.
        answer = "ask" if weighed is not None and finding.rule.name in weighed.conflict else "deny"
    if answer != "deny" or not finding.puts_card:
        return binding.of_rule(finding, answer)
    predicates = binding.pack.book.predicates
    asked = [(name, _as_question(predicates[name].description) or _AGREES) for name, _ in finding.whys]
    return binding.of_rule(finding, "ask", [Question(*each, "user") for each in asked])


def _of_undecided(binding: Binding, finding: RuleFinding, weighed: Assessment | None) -> Ground:
    if weighed is not None and not finding.rule.hard and weighed.decision == "allow":
        return binding.of_rule(finding, "allow")
    return binding.of_rule(finding, "ask", _questions_of(binding.pack, finding))


def _questions_of(pack: Pack, finding: RuleFinding) -> Sequence[Question]:
    """Return the questions whose answers would settle an undecided rule. Questions about consent are for the user."""
    predicates, policy = pack.book.predicates, finding.rule.policy
    definition = pack.policies[policy].definition
    found: list[Question] = []
    for each in [predicates[name] for name, value in finding.values if value is None and name in predicates]:
        fallback = _AGREES if each.way == "consented" else f"Does `{each.name}` hold here?"
        text = each.question.strip() or _as_question(each.description or definition) or fallback
        found.append(Question(each.name, text, "user" if each.way in ("consented", "said") else "person"))
    return found or [Question(policy, f"{definition or policy}: is this true here?", "person")]


def _of_circuit(binding: Binding, found: Sequence[Ground], weighed: Assessment) -> list[Ground]:
    """Return the ground of all rules together. Empty unless it is more severe than the ground of every single rule."""
    said = gravest([ground.answer for ground in found if ground.kind == "rule"])
    if GRAVEST.index(said) <= GRAVEST.index(weighed.decision):
        return []
    low, high = weighed.interval
    score = f"between {low:+.2f} and {high:+.2f}"
    because = f"the rules together score the call {score}, but it needs at least {weighed.eps:+.2f}"
    return [binding.ground("", "rule", weighed.decision, because)]


def _of_unguarded(binding: Binding) -> list[Ground]:
    """Return the pack's objection to a write to which no policy applies. Empty if the pack allows such writes."""
    answer = binding.postures.of_unguarded(binding.tool, binding.called)
    if answer == "allow":
        return []
    because = "no policy says whether this is allowed"
    questions = () if answer == "deny" else (Question("unguarded", f"{because}. Should it be done?", "person"),)
    return [binding.ground("", "unguarded", answer, because, questions=questions)]


def _asks_for_yes(ground: Ground) -> bool:
    return ground.puts_card and ground.answer == "ask"


def _may_write(judgement: Judgement) -> bool:
    tool = judgement.made.tool
    return tool is None or tool.effect == "write"


def _is_bound(pack: Pack, judgement: Judgement) -> bool:
    speaks = judgement.evidence or judgement.rules or judgement.open_rules
    return bool(speaks or (_may_write(judgement) and pack.book.rules))


def _unique(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(facts))


def _as_question(text: str) -> str:
    return f"{text.rstrip(' .?!')}?" if text.rstrip(" .?!") else ""


class _GuardGrounds:
    """Builds the guards' grounds for one call. The guards share the look-ups for missing facts."""

    def __init__(self, binding: Binding, judgement: Judgement, ledger: Ledger) -> None:
        self._binding = binding
        self._judgement = judgement
        self._entities = binding.pack.schema.entities
        self._ledger = ledger
        self._ways: dict[Fact, tuple[str, list[str]]] = {}
        """For each fact, the name of its look-up (empty if there is none) and the look-ups that were already made."""
        self._made: dict[str, tuple[str, dict[str, Any], Sequence[CallRecord]]] = {}
        """For each look-up by name: its tool, its arguments, and the earlier calls that made it."""

    def ground(self, evidence: PolicyEvidence) -> Ground:
        policy, said = evidence.policy.id, evidence.completions
        match evidence.outcome:
            case "permit":
                return self._binding.ground(policy, "guard", "allow")
            case "deny" if len(said) == 1 and said[0].paths == 1:
                return self._binding.ground(policy, "guard", "deny", said[0].because)
            case "deny":
                # Several paths end in a denial, and it is unknown which of them applies.
                wanted, _, _ = self._look_ups(self._undecided_facts(evidence))
                # The user's answer may decide which reason applies, for example if it contains the correct amount.
                asked = _unique(fact for each in said for fact in each.asked)
                questions = tuple(self._question(fact, "user") for fact in asked if fact.entity != "context")
                return self._binding.ground(policy, "guard", "deny", look_ups=wanted, questions=questions)
            case "failed":
                why = next(each.because for each in said if each.outcome == "failed")
                return self._binding.ground(policy, "guard", self._binding.on_error(), why, failed=True)
            case _:
                return self._of_unknown(evidence)

    def _of_unknown(self, evidence: PolicyEvidence) -> Ground:
        said, binding = evidence.completions, self._binding
        lacking = _unique(fact for each in said for fact in each.lacking)
        asked = _unique(fact for each in said for fact in each.asked)
        wanted, blind, retries = self._look_ups(lacking)
        questions = [self._question(fact, "person" if fact.entity == "context" else "user") for fact in asked]
        questions += [self._question(fact, "person") for fact in blind]
        answer: Answer = "look_up" if wanted else "ask" if questions else binding.on_error()
        if answer == "allow":
            # An undecided guard is not an error. A call that could not be judged may run only if it is a read.
            answer = binding.postures.on_error
        reasons = [each.because for each in said if each.outcome == "deny"] + [each.because for each in said]
        objections = self._judgement.seen.objections() if any(fact.entity == "request" for fact in asked) else ()
        because = "; ".join(dict.fromkeys(map(str, objections))) or next(filter(None, reasons), "")
        missing, told = tuple(map(str, lacking)), {"look_ups": wanted, "retries": retries}
        return binding.ground(
            evidence.policy.id, "guard", answer, because, missing=missing, questions=tuple(questions), **told
        )

    def before_card(self, ground: Ground, facts: CardFacts) -> Ground:
        """Check that all facts on the user's card are known. Return the look-ups for missing facts. If there are none,
        no card can be shown.
        """
        if facts.is_known:
            return ground
        wanted, _, retries = self._look_ups(facts.lacking)
        missing, look_ups = tuple(map(str, facts.lacking)), wanted or retries
        if not look_ups:
            why = "; ".join(facts.faults) or f"{missing[0]} is unknown"
            told = f"the user cannot be asked about this call: {why}"
            return self._binding.ground(ground.policy, "rule", "deny", told, missing=missing, for_agent=told)
        why = f"the user must be shown {', '.join(missing)}"
        told = f"{why}. Look it up first"
        return self._binding.ground(
            ground.policy, "rule", "look_up", why, missing=missing, look_ups=look_ups, for_agent=told
        )

    def _undecided_facts(self, evidence: PolicyEvidence) -> tuple[Fact, ...]:
        """Return the facts that decide which of several denials applies. Called if every path ends in a denial."""
        found: list[Fact] = []
        for completion in evidence.completions:
            fact = completion.reads[-1] if completion.paths > 1 and completion.reads else None
            entity = self._entities.get(fact.entity) if fact is not None else None
            if fact is None or entity is None or fact.key is None or fact.field not in entity.fields:
                continue
            field = entity.fields[fact.field]
            if field.origin == "system" and not is_known(self._judgement.seen.read(entity, fact.key, field)):
                found.append(fact)
        return _unique(found)

    def _question(self, fact: Fact, whom: Whom) -> Question:
        if fact.entity == "request":
            return Question(str(fact), "We found no request from you for this. Should it be done?", whom)
        return Question(str(fact), question_about(fact, self._entities.get(fact.entity)), whom)

    def _look_ups(self, lacking: Iterable[Fact]) -> tuple[tuple[LookUp, ...], list[Fact], tuple[LookUp, ...]]:
        """Return the look-ups for these facts, the facts without a look-up, and the look-ups that have failed."""
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
                tool, arguments, _ = self._made[each]
                if self._ledger.answers.has_failed(tool, arguments, self._judgement.made):
                    failed[each] = [str(fact)]
        return self._named(wanted), blind, self._named(failed)

    def _named(self, facts: Mapping[str, list[str]]) -> tuple[LookUp, ...]:
        return tuple([LookUp(*self._made[name][:2], tuple(shown)) for name, shown in facts.items()])

    def _way_to(self, fact: Fact, named: Sequence[Any]) -> tuple[str, list[str]]:
        entity, key, tried = self._entities[fact.entity], key_of(named), list[str]()
        parts = dict(zip(entity.key, key, strict=False))
        for way in self._ledger.schema.ways[entity.name, fact.field]:
            arguments = way.given(parts)
            name = f"{way.tool} {arguments!r}"
            if name not in self._made:
                before = self._ledger.answers.to(way.tool, arguments, self._judgement.made)
                self._made[name] = (way.tool, arguments, before)
            made = self._made[name][2]
            if not made or self._may_show_more(made, entity, key, fact.field):
                return name, tried
            tried.append(name)
        return self._snapshot(entity, tried), tried

    def _snapshot(self, entity: Entity, tried: Sequence[str]) -> str:
        """Return the name of the look-up that shows an opened page, if the page has not been shown since. Otherwise
        return an empty string.
        """
        actions = self._ledger.schema.actions
        if actions is None or entity.read is None or not actions.pages.shows(entity.read.tool):
            return ""
        opened = [
            made.step for name in tried for made in self._made[name][2] if self._made[name][0] == entity.read.tool
        ]
        tool, name = actions.pages.snapshot, f"{actions.pages.snapshot} {{}}"
        if not opened or tool not in self._ledger.schema.called:
            return ""
        shown = self._ledger.answers.to(tool, {}, self._judgement.made)
        self._made[name] = (tool, {}, shown)
        return "" if any(made.step > max(opened) for made in shown) else name

    def _may_show_more(self, made: Sequence[CallRecord], entity: Entity, key: Key, field: str) -> bool:
        ledger, at = self._ledger, self._judgement.made
        is_current = any(ledger.changes.is_current(entity.name, key, field, each.step, at) for each in made)
        seen = ledger.seen_by(at, entity, key)
        return (
            not is_current
            or (seen is not None and seen.may_be_settled(entity.named(field)))
            or ledger.may_be_read_again(entity, key, field, at)
        )
