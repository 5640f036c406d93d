"""Yes/no questions to learn from, on half of the policies; the other half is kept for the test.

A model that has learned to act on a policy was never asked about it in so many words. These rows teach the form of an
answer: state the policy, then say yes or no. What it says to questions on the other half shows what it knows.
"""

import random

from bylaw.align.bearing import Saw
from bylaw.align.dataset import Row, Shape, tools_text
from bylaw.align.episode import ChatMessage
from bylaw.align.prompt import PolicyPlace, pack_named, system_message
from bylaw.align.thought_words import saw_in_words
from bylaw.align.working import notes_of
from bylaw.guard import evaluate
from bylaw.pack import Pack
from bylaw_lab.align.knowledge import AskedFacts, Question, Situation, asked_of, questions, read_questions

EACH = 40
"""Questions on one policy at most, half of them answered with yes."""


def learned_policies(pack: str) -> frozenset[str]:
    """The half whose questions may be learned."""
    names = sorted(read_questions(pack_named(pack)))
    return frozenset(random.Random("halves").sample(names, len(names) // 2))


def held_out_questions(pack: str) -> list[Question]:
    """The test's questions on the other half."""
    learned = learned_policies(pack)
    return [one for one in questions(pack) if one.policy not in learned]


def question_rows(pack: str, shape: Shape, *, each: int = EACH, is_worked: bool = False) -> list[Row]:
    """Questions on the half that may be learned, as conversations of one turn; with
    `is_worked` their thoughts show how facts decide.

    Of a model that learns them only `held_out_questions` may be asked, not all of `questions`.
    """
    held = pack_named(pack)
    written = read_questions(held)
    rows: list[Row] = []
    for policy in sorted(learned_policies(pack)):
        rng = random.Random(f"rows/{policy}")
        known = dict(asked_of(held, policy, written[policy]))
        sides = [[one for one in known if one.answer is side] for side in (True, False)]
        count = min(each // 2, *map(len, sides))
        for one in [one for side in sides for one in rng.sample(side, count)]:
            answer = "Yes" if one.answer else "No"
            if shape.thoughts:
                answer = f"<think>{_thought(held, one, known[one] if is_worked else None)}</think>\n{answer}"
            messages = [*at_the_desk(pack, one.text, shape.policy), {"role": "assistant", "content": answer}]
            rows.append({"messages": messages, "tools": tools_text(pack), "id": f"question/{policy}/{len(rows)}"})
    return rows


def at_the_desk(pack: str, question: str, policy: PolicyPlace) -> list[ChatMessage]:
    """A question as a caller's words in the agent's own work."""
    words = f"{question} Answer with Yes or No."
    return [{"role": "system", "content": system_message(pack, policy)}, {"role": "user", "content": words}]


def working(pack: Pack, policy: str, each: Situation) -> tuple[list[str], str]:
    """What the guard read of a situation and held against what, in words; and why it denies, where it does."""
    guard, source = pack.guards[policy], AskedFacts(each.facts)
    done = evaluate(guard, each.arguments, source, tool=each.tool, now=pack.now)[0]
    notes = notes_of(guard, each.arguments, source, tool=each.tool, now=pack.now)
    seen: list[Saw] = []
    for fact in dict.fromkeys(done.reads):
        entity = pack.schema.entities[fact.entity]
        if fact.field in entity.fields and fact.key is not None:
            field = entity.fields[fact.field]
            held = tuple(note.words for note in notes if note.fact == fact)
            seen.append(Saw(fact, field, source.read(entity, fact.key, field), held))
    said = [note.said() for note in notes if note.fact is None]
    return [*saw_in_words(seen), *said], done.because if done.outcome == "deny" else ""


def _thought(pack: Pack, question: Question, about: Situation | None) -> str:
    """The policy, and with what it is about: the facts, what they are held against and what follows."""
    policy = f"What counts here: {pack.policies[question.policy].definition}"
    if about is None:
        return policy
    facts, because = working(pack, question.policy, about)
    seen = f" So I have {'; '.join(facts)}." if facts else ""
    return f"{policy}{seen} {f'But {because}, so no.' if because else 'Nothing there stands in the way, so yes.'}"
