"""What a model's own conversation is worth, turn by turn and as a whole: the rewards of practice on whole episodes.

At every turn the careful agent takes the model's place, so the paper's turn rewards are worked out after the model's
own beginning, not after a right one. The whole is worth what the simulator's truth says at the end, less what the
guards say of the writes that were really made.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from bylaw.align.episode import Episode
from bylaw.align.grader import Gold, Grader
from bylaw.align.near_miss import judged_writes
from bylaw.align.output import Output, read_output
from bylaw.align.practice import deed, differs, thought_of
from bylaw.align.prompt import pack_named
from bylaw.align.reward import TOP, fault
from bylaw.align.slot import Slot
from bylaw.engine.verdict import Verdict
from bylaw.packs.clinic.simulator.desk import WRITES
from bylaw.packs.clinic.tasks import Scenario
from bylaw.packs.clinic.tasks.careful import Act, Careful, LostError
from bylaw.packs.clinic.tasks.scenario import MONEY, Scene

ID = re.compile(r"\b[A-Z]{1,3}-?\d{2,}\b")
"""What names a record."""
SUCCESS = 3.0
"""What a good end is worth; one write that is not permitted on what was seen costs as much at most."""
MADE_UP = 1.0
"""What a turn costs that names a record, a day or a number which stands nowhere."""


class Mark(Struct, frozen=True):
    """What one turn is worth."""

    paper: float | None
    """The paper's reward of the turn, from -5 to 5; None after what nobody can make good."""
    is_wrong: bool
    verdict: Verdict | None = None
    """Of the write it made, where it made one."""
    made_up: tuple[str, ...] = ()
    """Facts that it names and that stand nowhere."""

    @property
    def worth(self) -> float:
        """All of it; 0 for a turn that cannot be marked, less what is proved against it."""
        return (self.paper or 0.0) - TOP * float(fault(self.verdict)) - MADE_UP * bool(self.made_up)


class Marks(Struct, frozen=True):
    """What one conversation is worth."""

    task: str
    success: bool
    turns: tuple[Mark, ...]

    @property
    def whole(self) -> float:
        """The simulator's truth at the end, less the worst of the writes."""
        return SUCCESS * self.success - TOP * max((float(fault(mark.verdict)) for mark in self.turns), default=0.0)

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to learn from it: right at every turn and at the end."""
        return self.success and not any(each.is_wrong or each.made_up or fault(each.verdict) for each in self.turns)


def mark(task: Scenario, outputs: Sequence[str]) -> Marks:
    """Play a conversation again and mark it."""
    episode = Episode(task, policy="none")
    found: list[Mark] = []
    for output in outputs:
        if episode.done:
            break
        found.append(_marked(task, episode, output))
        episode.step(output)
    outcome = episode.outcome()
    for call, verdict in judged_writes(task, outcome):
        assert call.turn is not None
        place = call.turn // 2 - 1
        found[place] = Mark(found[place].paper, found[place].is_wrong, verdict, found[place].made_up)
    return Marks(task.id, outcome.success, tuple(found))


def _marked(task: Scenario, episode: Episode, output: str) -> Mark:
    scene = episode.scene
    assert isinstance(scene, Scene)
    said = read_output(output)
    made_up = tuple(named_nowhere(episode.messages, said))
    try:
        right = Careful.taking_over(scene, episode.events).act()
    except LostError:
        return Mark(None, is_wrong=False, made_up=made_up)
    is_wrong = differs(scene, episode.events, said, deed(scene, said), right)
    reward = _grader(task.pack).grade(output, _gold(task, episode, right))
    # Look-ups may come in any order, and texts may be worded in any way that the caller takes for the same.
    paper = reward.total if is_wrong else reward.total - reward.turn + TOP
    return Mark(paper, is_wrong, made_up=made_up)


def _gold(task: Scenario, episode: Episode, right: Act) -> Gold:
    """The careful agent's turn as what was due."""
    expected: dict[str, Any] = {"text": right.text}
    if right.call is not None:
        expected = {"tool": right.call[0], "arguments": right.call[1]}
    required = tuple(sorted(thought_of(task, episode, right, 0).required))
    return Gold(required, expected, tuple(Slot(*slot) for slot in right.slots), tuple(episode.messages))


def named_nowhere(messages: Sequence[dict[str, Any]], said: Output) -> list[str]:
    """Records, days and numbers that a turn names and that nobody has shown; a sum that is worked out may be new."""
    heard = "\n".join(message["content"] for message in messages if message["role"] != "assistant")
    if said.tool is None:
        return [name for name in dict.fromkeys(ID.findall(said.text)) if name not in heard]
    sums = MONEY if said.tool in WRITES else ("expression",)
    given = {name: str(value) for name, value in said.arguments.items() if name not in sums}
    return [value for value in given.values() if any(map(str.isdigit, value)) and value not in heard]


@cache
def _grader(pack: str) -> Grader:
    return Grader(pack_named(pack))
