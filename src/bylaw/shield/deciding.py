"""From evidence to decision: what guards and rules said of a call becomes allow, deny, look_up or ask.

Unsure is never allow: what is unknown is looked up where a look-up can tell, else asked; what could not be judged is
refused or asked, as the pack says.
"""

from collections.abc import Iterable, Sequence

from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.engine.pack import Pack
from bylaw.facts.entity import Fact
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import key_of
from bylaw.policy.posture import Posture, Postures
from bylaw.policy.tool import Misfit
from bylaw.shield.decision import Answer, Decision, Ground, LookUp, Question, Whom, firmest, gravest
from bylaw.shield.feedback import feedback, for_person


class Decider:
    """Grounds for one call after the other, under one pack."""

    def __init__(self, pack: Pack, postures: Postures) -> None:
        self.pack = pack
        self.terms = postures.approval
        """How long a question waits for a person, and what then."""
        self._postures = postures

    def grounds(self, judgement: Judgement, ledger: Ledger, lacks: str = "") -> list[Ground]:
        """What every policy says of a judged call, those that object first; `lacks`: why no history is known."""
        tool = judgement.made.call.tool
        found = [self._of_guard(judgement, evidence, ledger) for evidence in judgement.evidence]
        found += [self._of_rule(finding.rule.policy, tool, "deny", finding.because) for finding in judgement.rules]
        for finding in judgement.open_rules:
            questions = self._questions_of(finding.rule.policy, finding.values)
            found.append(self._of_rule(finding.rule.policy, tool, "ask", finding.because, questions))
        if fault := judgement.fault or self._misfit(judgement) or (lacks if self._is_bound(judgement) else ""):
            posture = self._postures.of(tool)
            found.append(Ground("", "call", self._postures.on_error, posture, fault))
        return sorted(found, key=lambda ground: ground.answer == "allow")

    def decide(self, judgement: Judgement, grounds: Sequence[Ground], name: str, approval: str = "") -> Decision:
        """What is to become of a judged call."""
        call, tools = judgement.made.call, self.pack.schema.tools
        answer, allowed, enforced = outcome(grounds)
        declared = tools.get(call.tool)
        changes = declared is None or declared.effect == "write"
        told = [ground for ground in grounds if ground.posture != "shadow"]
        worst = gravest([ground.answer for ground in told])
        text = feedback(self.pack, call.tool, worst, told, runs=allowed, approval=approval)
        unguarded = changes and not any(ground.kind != "call" for ground in grounds) and not judgement.fault
        person = for_person(self.pack, call, grounds) if answer != "allow" else ""
        said = (answer, allowed, enforced, tuple(grounds), unguarded, text, person, approval)
        return Decision(name, call.tool, dict(call.arguments), *said)

    def _is_bound(self, judgement: Judgement) -> bool:
        """Whether any policy may have a say: a guard, or, since the call changes something, a rule."""
        tool = judgement.made.tool
        changes = tool is None or tool.effect == "write"
        return bool(judgement.evidence or judgement.rules or judgement.open_rules or (changes and self.pack.book.rules))

    def _misfit(self, judgement: Judgement) -> str:
        """What is wrong with the arguments of a write, whether or not a guard looks at them."""
        call, tool = judgement.made.call, judgement.made.tool
        if tool is None or tool.effect != "write":
            return ""
        for name in tool.required:
            if call.arguments.get(name) is None:
                return f"argument `{name}` is missing"
        fitted = tool.fitted(call.arguments)
        return next((value.why for value in fitted.values() if isinstance(value, Misfit)), "")

    def _of_guard(self, judgement: Judgement, evidence: PolicyEvidence, ledger: Ledger) -> Ground:
        policy = evidence.policy
        posture = self._postures.of(judgement.made.call.tool, policy.id)
        outcomes = {completion.outcome for completion in evidence.completions}
        denials = [each.because for each in evidence.completions if each.outcome == "deny"]
        if outcomes == {"permit"}:
            return Ground(policy.id, "guard", "allow", posture, citations=policy.citations)
        if outcomes == {"deny"}:
            # Where several ways it may be all end in a denial, the words of one of them would be a guess.
            is_sure = len(evidence.completions) == 1 and evidence.completions[0].paths == 1
            return Ground(policy.id, "guard", "deny", posture, denials[0] if is_sure else "", policy.citations)
        if "failed" in outcomes:
            why = next(each.because for each in evidence.completions if each.outcome == "failed")
            return Ground(policy.id, "guard", self._postures.on_error, posture, why, policy.citations)
        lacking = _unique(fact for each in evidence.completions for fact in each.lacking)
        asked = _unique(fact for each in evidence.completions for fact in each.asked)
        look_ups, blind = self._look_ups(lacking, judgement, ledger)
        questions = [self._question(fact, "person" if fact.entity == "context" else "user") for fact in asked]
        questions += [self._question(fact, "person") for fact in blind]
        answer: Answer = "look_up" if look_ups else "ask" if questions else self._postures.on_error
        because = denials[0] if denials else next((each.because for each in evidence.completions if each.because), "")
        missing = tuple(map(str, lacking))
        told = (because, policy.citations, missing, tuple(look_ups), tuple(questions))
        return Ground(policy.id, "guard", answer, posture, *told)

    def _look_ups(
        self, lacking: Iterable[Fact], judgement: Judgement, ledger: Ledger
    ) -> tuple[list[LookUp], list[Fact]]:
        """The read calls whose arguments are known now, and the facts that no look-up is left for."""
        schema = self.pack.schema
        found: dict[str, LookUp] = {}
        blind: list[Fact] = []
        for fact in lacking:
            if fact.key is None:
                continue
            entity = schema.entities[fact.entity]
            key = key_of(fact.key)
            named = dict(zip(entity.key, key, strict=False))
            ways = [
                (way.tool, {argument: named.get(part) for argument, part in way.arguments.items()})
                for way in schema.ways_to(entity, fact.field)
            ]
            open_ways = [
                way for way in ways if not ledger.was_answered(*way, judgement.made, entity.name, key, fact.field)
            ]
            if not open_ways:
                blind.append(fact)
                continue
            tool, arguments = open_ways[0]
            name = f"{tool} {arguments}"
            facts = (*(found[name].facts if name in found else ()), str(fact))
            found[name] = LookUp(tool, arguments, facts)
        return list(found.values()), blind

    def _question(self, fact: Fact, whom: Whom) -> Question:
        entity = self.pack.schema.entities.get(fact.entity)
        field = entity.fields.get(fact.field) if entity is not None else None
        return Question(str(fact), (field.question if field is not None else "") or f"what is {fact}?", whom)

    def _of_rule(
        self, name: str, tool: str, answer: Answer, because: str, questions: tuple[Question, ...] = ()
    ) -> Ground:
        policy = self.pack.policies[name]
        posture = self._postures.of(tool, name)
        return Ground(name, "rule", answer, posture, because, policy.citations, (), (), questions)

    def _questions_of(self, policy: str, values: "tuple[tuple[str, bool | None], ...]") -> tuple[Question, ...]:
        """What would settle an open rule: its predicates without a value, put to the user where consent is at stake."""
        predicates = self.pack.book.predicates
        unknown = [predicates[name] for name, value in values if value is None and name in predicates]
        definition = self.pack.policies[policy].definition
        return tuple(
            Question(
                each.name,
                (each.description or definition) + "?",
                "user" if each.way in ("consented", "said") else "person",
            )
            for each in unknown
        ) or (Question(policy, f"{definition} Is that so here?", "person"),)


def outcome(grounds: Iterable[Ground]) -> tuple[Answer, bool, Posture]:
    """The true answer, whether the call runs, and the posture that rests on."""
    by_posture = firmest(grounds)
    answer = gravest(list(by_posture.values()))
    for posture in ("enforce", "advise", "shadow"):
        if by_posture.get(posture, "allow") != "allow":
            return answer, posture != "enforce", posture
    return answer, True, "enforce"


def _unique(facts: Iterable[Fact]) -> list[Fact]:
    return list(dict.fromkeys(facts))
