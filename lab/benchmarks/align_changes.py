"""Conversations under a changed policy to learn from, on half of the policies that can be changed; the other half is
kept for the test.

The paper leaves this to future work (its appendix C finds that a model which recalls its policies does not follow one
that the prompt replaces). A model that sees changes which matter, changes that leave the task as it was and changes of
something else has to read them; one that only sees the first kind could learn to do the contrary of what it knows.
"""

import ast
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bylaw.align.dataset import Row, Shape, conversation_row
from bylaw.align.gold import CannotPassError, gold
from bylaw.align.prompt import pack_named
from bylaw.align.thought import Thought
from bylaw.errors import UsageError
from bylaw.pack import Pack, build_pack
from bylaw.policy.folder import read_folder
from bylaw.policy.python import parse_python, text_of
from bylaw_lab.align.override import Overridden, cited_by, load_overrides
from bylaw_lab.clinic import tasks as clinic_tasks
from bylaw_lab.clinic.simulator.truth import POLICIES
from bylaw_lab.clinic.tasks import Scenario
from bylaw_lab.clinic.tasks.careful import Careful
from bylaw_lab.clinic.tasks.contraries import LIFTED, OPPOSED, Contrary, contraries
from bylaw_lab.clinic.tasks.overrides import changes

TURNED, SAME, ELSEWHERE = 16, 4, 6
"""Of every contrary, conversations in which it changes what is right, in which it does not, and to which it does not
apply."""
PERMITS = "    return permit()\n"


class Change(Struct, frozen=True):
    """A policy that the prompt replaces by its contrary."""

    policy: str
    old: str
    """The sentences that no longer hold."""
    contrary: Contrary
    pack: Pack
    """The pack with the contrary in its place."""

    @property
    def told(self) -> tuple[str, str]:
        """What the prompt says: the old words and the new."""
        return self.old, self.contrary.words


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
        talk = gold(
            changed.task,
            seed=seed,
            working=working,
            pack=change.pack,
            agent=Careful(changed.task, (change.policy, change.contrary)),
            tell=lambda thought, turn: recalling(thought, change, is_first=not turn),
        )
    except CannotPassError:
        return None
    row = conversation_row("clinic", talk, shape, override=change.told)
    return row | {"id": f"override/{changed.policy}/{changed.task.id}"}


def recalling(found: Thought, change: Change, *, is_first: bool) -> str:
    """A thought that begins with what has changed: at the first turn and where it is decided, if it bears on that."""
    serving, policy = found.bearing.serving, change.pack.policies[change.policy]
    decides = found.bearing.purpose in ("announce", "refuse")
    if not found.text or serving is None or serving.call.tool not in policy.tools or not (is_first or decides):
        return found.text
    return f"A policy has changed here: {change.contrary.words} {found.text}"


def changed_pack(pack: Pack, policy: str, words: str, guard: str | None) -> Pack:
    """The pack with `words` in the place of a policy. `guard` is the text of its guard; None: everything is permitted.

    Sentences that the old policy cites are not cited any more.
    """
    if policy not in pack.guards:
        raise UsageError(f"no guard holds to policy `{policy}`", hint="only a policy with a guard can be changed")
    folder = read_folder(pack.root, cases=False)
    file, name = pack.guards[policy].file, policy.replace("-", "_")
    folder.guards[file] = _with_function(folder.guards[file], name, guard)
    built = build_pack(folder)
    new = replace(built.policies[policy], definition=words, citations=())
    bound = {
        tool: tuple((new if each.id == policy else each, held) for each, held in guards)
        for tool, guards in built.by_tool.items()
    }
    return replace(built, policies={**built.policies, policy: new}, by_tool=bound)


def function_in(text: str, name: str) -> str | None:
    """The text of one function of a file; None where there is none of that name."""
    functions = [each for each in parse_python(text).body if isinstance(each, ast.FunctionDef)]
    found = next((each for each in functions if each.name == name), None)
    return text_of(text, found) if found is not None else None


def _with_function(text: str, name: str, new: str | None) -> str:
    """A file with another function of that name, and without the helpers that only the old one called."""
    old = function_in(text, name)
    assert old is not None, name
    text = text.replace(old, new if new is not None else old.split("\n")[0] + "\n" + PERMITS)
    for helper in sorted(_called(old) - _called(text)):
        if (own := function_in(text, helper)) is not None:
            text = text.replace(own, "")
    return text


def _called(text: str) -> set[str]:
    calls = (each.func for each in ast.walk(parse_python(text)) if isinstance(each, ast.Call))
    return {each.id for each in calls if isinstance(each, ast.Name)}
