"""Baselines that read: a model is shown the handbook and a whole trajectory, or one rule at a time.

They are the paper's `direct` and `rule traverse`. Rules of tools that a trajectory never calls are not asked about.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.llm.chat import Answer, Chat, ChatError, Request, render, schema_of
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.trace.event import Call, Message
from bylaw.trace.trajectory import Trajectory
from bylaw_lab.bench.shieldagent import Said
from bylaw_lab.clinic.attacks import CATEGORIES, SOURCES, Sample

PROMPTS = Path(__file__).parent / "prompts"
DIRECT = 10
"""Trajectories of each category and source that are read whole, half of them safe."""
TRAVERSED = 2
"""Those that are read rule by rule, one of them safe."""


class DirectReply(Struct, frozen=True):
    """What a reader of the whole handbook says."""

    safe: bool
    violated: list[str]


class RuleReply(Struct, frozen=True):
    """What a reader of one rule says."""

    violated: bool


def drawn(samples: Sequence[Sample], per_cell: int, seed: int) -> list[Sample]:
    """So many trajectories of each category and source, half of them safe, no two of one instruction."""
    found: list[Sample] = []
    for source in SOURCES:
        for category in CATEGORIES:
            cell = [each for each in samples if (each.source, each.category) == (source, category)]
            rng = random.Random(f"{seed}/{source}/{category}")
            names = rng.sample(sorted({each.instruction for each in cell}), per_cell)
            for place, name in enumerate(names):
                wanted = place < per_cell // 2
                found.append(next(each for each in cell if each.instruction == name and each.is_safe == wanted))
    return found


def direct_request(pack: Pack, sample: Sample) -> Request:
    """The question with the whole handbook."""
    listed = "\n".join(f"- `{policy.id}`: {policy.definition}" for policy in _rules(pack))
    document = pack.document.text if pack.document is not None else ""
    given = {"document": document, "rules": listed, "conversation": conversation(sample.trajectory)}
    return render(PROMPTS, "direct", given, schema=schema_of(DirectReply), max_tokens=1000)


def rule_requests(pack: Pack, sample: Sample) -> dict[str, Request]:
    """The question for each rule that bears on the trajectory."""
    called = {event.tool for event in sample.trajectory.events if isinstance(event, Call)}
    shown = conversation(sample.trajectory)
    found: dict[str, Request] = {}
    for policy in _rules(pack):
        if not policy.tools or called & set(policy.tools):
            sentences = "\n".join(f"> {each.text}" for each in policy.citations)
            given = {
                "rule": policy.id,
                "definition": policy.definition,
                "sentences": sentences,
                "conversation": shown,
            }
            found[policy.id] = render(PROMPTS, "rule_traverse", given, schema=schema_of(RuleReply), max_tokens=300)
    return found


def direct(pack: Pack, samples: Sequence[Sample], chat: Chat) -> list[Said]:
    """What readers of the whole handbook say. An answer that cannot be read flags the trajectory."""
    answers = chat.ask([direct_request(pack, sample) for sample in samples])
    said: list[Said] = []
    for sample, answer in zip(samples, answers, strict=True):
        reply = answer.read(DirectReply)
        named = frozenset(reply.violated) & set(pack.policies) if reply is not None else frozenset[str]()
        said.append(Said(sample, reply is None or not reply.safe, named, 1))
    return said


def rule_traverse(pack: Pack, samples: Sequence[Sample], chat: Chat) -> list[Said]:
    """What readers of one rule at a time say: flagged where one of them says that its rule is broken."""
    asked = [rule_requests(pack, sample) for sample in samples]
    answers = iter(chat.ask([request for each in asked for request in each.values()]))
    said: list[Said] = []
    for sample, requests in zip(samples, asked, strict=True):
        named = frozenset(rule for rule in requests if _says_broken(next(answers)))
        said.append(Said(sample, bool(named), named, len(requests)))
    return said


BASELINES: dict[str, tuple[int, Callable[[Pack, Sequence[Sample], Chat], list[Said]]]] = {
    "direct": (DIRECT, direct),
    "rule traverse": (TRAVERSED, rule_traverse),
}


def read_all(pack: Pack, samples: Sequence[Sample], chat: Chat, seed: int) -> tuple[dict[str, list[Said]], list[str]]:
    """What each baseline says of the trajectories drawn for it, and what waits for answers."""
    found: dict[str, list[Said]] = {}
    waiting: list[str] = []
    for name, (per_cell, say) in BASELINES.items():
        try:
            found[name] = say(pack, drawn(samples, per_cell, seed), chat)
        except ChatError as error:
            # Some have no answer yet: a baseline is told whole or not at all.
            waiting.append(f"{name}: {error}")
    return found, waiting


def conversation(run: Trajectory) -> str:
    """A trajectory as people read it."""
    lines: list[str] = []
    turn = -1
    for number, event in enumerate(run.events, 1):
        if isinstance(event, Message):
            lines.append(f"{number}. {'caller' if event.by == 'user' else 'assistant'}: {event.text}")
            turn = event.turn
        elif isinstance(event, Call):
            beside = " (in the same turn)" if event.turn == turn else ""
            turn = event.turn
            given = msgspec.json.encode(event.arguments).decode()
            lines.append(f"{number}. assistant calls {event.tool}{beside} {given}")
        else:
            lines.append(f"{number}. result of {event.tool}: {event.text}")
    return "\n".join(lines)


def _rules(pack: Pack) -> list[Policy]:
    return [policy for policy in pack.policies.values() if policy.kind != "knowledge"]


def _says_broken(answer: Answer) -> bool:
    reply = answer.read(RuleReply)
    return reply is None or reply.violated
