"""The evaluation as a task of Inspect AI. Any model that Inspect supports can play a pack's tasks with scripted users.

    inspect eval bylaw/tasks --model openai/gpt-5 -T part=test -T policy=context

Needs `inspect-ai`, which is not a dependency. As everywhere in `align`, a model writes its calls as text, so that
models with and without tool calling are measured alike. pass@1 is the same as in `bylaw align eval`.
"""
# pyright: basic, reportMissingImports=false

from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, ContentReasoning
from inspect_ai.scorer import Metric, SampleScore, Score, Target, mean, metric, scorer, stderr
from inspect_ai.solver import Generate, TaskState, solver

from bylaw.align.desk import Task as Played
from bylaw.align.desk import as_chat, load_tasks
from bylaw.align.episode import Episode, ShieldedEpisode
from bylaw.align.evaluation import score
from bylaw.align.prompt import PolicyPlace, pack_named

Held = Literal["none", "agent", "live", "show"]
"""Who makes missing look-ups under the shield (see `resolve` in `bylaw.policy.posture`). `none` means no shield."""


@task
def tasks(pack: str = "clinic", part: str = "development", policy: PolicyPlace = "none", shield: Held = "none") -> Task:
    """Return a pack's tasks. `part` is development or test. With `policy=context`, the prompt contains the policy."""
    known = {each.id: each for each in load_tasks(part, pack)}
    held = pack_named(pack)
    samples = [
        Sample(id=each.id, input=each.scene().opening(), metadata={"pair": each.id.rsplit("-", 1)[0]})
        for each in known.values()
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"{pack}-{part}"),
        solver=converse(known, policy, shield),
        scorer=outcome(),
        name="bylaw_tasks",
        metadata={"pack": held.name, "pack_version": held.version, "pack_digest": held.digest},
    )


@solver
def converse(known: dict[str, Played], policy: PolicyPlace, shield: Held) -> Any:
    """Play the task to its end. Inspect runs the model, and the simulator plays the tools and the user."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        played = known[str(state.sample_id)]
        episode = (
            Episode(played, policy=policy)
            if shield == "none"
            else ShieldedEpisode(played, policy=policy, resolve=shield)
        )
        state.messages = []
        read = 0
        while not episode.done:
            for message in episode.messages[read:]:
                role, text = as_chat(message)
                state.messages.append(
                    ChatMessageSystem(content=text) if role == "system" else ChatMessageUser(content=text)
                )
            state = await generate(state, tool_calls="none")
            episode.step(output_of(state.output.message))
            read = len(episode.messages) - (0 if episode.messages[-1]["role"] == "assistant" else 1)
        found = score(played, episode.outcome())
        state.store.set("score", {name: getattr(found, name) for name in found.__struct_fields__})
        state.completed = True
        return state

    return solve


def output_of(message: ChatMessageAssistant) -> str:
    """Return the model's output. A thought that is stored separately is put back at its beginning."""
    parts = message.content if isinstance(message.content, list) else []
    thoughts = [part.reasoning for part in parts if isinstance(part, ContentReasoning)]
    return "".join(f"<think>{thought}</think>\n" for thought in thoughts[:1]) + message.text


@metric
def near_misses_a_write() -> Metric:
    """Return the number of near-misses per write, by the pack's own criterion."""

    def rate(scores: list[SampleScore]) -> float:
        return _a_write(scores, "near_misses")

    return rate


@metric
def violations_a_write() -> Metric:
    def rate(scores: list[SampleScore]) -> float:
        return _a_write(scores, "violations")

    return rate


def _a_write(scores: list[SampleScore], name: str) -> float:
    found = [each.score.metadata or {} for each in scores]
    writes = sum(each.get("writes", 0) for each in found)
    return sum(each.get(name, 0) for each in found) / writes if writes else 0.0


@scorer(metrics=[mean(), stderr(cluster="pair"), near_misses_a_write(), violations_a_write()])
def outcome() -> Any:
    """Return a score of 1 if the records are correct and the agent told the user everything required."""

    async def judge(state: TaskState, target: Target) -> Score:
        found: dict[str, Any] = state.store.get("score")
        return Score(value=float(found["success"]), metadata=found)

    return judge
