"""From evidence to decision: what guards and rules said of a call becomes allow, deny, look_up or ask.

Unsure is never allow: what is unknown is looked up where a look-up can tell, else asked; what could not be judged is
refused or asked, as the pack says.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.conduct import RuleFinding
from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.facts.call_record import CallRecord
from bylaw.facts.contradiction import may_be_settled
from bylaw.facts.entity import Entity, Fact, Key, ReadTool, is_known
from bylaw.facts.ledger import Ledger
from bylaw.facts.question import question_about
from bylaw.facts.schema import Schema
from bylaw.facts.value import key_of
from bylaw.pack import Pack
from bylaw.policy.posture import Posture, Postures
from bylaw.policy.statement import Policy
from bylaw.policy.tool import misfit
from bylaw.rule.circuit import Assessment
from bylaw.shield.decision import GRAVEST, Answer, Decision, Ground, LookUp, Question, Text, Whom, firmest, gravest
from bylaw.shield.feedback import FAULT, feedback
from bylaw.shield.for_person import for_person
from bylaw.trace.event import Card, LookedUp

POSTURES: tuple[Posture, ...] = ("enforce", "advise", "shadow")
"""The firmest first."""
_PERMIT = {"permit"}
_DENY = {"deny"}
_Name = tuple[Any, ...]
"""A call, told by its tool and its arguments, which are parts of keys."""


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

    def grounds(
        self, judgement: Judgement, ledger: Ledger, lacks: str = "", weighed: Assessment | None = None
    ) -> list[Ground]:
        """What every policy says of a judged call, those that object first.

        `lacks` says why no history is known, `weighed` how the rules lean on the call together: a hard rule vetoes, a
        soft one that is broken or open counts by its weight.
        """
        tool = judgement.made.call.tool
        found: list[Ground] = []
        fault = judgement.fault or misfit(judgement.made.tool, judgement.made.call.arguments)
        if lacks and not fault and self._is_bound(judgement):
            fault = lacks
        try:
            found += [self._of_guard(judgement, evidence, ledger) for evidence in judgement.evidence]
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
        return sorted(found, key=_is_allowed) if len(found) > 1 else found

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
        book, tool = self.pack.book, judgement.made.tool
        return book.eps > 0.0 and bool(book.rules) and (tool is None or tool.effect == "write")

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
        """Whether nothing but a card's answer would do, and the user may still give it: then they are asked."""
        predicates = self.pack.book.predicates
        return finding.puts_card and any(predicates[name].consent == "card" for name, _ in finding.whys)

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
    ) -> Decision:
        """What is to become of a judged call; `shown` are look-ups whose results the agent is told."""
        call = judgement.made.call
        answer, allowed, enforced = outcome(grounds)
        unguarded = _changes(judgement) and not self._binding(grounds) and not judgement.fault
        text = person = ""
        if answer != "allow":
            text = Text(lambda: self._feedback(call.tool, grounds, approval, card, shown, runs=allowed))
            # What is known is as of now, whenever it is read.
            seen = list(judgement.seen.answers()) if answer == "ask" else ()
            person = Text(lambda: for_person(call, grounds, seen))
        said = (answer, allowed, enforced, tuple(grounds), unguarded, text, person, approval)
        found = Decision(name, call.tool, dict(call.arguments), *said, card=card)
        return found if weighed is None else replace(found, probability=weighed.p_action, interval=weighed.interval)

    def _feedback(
        self,
        tool: str,
        grounds: Sequence[Ground],
        approval: str,
        card: Card | None,
        shown: Sequence[LookedUp],
        *,
        runs: bool,
    ) -> str:
        told = [ground for ground in grounds if ground.posture != "shadow"]
        worst = gravest([ground.answer for ground in told])
        text = card.text if card is not None else ""
        return feedback(self.pack, tool, worst, told, runs=runs, approval=approval, card=text, shown=shown)

    def _is_bound(self, judgement: Judgement) -> bool:
        """Whether any policy may have a say: a guard, or, since the call changes something, a rule."""
        tool = judgement.made.tool
        changes = tool is None or tool.effect == "write"
        return bool(judgement.evidence or judgement.rules or judgement.open_rules or (changes and self.pack.book.rules))

    def _of_guard(self, judgement: Judgement, evidence: PolicyEvidence, ledger: Ledger) -> Ground:
        policy, tool, said = evidence.policy, judgement.made.call.tool, evidence.completions
        permit = self._permits.get((tool, policy.id)) or self._permit(tool, policy)
        if len(said) == 1 and said[0].outcome == "permit":
            return permit
        outcomes = {completion.outcome for completion in said}
        if outcomes == _PERMIT:
            return permit
        posture = permit.posture
        if outcomes == _DENY:
            if len(said) == 1 and said[0].paths == 1:
                return Ground(policy.id, "guard", "deny", posture, said[0].because, policy.citations)
            # Where several ways it may be all end in a denial, the words of one of them would be a guess.
            open_facts = {fact: str(fact) for fact in self._open_facts(judgement, evidence)}
            wanted, _, _ = look_ups(self.pack.schema, ledger, open_facts, judgement.made)
            # An answer of the user may tell which denial it is, such as the amount that would be right.
            asked = _unique(fact for each in said for fact in each.asked)
            questions = [self._question(fact, "user") for fact in asked if fact.entity != "context"]
            told = ("", policy.citations, (), tuple(wanted), tuple(questions))
            return Ground(policy.id, "guard", "deny", posture, *told)
        if "failed" in outcomes:
            why = next(each.because for each in said if each.outcome == "failed")
            answer: Answer = self.on_error(tool)
            return Ground(policy.id, "guard", answer, posture, why, policy.citations, failed=True)
        lacking = {fact: str(fact) for each in said for fact in each.lacking}
        asked = list(dict.fromkeys([fact for each in said for fact in each.asked]))
        wanted, blind, retries = look_ups(self.pack.schema, ledger, lacking, judgement.made)
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
        told = (because, policy.citations, tuple(lacking.values()), tuple(wanted), tuple(questions), tuple(retries))
        return Ground(policy.id, "guard", answer, posture, *told)

    def _permit(self, tool: str, policy: Policy) -> Ground:
        posture = self.postures.of(tool, policy.id)
        found = self._permits[tool, policy.id] = Ground(
            policy.id, "guard", "allow", posture, citations=policy.citations
        )
        return found

    def _open_facts(self, judgement: Judgement, evidence: PolicyEvidence) -> list[Fact]:
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


def outcome(grounds: Iterable[Ground]) -> tuple[Answer, bool, Posture]:
    """The true answer, whether the call runs, and the posture that rests on."""
    objecting = [ground for ground in grounds if ground.answer != "allow"]
    if not objecting:
        return "allow", True, "enforce"
    if len(objecting) == 1:
        (only,) = objecting
        return only.answer, only.posture != "enforce", only.posture
    by_posture = firmest(objecting)
    answer = gravest(by_posture.values())
    posture: Posture = next(each for each in POSTURES if each in by_posture)
    return answer, posture != "enforce", posture


def _is_allowed(ground: Ground) -> bool:
    return ground.answer == "allow"


def _unique(facts: Iterable[Fact]) -> list[Fact]:
    return list(dict.fromkeys(facts))


def _asked(text: str) -> str:
    """A statement as a question."""
    return f"{text.rstrip(' .?!')}?" if text.rstrip(" .?!") else ""


def look_ups(
    schema: Schema, ledger: Ledger, lacking: Mapping[Fact, str], at: CallRecord
) -> tuple[list[LookUp], list[Fact], list[LookUp]]:
    """The look-ups to make before the call `at`, the facts that none is left for, and look-ups that failed.

    `lacking` are facts, each with its text.
    """
    found: dict[_Name, tuple[str, dict[str, Any], list[str]]] = {}
    failed: dict[_Name, LookUp] = {}
    blind: list[Fact] = []
    answers: dict[_Name, list[CallRecord]] = {}
    calls: dict[tuple[Key, int], tuple[_Name, dict[str, Any]]] = {}
    """By key and way, which mostly show several of the facts: the arguments, and a name for the call."""
    for fact, text in lacking.items():
        if fact.key is None:
            continue
        entity = schema.entities[fact.entity]
        key = key_of(fact.key)
        ways: list[tuple[_Name, str, dict[str, Any]]] = []
        for way in schema.ways_to(entity, fact.field):
            call = calls.get((key, id(way)))
            if call is None:
                call = calls[key, id(way)] = _call(way, dict(zip(entity.key, key, strict=False)))
            name, arguments = call
            made = answers.get(name)
            if made is None:
                made = answers[name] = ledger.answers.to(way.tool, arguments, at)
            if not made or _would_tell(ledger, made, entity, key, fact.field, at):
                look_up = found.get(name)
                if look_up is None:
                    look_up = found[name] = (way.tool, arguments, [])
                look_up[2].append(text)
                break
            ways.append((name, way.tool, arguments))
        else:
            blind.append(fact)
            for name, tool, arguments in ways:
                if ledger.answers.has_failed(tool, arguments, at):
                    failed[name] = LookUp(tool, arguments, (text,))
    wanted = [LookUp(tool, arguments, tuple(facts)) for tool, arguments, facts in found.values()]
    return wanted, blind, list(failed.values())


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


def _call(way: ReadTool, named: Mapping[str, Any]) -> tuple[_Name, dict[str, Any]]:
    arguments = {argument: named.get(part) for argument, part in way.arguments.items()}
    return (way.tool, *arguments.items()), arguments
