"""What a model's own conversation is worth, turn by turn and as a whole: the rewards of practice on whole episodes.

At every turn the careful agent takes the model's place, so the paper's turn rewards are worked out after the model's
own beginning, not after a right one. The whole is worth what the simulator's truth says at the end, less what the
guards say of the writes that were really made.

Several conversations about one task are compared with each other and with nothing else (GRPO), so a hard task does not
make its turns look bad. The whole conversation counts for all of its turns; beside it each turn counts by itself,
against the same turn of the others, so that one wrong turn does not spoil those before it.
"""

import re
from collections.abc import Sequence
from functools import cache
from math import sqrt
from typing import Any

from align_practice import deed, differs, thought_of
from msgspec import Struct

from bylaw.align.episode import Episode
from bylaw.align.evaluation import judged_writes
from bylaw.align.grader import Gold, Grader
from bylaw.align.output import Output, read_output
from bylaw.align.prompt import pack_named
from bylaw.align.reward import TOP, fault
from bylaw.align.slot import Slot
from bylaw.engine.verdict import Verdict
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.tasks import Scenario
from bylaw_lab.clinic.tasks.careful import Act, Careful, LostError
from bylaw_lab.clinic.tasks.scenario import MONEY, Scene

ID = re.compile(r"\b[A-Z]{1,3}-?\d{2,}\b")
"""What names a record."""
SUCCESS = 3.0
"""What a good end is worth; one write that is not permitted on what was seen costs as much at most."""
MADE_UP = 1.0
"""What a turn costs that names a record, a day or a number which stands nowhere."""
TURN = 0.5
"""How much a turn by itself counts beside the whole."""


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


def advantages(groups: Sequence[Sequence[Marks]], *, turn: float = TURN) -> list[list[list[float]]]:
    """For every conversation of every group an advantage a turn; groups are conversations about one task."""
    wholes = [_less_mean([each.whole for each in group]) for group in groups]
    turns = [_by_turn(group) for group in groups]
    whole_spread = _spread([value for group in wholes for value in group])
    turn_spread = _spread([value for group in turns for talk in group for value in talk])
    return [
        [[whole / whole_spread + turn * each / turn_spread for each in talk] for whole, talk in zip(*pair, strict=True)]
        for pair in zip(wholes, turns, strict=True)
    ]


def is_telling(group: Sequence[Marks]) -> bool:
    """Whether anything went wrong in it."""
    return not all(each.is_clean for each in group)


def _by_turn(group: Sequence[Marks]) -> list[list[float]]:
    """What each turn is worth, less the mean of the turns at its place; a turn that nobody else came to, less that of
    all turns."""
    worth = [[mark.worth for mark in each.turns] for each in group]
    flat = [value for talk in worth for value in talk]
    overall = sum(flat) / len(flat) if flat else 0.0
    longest = max(map(len, worth), default=0)
    columns = [[talk[place] for talk in worth if len(talk) > place] for place in range(longest)]
    means = [sum(column) / len(column) if len(column) > 1 else overall for column in columns]
    return [[value - means[place] for place, value in enumerate(talk)] for talk in worth]


def _less_mean(values: Sequence[float]) -> list[float]:
    middle = sum(values) / len(values)
    return [value - middle for value in values]


def _spread(values: Sequence[float]) -> float:
    """The root of the mean square; 1 where all are alike, which leaves them 0."""
    found = sqrt(sum(value * value for value in values) / len(values)) if values else 0.0
    return found if found > 1e-9 else 1.0
