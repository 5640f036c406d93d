"""From evidence to decision: what guards and rules said of a call becomes allow, deny, look_up or ask.

Unsure is never allow: what is unknown is looked up where a look-up can tell, else asked; what could not be judged is
refused or asked, as the pack says.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.engine.rule_finding import RuleFinding
from bylaw.facts.call_record import CallRecord
from bylaw.facts.contradiction import may_be_settled
from bylaw.facts.entity import Entity, Fact, Key, ReadTool, is_known
from bylaw.facts.ledger import Ledger
from bylaw.facts.question import question_about
from bylaw.facts.schema import Schema
from bylaw.facts.value import key_of
from bylaw.pack import Pack
from bylaw.policy.posture import Postures
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
from bylaw.shield.feedback import FAULT, feedback
from bylaw.shield.for_person import for_person
from bylaw.trace.event import Card, LookedUp


class Decider:
    """Grounds for one call after the other, under one pack."""

    def __init__(self, pack: Pack, postures: Postures) -> None:
        self.pack = pack
        self.terms = postures.approval
        """How long a question waits for a person, and what then."""
        self.resolves, self.shows = postures.resolve != "agent", postures.resolve == "show"
        """Whether missing look-ups are made through the host's tools, and whether the agent is shown them."""
        self.postures = postures
        self._permits: dict[tuple[str, str], Ground] = {}
        """By tool and policy, the ground of a guard that permits: most of all grounds, and always the same."""
        self._permitted: dict[str, tuple[Ground, ...]] = {}
        """By tool, the grounds of a call that nothing speaks against."""

    def grounds(
        self, judgement: Judgement, ledger: Ledger, lacks: str = "", weighed: Assessment | None = None
    ) -> tuple[Ground, ...]:
        """What every policy says of a judged call, those that object first.

        `lacks` says why no history is known, `weighed` how the rules lean on the call together: a hard rule vetoes, a
        soft one that is broken or open counts by its weight.
        """
        tool = judgement.made.call.tool
        fault = judgement.fault or misfit(judgement.made.tool, judgement.made.call.arguments)
        is_permitted = not (fault or lacks) and weighed is None and _is_permitted(judgement)
        if is_permitted and (known := self._permitted.get(tool)) is not None:
            return known
        if lacks and not fault and self._is_bound(judgement):
            fault = lacks
        found: list[Ground] = []
        try:
            ways = LookUps(self.pack.schema, ledger, judgement.made)
            found += [self._of_guard(judgement, evidence, ways) for evidence in judgement.evidence]
            if weighed is not None or judgement.rules or judgement.open_rules:
                found += [self._of_broken(finding, tool, weighed) for finding in judgement.rules]
                found += [self._of_open(finding, tool, weighed) for finding in judgement.open_rules]
                if not any(map(self._waits_for_card, judgement.rules)):
                    # Once the user has answered a card, all is weighed again.
                    found += self._of_circuit(found, tool, weighed)
        except Exception as error:
            # Whatever is wrong with our own code: the call is not judged, and that is said.
            fault = fault or f"{FAULT}: {type(error).__name__}: {error}"
        if not fault and _changes(judgement) and not self._binding(found) and not self.pack.binds(tool):
            found += self._of_unguarded(tool)
        if fault:
            found.append(Ground("", "call", self.on_error(tool), self.postures.of(tool), fault))
        said = tuple(sorted(found, key=_is_allowed))
        if is_permitted:
            self._permitted[tool] = said
        return said

    def _of_unguarded(self, tool: str) -> list[Ground]:
        """What the pack says of a write that no policy binds; nothing where that is to allow it."""
        answer = self.postures.of_unguarded(tool)
        if answer == "allow":
            return []
        because = "no policy says whether this may be done"
        questions = () if answer == "deny" else (Question("unguarded", f"{because}: should it be done?", "person"),)
        return [Ground("", "unguarded", answer, self.postures.of(tool), because, questions=questions)]

    def _binding(self, grounds: Iterable[Ground]) -> bool:
        """Whether any of these is an enforced policy's; what is only noted binds nobody."""
        held_back = self.pack.held_back
        for ground in grounds:
            if ground.kind not in ("call", "stop", "unguarded", "doubt") and ground.policy not in held_back:
                return True
        return False

    def of_doubt(self, tool: str, because: str) -> Ground:
        """What the host has against a tool: a person decides on each call."""
        question = Question("doubt", f"{because}: should it be called?", "person")
        return Ground("", "doubt", "ask", self.postures.of(tool), because, questions=(question,))

    def on_error(self, tool: str) -> Answer:
        """What becomes of a call of `tool` that could not be judged: never `allow`, unless it is known to read only."""
        declared = self.pack.schema.tools.get(tool)
        is_read = declared is not None and declared.effect == "read"
        return self.postures.on_read_error if is_read else self.postures.on_error

    def of_shape(self, finding: RuleFinding, tool: str) -> Ground:
        """A rule that the turn as a whole would break."""
        return self._of_rule(finding, tool, "deny")

    def must_weigh(self, judgement: Judgement) -> bool:
        """Whether the circuit has a say: a rule is broken or open, or a call must do better than break none."""
        if judgement.rules or judgement.open_rules:
            return True
        return self.pack.book.eps > 0.0 and bool(self.pack.book.rules) and _changes(judgement)

    def _of_broken(self, finding: RuleFinding, tool: str, weighed: Assessment | None) -> Ground:
        answer: Answer = "deny" if weighed is None else weighed.decision
        if finding.rule.hard:
            # Broken whether or not the call is made, it says nothing against the call; nor does that allow it.
            answer = "ask" if weighed is not None and finding.rule.name in weighed.conflict else "deny"
        if answer == "deny" and self._waits_for_card(finding):
            predicates = self.pack.book.predicates
            asked = [(name, _asked(predicates[name].description) or _AGREES) for name, _ in finding.whys]
            return self._of_rule(finding, tool, "ask", tuple(Question(*each, "user") for each in asked))
        return self._of_rule(finding, tool, answer)

    def _waits_for_card(self, finding: RuleFinding) -> bool:
        """Whether the user has not agreed to the call, and may still be asked to."""
        return finding.puts_card

    def _of_open(self, finding: RuleFinding, tool: str, weighed: Assessment | None) -> Ground:
        if weighed is not None and not finding.rule.hard and weighed.decision == "allow":
            return self._of_rule(finding, tool, "allow")
        questions = self._questions_of(finding)
        return self._of_rule(finding, tool, "ask", questions)

    def _of_circuit(self, found: Sequence[Ground], tool: str, weighed: Assessment | None) -> list[Ground]:
        """What the rules say together, where none of them says it alone."""
        said = gravest([ground.answer for ground in found if ground.kind == "rule"])
        if weighed is None or GRAVEST.index(said) <= GRAVEST.index(weighed.decision):
            return []
        low, high = weighed.interval
        because = f"the rules together put the call between {low:+.2f} and {high:+.2f}, and it needs {weighed.eps:+.2f}"
        return [Ground("", "rule", weighed.decision, self.postures.of(tool), because)]

    def decide(
        self,
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
        """What is to become of a judged call; `shown` are look-ups whose results the agent is told, `earlier` says
        whether the same call ran before, and `failures` how often its card was answered in vain."""
        call = judgement.made.call
        answer, allowed, enforced = outcome(grounds)
        unguarded = _changes(judgement) and not self._binding(grounds) and not judgement.fault
        text = person = ""
        if answer != "allow":
            text = Text(
                lambda: self._feedback(call.tool, grounds, approval, card, shown, earlier, failures, runs=allowed)
            )
            # What is known is as of now, whenever it is read.
            seen = list(judgement.seen.answers()) if answer == "ask" else ()
            person = Text(lambda: for_person(call, grounds, seen))
        said = (answer, allowed, enforced, tuple(grounds), unguarded, text, person, approval)
        found = Decision(name, call.tool, dict(call.arguments), *said, card=card, earlier=earlier)
        return found if weighed is None else replace(found, probability=weighed.p_action, interval=weighed.interval)

    def _feedback(
        self,
        tool: str,
        grounds: Sequence[Ground],
        approval: str,
        card: Card | None,
        shown: Sequence[LookedUp],
        earlier: Earlier,
        failures: int,
        *,
        runs: bool,
    ) -> str:
        told = [ground for ground in grounds if ground.posture != "shadow"]
        worst = gravest([ground.answer for ground in told])
        text = card.text if card is not None else ""
        return feedback(
            self.pack,
            tool,
            worst,
            told,
            runs=runs,
            approval=approval,
            card=text,
            shown=shown,
            earlier=earlier,
            failures=failures,
        )

    def _is_bound(self, judgement: Judgement) -> bool:
        """Whether any policy may have a say: a guard, or, since the call changes something, a rule."""
        speaks = judgement.evidence or judgement.rules or judgement.open_rules
        return bool(speaks or (_changes(judgement) and self.pack.book.rules))

    def _of_guard(self, judgement: Judgement, evidence: PolicyEvidence, ways: "LookUps") -> Ground:
        policy, tool, said = evidence.policy, judgement.made.call.tool, evidence.completions
        permit = self._permits.get((tool, policy.id))
        if permit is None:
            posture = self.postures.of(tool, policy.id)
            permit = Ground(policy.id, "guard", "allow", posture, citations=policy.citations)
            self._permits[tool, policy.id] = permit
        first, posture = said[0], permit.posture
        outcome = first.outcome if len(said) == 1 else evidence.outcome
        if outcome == "permit":
            return permit
        if outcome == "deny":
            if len(said) == 1 and first.paths == 1:
                return Ground(policy.id, "guard", "deny", posture, first.because, policy.citations)
            # Where several ways it may be all end in a denial, the words of one of them would be a guess.
            wanted, _, _ = ways.find(self._open_facts(judgement, evidence))
            # An answer of the user may tell which denial it is, such as the amount that would be right.
            asked = _unique(fact for each in said for fact in each.asked)
            questions = [self._question(fact, "user") for fact in asked if fact.entity != "context"]
            told = ("", policy.citations, (), tuple(wanted), tuple(questions))
            return Ground(policy.id, "guard", "deny", posture, *told)
        if outcome == "failed":
            why = next(each.because for each in said if each.outcome == "failed")
            answer: Answer = self.on_error(tool)
            return Ground(policy.id, "guard", answer, posture, why, policy.citations, failed=True)
        lacking, asked = first.lacking, first.asked
        if len(said) > 1:
            lacking = _unique(fact for each in said for fact in each.lacking)
            asked = _unique(fact for each in said for fact in each.asked)
        wanted, blind, retries = ways.find(lacking)
        questions: list[Question] = []
        objections: Sequence[str] = ()
        if asked:
            questions = [self._question(fact, "person" if fact.entity == "context" else "user") for fact in asked]
            objections = judgement.seen.objections() if any(fact.entity == "request" for fact in asked) else ()
        if blind:
            questions += [self._question(fact, "person") for fact in blind]
        answer = "look_up" if wanted else "ask" if questions else self.on_error(judgement.made.call.tool)
        if answer == "allow":
            # A guard that is of two minds is no error: only what could not be judged may be let through.
            answer = self.postures.on_error
        denials = [each.because for each in said if each.outcome == "deny"]
        because = denials[0] if denials else next((each.because for each in said if each.because), "")
        because = "; ".join(objections) or because
        missing = tuple([ways.text_of(fact) for fact in lacking])
        told = (because, policy.citations, missing, tuple(wanted), tuple(questions), tuple(retries))
        return Ground(policy.id, "guard", answer, posture, *told)

    def _open_facts(self, judgement: Judgement, evidence: PolicyEvidence) -> tuple[Fact, ...]:
        """Where every way it may be ends in a denial: the facts that would tell which of them it is."""
        entities = self.pack.schema.entities
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

    def _question(self, fact: Fact, whom: Whom) -> Question:
        if fact.entity == "request":
            return Question(str(fact), "Nothing shows that you asked for this. Should it be done?", whom)
        return Question(str(fact), question_about(fact, self.pack.schema.entities.get(fact.entity)), whom)

    def _of_rule(self, finding: RuleFinding, tool: str, answer: Answer, questions: tuple[Question, ...] = ()) -> Ground:
        name = finding.rule.policy
        told = (finding.because, self.pack.policies[name].citations, (), (), questions)
        posture, for_agent = self.postures.of(tool, name), finding.for_agent
        return Ground(name, "rule", answer, posture, *told, for_agent=for_agent, puts_card=finding.puts_card)

    def _questions_of(self, finding: RuleFinding) -> tuple[Question, ...]:
        """What would settle an open rule: its predicates without a value, put to the user where consent is at stake."""
        predicates = self.pack.book.predicates
        policy = finding.rule.policy
        unknown = [predicates[name] for name, value in finding.values if value is None and name in predicates]
        definition = self.pack.policies[policy].definition
        return tuple(
            Question(
                each.name,
                each.question.strip()
                or _asked(each.description or definition)
                or (_AGREES if each.way == "consented" else f"Is `{each.name}` so here?"),
                "user" if each.way in ("consented", "said") else "person",
            )
            for each in unknown
        ) or (Question(policy, f"{definition or policy}: is that so here?", "person"),)


def _changes(judgement: Judgement) -> bool:
    """Whether the call may change something."""
    tool = judgement.made.tool
    return tool is None or tool.effect == "write"


_AGREES = "Do you agree to this?"


def _is_allowed(ground: Ground) -> bool:
    return ground.answer == "allow"


def _is_permitted(judgement: Judgement) -> bool:
    """Whether every guard permits the call, whatever is not known, and no rule has anything to say."""
    if judgement.rules or judgement.open_rules:
        return False
    for evidence in judgement.evidence:
        if len(evidence.completions) != 1 or evidence.completions[0].outcome != "permit":
            return False
    return True


def _unique(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(facts))


def _asked(text: str) -> str:
    """A statement as a question."""
    return f"{text.rstrip(' .?!')}?" if text.rstrip(" .?!") else ""


class LookUps:
    """The look-ups that would show what guards lack before one call: most of them lack the same."""

    def __init__(self, schema: Schema, ledger: Ledger, at: CallRecord) -> None:
        self._schema = schema
        self._ledger = ledger
        self._at = at
        self._ways: dict[Fact, tuple[_Call | None, list[_Call]]] = {}
        """By fact, the look-up to make, if one is left, and those that were made in vain."""
        self._calls: dict[tuple[Key, int], _Call] = {}
        """By key and way, which mostly show several of the facts."""
        self._texts: dict[Fact, str] = {}

    def text_of(self, fact: Fact) -> str:
        """A fact in words."""
        text = self._texts.get(fact)
        if text is None:
            text = self._texts[fact] = str(fact)
        return text

    def find(self, lacking: Iterable[Fact]) -> tuple[list[LookUp], list[Fact], list[LookUp]]:
        """The look-ups to make for these facts, the facts that none is left for, and look-ups that failed."""
        found: dict[int, tuple[_Call, list[str]]] = {}
        failed: dict[int, LookUp] = {}
        blind: list[Fact] = []
        for fact in lacking:
            if fact.key is None:
                continue
            call, tried = self._ways.get(fact) or self._way_to(fact)
            if call is not None:
                found.setdefault(id(call), (call, []))[1].append(self.text_of(fact))
                continue
            blind.append(fact)
            for each in tried:
                if self._ledger.answers.has_failed(each.tool, each.arguments, self._at):
                    failed[id(each)] = LookUp(each.tool, each.arguments, (self.text_of(fact),))
        wanted = [LookUp(call.tool, call.arguments, tuple(facts)) for call, facts in found.values()]
        return wanted, blind, list(failed.values())

    def _way_to(self, fact: Fact) -> "tuple[_Call | None, list[_Call]]":
        assert fact.key is not None
        entity, key, tried = self._schema.entities[fact.entity], key_of(fact.key), list[_Call]()
        found: _Call | None = None
        for way in self._schema.ways[entity.name, fact.field]:
            call = self._calls.get((key, id(way)))
            if call is None:
                call = self._calls[key, id(way)] = self._call(way, dict(zip(entity.key, key, strict=False)))
            if not call.made or _would_tell(self._ledger, call.made, entity, key, fact.field, self._at):
                found = call
                break
            tried.append(call)
        self._ways[fact] = (found, tried)
        return found, tried

    def _call(self, way: ReadTool, named: Mapping[str, Any]) -> "_Call":
        arguments = {argument: named.get(part) for argument, part in way.arguments.items()}
        for known in self._calls.values():
            # Two ways may be the same call.
            if known.tool == way.tool and known.arguments == arguments:
                return known
        return _Call(way.tool, arguments, self._ledger.answers.to(way.tool, arguments, self._at))


class _Call(Struct, frozen=True):
    """A look-up, and the answers that it has had."""

    tool: str
    arguments: dict[str, Any]
    made: Sequence[CallRecord]


def _would_tell(
    ledger: Ledger, made: Sequence[CallRecord], entity: Entity, key: Key, field: str, at: CallRecord
) -> bool:
    """Whether a look-up that was made before may tell more of a field now."""
    is_current = any(ledger.changes.is_current(entity.name, key, field, each.step, at) for each in made)
    return (
        not is_current
        or may_be_settled(ledger, entity, key, field, at)
        or ledger.may_be_read_again(entity, key, field, at)
    )
