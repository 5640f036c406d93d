"""Conversations under a changed policy to learn from, on half of the policies that can be changed; the other half is
kept for the test.

The paper leaves this to future work (its appendix C finds that a model which recalls its policies does not follow one
that the prompt replaces). A model that sees changes which matter, changes that leave the task as it was and changes of
something else has to read them; one that only sees the first kind could learn to do the contrary of what it knows.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from bylaw.align.changed import changed_pack, function_in
from bylaw.align.dataset import Row, Shape, conversation_row
from bylaw.align.gold import CannotPassError, Change, gold
from bylaw.align.override import Overridden, cited_by, load_overrides
from bylaw.align.prompt import pack_named
from bylaw.packs.clinic import tasks as clinic_tasks
from bylaw.packs.clinic.simulator.truth import POLICIES
from bylaw.packs.clinic.tasks import Scenario
from bylaw.packs.clinic.tasks.contraries import LIFTED, OPPOSED, Contrary, contraries
from bylaw.packs.clinic.tasks.overrides import changes

TURNED, SAME, ELSEWHERE = 16, 4, 6
"""Of every contrary, conversations in which it changes what is right, in which it does not, and to which it does not
apply."""


class Changed(Struct, frozen=True):
    """A task to be learned under a change."""

    task: Scenario
    policy: str
    words: str


def learned_changes() -> frozenset[str]:
    """The half of the policies whose changes may be learned."""
    return frozenset(random.Random("changes").sample(OPPOSED, len(OPPOSED) // 2))


def held_out_overrides() -> list[Overridden]:
    """The test's tasks on the other half."""
    learned = learned_changes()
    return [case for case in load_overrides() if case.policy not in learned]


@cache
def change_to(policy: str, words: str) -> Change:
    """A policy of the clinic with one of its contraries in its place."""
    held = pack_named("clinic")
    contrary = next(each for each in contraries(policy) if each.words == words)
    guard = None
    if LIFTED.get(policy) != words:
        text = (Path(clinic_tasks.__file__).parent / "guards" / "contraries.py").read_text(encoding="utf-8")
        guard = function_in(text, policy.replace("-", "_"))
        assert guard is not None, policy
    old = " ".join(cited_by(held.policies[policy].citations))
    return Change(policy, old, contrary, changed_pack(held, policy, words, guard))


def changed_tasks(tasks: Sequence[Scenario]) -> Iterator[Changed]:
    """Tasks under changes of the half that may be learned, drawn from training tasks of one errand."""
    single = [task for task in tasks if len(task.errands) == 1]
    for policy in sorted(learned_changes()):
        rng = random.Random(f"changes/{policy}")
        drawn = rng.sample(single, len(single))
        for contrary in contraries(policy):
            yield from _under(policy, contrary, [task for task in drawn if task.focus[0] == policy])
            yield from _elsewhere(policy, contrary, drawn)


def _under(policy: str, contrary: Contrary, tasks: Sequence[Scenario]) -> Iterator[Changed]:
    left = {True: TURNED, False: SAME}
    for task in tasks:
        if not any(left.values()):
            return
        for each, found in changes(task, policy):
            is_turned = found.task.errands[0].right != task.errands[0].right
            if each.words == contrary.words and left[is_turned]:
                left[is_turned] -= 1
                yield Changed(found.task, policy, contrary.words)


def _elsewhere(policy: str, contrary: Contrary, tasks: Sequence[Scenario]) -> Iterator[Changed]:
    """Tasks that the policy has nothing to do with, most of them to be refused."""
    others = [task for task in tasks if task.errands[0].want.tool not in POLICIES[policy].tools]
    refused = [task for task in others if task.errands[0].right is None]
    done = [task for task in others if task.errands[0].right is not None]
    for task in (*refused[: 2 * ELSEWHERE // 3], *done[: ELSEWHERE - 2 * ELSEWHERE // 3]):
        yield Changed(task, policy, contrary.words)


def override_row(changed: Changed, shape: Shape, *, working: bool, seed: int = 0) -> Row | None:
    """One of them as a row; None where its caller contradicts themselves."""
    change = change_to(changed.policy, changed.words)
    try:
        talk = gold(changed.task, seed=seed, working=working, change=change)
    except CannotPassError:
        return None
    row = conversation_row("clinic", talk, shape, override=change.told)
    return row | {"id": f"override/{changed.policy}/{changed.task.id}"}
