"""Practice: what the careful agent does in the place of a model, after that model's own beginning.

What a model learns from right beginnings does not help it after a mistake of its own (DAgger: Ross, Gordon and Bagnell,
2011). So the careful agent takes its place, and where the two part, the careful agent's turn is the one to learn.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.align.bearing import Serving, Span
from bylaw.align.dataset import Row, tools_text
from bylaw.align.episode import Episode
from bylaw.align.output import Output, write_call
from bylaw.align.prompt import pack_named
from bylaw.align.thought import Thought, think
from bylaw.trace.event import Call, Event, Message, Result
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.dialogue import do
from bylaw_lab.clinic.tasks import Scenario
from bylaw_lab.clinic.tasks.careful import PURPOSES, Act, Careful, Kind, LostError
from bylaw_lab.clinic.tasks.scenario import REFUSES, WHERE, Scene, gives_ground, tells

Deed = Kind | Literal["other"]


class Correction(Struct, frozen=True):
    """One turn that a model got wrong, and what the careful agent does in its place."""

    task: str
    turn: int
    did: Deed
    """What the model did."""
    right: Kind
    messages: tuple[dict[str, Any], ...]
    """The model's own beginning, and the careful agent's turn."""

    def row(self) -> Row:
        """A row to learn from: the last turn alone."""
        kind = f"{self.did} for {self.right}"
        return {
            "messages": list(self.messages),
            "tools": tools_text("clinic"),
            "id": f"{self.task}/{self.turn}",
            "learn": "last",
            "kind": kind,
        }


def without_look_up(task: Scenario, which: int, *, seed: int = 0, working: bool = False) -> Correction | None:
    """A right beginning in which one look-up was left out, up to where its answer is needed: it is the next turn.

    None where what it shows is needed to ask for something else, and nobody could have gone on without it. `working`
    shows in its thoughts how facts decide.
    """
    episode, agent = Episode(task, policy="none"), Careful(task)
    left_out: Act | None = None
    turn = 0
    while not episode.done:
        act = agent.act()
        if act.kind == "look_up" and left_out is None and turn == which:
            assert act.call is not None
            left_out = act
            agent.answered(msgspec.json.decode(msgspec.json.encode(episode.scene.call(*act.call))))
            continue
        if left_out is not None and act.kind != "look_up":
            assert isinstance(episode.scene, Scene)
            right = Careful.taking_over(episode.scene, episode.events).act()
            is_it = right.call == left_out.call and right.errand == left_out.errand
            found = _correction(episode, turn, act.kind, right, seed, working=working) if is_it else None
            episode.outcome()
            return found
        if left_out is not None and act.call is not None and not _was_named(episode, act.call[1]):
            break
        episode.step(written(task, episode, act, seed, working=working))
        turn += 1
        if act.call:
            agent.answered(msgspec.json.decode(episode.messages[-1]["content"]))
        elif not episode.done:
            agent.replied(episode.messages[-1]["content"])
    episode.outcome()
    return None


def hasty(task: Scenario, which: int, *, seed: int = 0, working: bool = False) -> Row | None:
    """A conversation in which the change is announced before one look-up is made, and the caller agrees: then comes
    that look-up, and all that follows. The hasty announcement itself is not to be learned.

    So a model that was hasty still learns to look before it writes. `which` counts the look-ups of the first errand;
    None where there are not so many.
    """
    episode = Episode(task, policy="none")
    hurried: int | None = None
    looked = 0
    while not episode.done:
        scene = episode.scene
        assert isinstance(scene, Scene)
        try:
            act = Careful.taking_over(scene, episode.events).act()
        except LostError:
            break
        if act.kind == "look_up" and hurried is None and scene.place == 0:
            if looked == which and _is_about(act):
                errand = task.errands[0]
                hurried = len(episode.messages)
                text = f"I can {do(errand.right or errand.want)}. Shall I go ahead?"
                act = Act("proposal", 0, text=text, write=errand.right or errand.want)
            looked += 1
        episode.step(written(task, episode, act, seed, working=working))
    passed = episode.outcome().success
    messages = list(episode.messages)
    while messages[-1]["role"] != "assistant":
        messages.pop()
    if hurried is None or not passed or any(one["content"].startswith("<think></think>") for one in messages):
        return None
    row: Row = {"messages": messages, "tools": tools_text("clinic"), "id": f"{task.id}/hasty/{which}"}
    return row | {"unlearned": [hurried], "kind": "proposal for look_up"}


def _is_about(act: Act) -> bool:
    """Whether a look-up is for a fact, and not for who is calling."""
    return act.call is not None and act.call[0] != "find_patient"


def _was_named(episode: Episode, arguments: dict[str, Any]) -> bool:
    """Whether every number and id of a call stands somewhere in what the agent has got."""
    said = "\n".join(message["content"] for message in episode.messages[1:] if message["role"] != "assistant")
    return all(str(value) in said for value in arguments.values() if any(map(str.isdigit, str(value))))


def deed(scene: Scene, said: Output) -> Deed:
    """What a model does in a turn, by what the caller would make of it."""
    if said.tool is not None:
        return "write" if said.tool in WRITES else "look_up"
    if said.fault:
        return "other"
    if scene.changed:
        return "report"
    if REFUSES.search(said.text):
        return "refusal"
    if "?" in said.text:
        return "question" if WHERE.search(said.text) else "proposal"
    return "other"


def differs(scene: Scene, events: Sequence[Event], said: Output, did: Deed, right: Act) -> bool:
    """Whether a turn is wrong where the careful agent would do another. Look-ups may come in any order, each once."""
    errand = scene.scenario.errands[scene.place]
    if did != right.kind:
        return True
    match did:
        case "look_up":
            made = [event for event in events if isinstance(event, Call)]
            return any(each.tool == said.tool and each.arguments == said.arguments for each in made)
        case "write":
            assert errand.right is not None
            return said.tool != errand.right.tool or said.arguments != errand.right.arguments
        case "proposal":
            return errand.right is None or not tells(errand.right, said.text)
        case "refusal":
            return not gives_ground(errand.against, said.text)
        case _:
            return False


def _correction(episode: Episode, turn: int, did: Deed, right: Act, seed: int, *, working: bool = False) -> Correction:
    task = episode.task
    assert isinstance(task, Scenario)
    answer = {"role": "assistant", "content": written(task, episode, right, seed, working=working)}
    return Correction(task.id, turn, did, right.kind, (*episode.messages, answer))


def written(task: Scenario, episode: Episode, act: Act, seed: int, *, working: bool = False) -> str:
    """A turn as a model should write it: its thought, and the text or the call."""
    found = thought_of(task, episode, act, seed, working=working)
    return f"{found.tagged()}\n{write_call(*act.call) if act.call else act.text}"


def thought_of(task: Scenario, episode: Episode, act: Act, seed: int, *, working: bool = False) -> Thought:
    """The verified thought of the careful agent's turn after what was played so far."""
    assert act.write is not None
    start = len(episode.events)
    turn: Event = Message("agent", act.text, turn=_APART)
    after: list[Event] = []
    if act.call is not None:
        turn = Call(act.call[0], act.call[1], turn=_APART)
        if act.kind == "look_up":
            content = msgspec.json.encode(episode.scene.call(*act.call)).decode()
            after = [Result(start, content, tool=act.call[0])]
    purpose = PURPOSES[act.kind]
    serving = Serving(Call(act.write.tool, act.write.arguments), is_made=not act.refused)
    return think(
        pack_named(task.pack),
        (*episode.events, turn, *after),
        Span(start, start + 1),
        None if purpose == "other" else serving,
        seed=f"{seed}/{task.id}",
        purpose=purpose,
        working=working,
    )


_APART = 1 << 29
"""Number of a turn that no played turn has."""
