"""A model's own conversation, brought to a good end: as it is where it was right, else by the careful agent.

The careful agent takes over at the model's first mistake, or right after it, and goes on to the end. So a conversation
keeps its natural share of look-ups, refusals and changes; rows of mistakes alone do not, and teach a model to refuse.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from bylaw.align.dataset import Row, tools_text
from bylaw.align.episode import Episode
from bylaw.align.output import read_output
from bylaw.align.practice import Deed, deed, differs, is_left_out, spoils, written
from bylaw.packs.clinic.tasks import Scenario
from bylaw.packs.clinic.tasks.careful import Careful, Kind, LostError
from bylaw.packs.clinic.tasks.scenario import Scene


class Mistake(Struct, frozen=True):
    """The first turn that a model got wrong."""

    turn: int
    did: Deed
    right: Kind


class Mended(Struct, frozen=True):
    """A conversation that came out well by the simulator's truth."""

    task: str
    messages: tuple[dict[str, Any], ...]
    mistake: Mistake | None
    """Where the careful agent took over; None where the model was right to the end."""
    unlearned: tuple[int, ...] = ()
    """Places of messages that stay as they were said and must not be learned."""

    def row(self) -> Row:
        """A row to learn from."""
        row: Row = {"messages": list(self.messages), "tools": tools_text("clinic"), "id": self.task}
        if self.mistake is not None:
            row["kind"] = f"{self.mistake.did} for {self.mistake.right}"
        return row | ({"unlearned": list(self.unlearned)} if self.unlearned else {})


def mend(
    task: Scenario, outputs: Sequence[str], *, passed: bool, keeps_mistake: bool = False, seed: int = 0
) -> Mended | None:
    """The conversation up to the first mistake as the model led it, and from there as the careful agent does.

    With `keeps_mistake` the wrong turn stays and what it brought about is made good after it. None where that cannot
    be, or where the end is not right all the same. Of a conversation that came out well, only a look-up that was left
    out is a mistake.
    """
    episode = Episode(task, policy="none")
    try:
        return _mended(episode, task, outputs, passed=passed, keeps_mistake=keeps_mistake, seed=seed)
    except LostError:
        return None
    finally:
        episode.outcome()


def _mended(
    episode: Episode, task: Scenario, outputs: Sequence[str], *, passed: bool, keeps_mistake: bool, seed: int
) -> Mended | None:
    mistake: Mistake | None = None
    unlearned: tuple[int, ...] = ()
    for turn, output in enumerate(outputs):
        if episode.done:
            break
        scene = episode.scene
        assert isinstance(scene, Scene)
        right = Careful.taking_over(scene, episode.events).act()
        said = read_output(output)
        did = deed(scene, said)
        if differs(scene, episode.events, said, did, right) and (not passed or is_left_out(did, right)):
            mistake = Mistake(turn, did, right.kind)
            if keeps_mistake and not spoils(scene, said):
                unlearned = (len(episode.messages),)
                episode.step(output)
            break
        episode.step(output)
    if keeps_mistake and not unlearned:
        return None
    while not episode.done:
        assert isinstance(episode.scene, Scene)
        act = Careful.taking_over(episode.scene, episode.events).act()
        episode.step(written(task, episode, act, seed))
    if not episode.outcome().success:
        return None
    messages = list(episode.messages)
    while messages[-1]["role"] != "assistant":
        messages.pop()
    return Mended(task.id, tuple(messages), mistake, unlearned)
