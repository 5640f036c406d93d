"""The gain of each fast path of the evaluator: function calls without it, divided by function calls with it.

    uv run python lab/benchmarks/guard_evaluator.py [--count 60]

Each fast path is switched off on its own. Calls of Python and C functions are counted by the interpreter, so a busy
machine does not matter. An audit judges and settles simulated clinic conversations, with the clinic's database and in
hindsight. A decision is `session.decide` or, without a session, `Shield.decide`, on every write of the conversations.
Verdicts and answers must be equal with and without.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from bylaw.engine.session import Mode, Session
from bylaw.facts.database import open_snapshot
from bylaw.facts.world import World
from bylaw.guard import Inquiry
from bylaw.pack import Pack, load_pack
from bylaw.shield import Shield
from bylaw.shield.session import LiveSession
from bylaw.trace import Call, Message, Result, Trajectory
from bylaw_lab.clinic.simulator.generate import simulate
from bylaw_lab.clinic.simulator.world import build

Work = Callable[[Shield, Trajectory], object]
Switch = Callable[[], AbstractContextManager[object]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="simulated conversations")
    given = parser.parse_args()
    talks = [talk for talk, _ in simulate(1, given.count)]
    with tempfile.TemporaryDirectory(prefix="bylaw-guards-") as folder:
        path = Path(folder) / "clinic.sqlite"
        build(path).close()
        world = open_snapshot(path, load_pack("clinic").schema)
        works: dict[str, Work] = {
            "audit, database": lambda shield, talk: audit(shield, talk, world),
            "audit, hindsight": lambda shield, talk: audit(shield, talk, None),
            "session.decide": decide,
            "Shield.decide": decide_alone,
        }
        print(f"{'without':44}" + "".join(f"{name:>18}" for name in works))
        for name, off in FAST_PATHS.items():
            ratios = [ratio(work, talks, off) for work in works.values()]
            print(f"{name:44}" + "".join(f"{each:18.2f}" for each in ratios), flush=True)


def ratio(work: Work, talks: Sequence[Trajectory], off: Switch) -> float:
    """How many times as many function calls the work takes without a fast path."""
    expected, with_it = counted(work, talks)
    with off():
        found, without = counted(work, talks)
    assert found == expected, "a fast path changes a verdict"
    return without / with_it


def counted(work: Work, talks: Sequence[Trajectory]) -> tuple[list[object], int]:
    """What the work finds, and its function calls once caches are warm."""
    pack = load_pack("clinic")
    shield = Shield(pack)
    found = [work(shield, talk) for talk in talks]
    METER.calls = 0
    for talk in talks:
        work(shield, talk)
    return found, METER.calls


class Meter:
    """Counts the function calls inside a `with`."""

    calls = 0

    def __enter__(self) -> None:
        sys.setprofile(self._count)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, _frame: object, event: str, _argument: object) -> None:
        self.calls += event in ("call", "c_call")


METER = Meter()


def audit(shield: Shield, talk: Trajectory, world: World | None) -> object:
    pack = shield.pack
    mode: Mode = "hindsight" if world is None else "snapshot"
    session = Session(pack, world=world, mode=mode)
    steps = [step for step, event in enumerate(talk.events) if is_write(event, pack)]
    with METER:
        list(session.follow(talk.events, steps))
        verdicts = session.settle()
    return [(each.strict, each.determined, [one.because for one in each.policies]) for each in verdicts]


def is_write(event: object, pack: Pack) -> bool:
    tool = pack.schema.tools.get(event.tool) if isinstance(event, Call) else None
    return tool is not None and tool.effect == "write"


def decide(shield: Shield, talk: Trajectory) -> object:
    session = shield.session()
    answers: list[str] = []
    allowed: set[int] = set()
    for step, event in enumerate(talk.events):
        match event:
            case Message(by="user"):
                session.user(event.text)
            case Message():
                session.agent(event.text)
            case Call():
                with METER if is_write(event, shield.pack) else nullcontext():
                    decision = session.decide(event.tool, event.arguments, id=str(step))
                answers.append(decision.answer)
                if decision.allowed:
                    allowed.add(step)
            case Result() if event.call in allowed:
                content = event.content if isinstance(event.content, str) else event.value()
                session.result(content, id=str(event.call), error=event.error)
            case _:
                pass
    return answers


def decide_alone(shield: Shield, talk: Trajectory) -> object:
    """Each write of a conversation, with the messages before it."""
    answers: list[str] = []
    messages: list[dict[str, Any]] = []
    for step, event in enumerate(talk.events):
        match event:
            case Message():
                messages.append({"role": "user" if event.by == "user" else "assistant", "content": event.text})
            case Call():
                if is_write(event, shield.pack):
                    with METER:
                        decision = shield.decide(messages, event.tool, event.arguments)
                    answers.append(decision.answer)
                function = {"name": event.tool, "arguments": event.arguments}
                call = {"id": str(step), "type": "function", "function": function}
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            case Result():
                content = event.content if isinstance(event.content, str) else event.value()
                messages.append({"role": "tool", "tool_call_id": str(event.call), "content": content})
            case _:
                pass
    return answers


@contextmanager
def ask_each_guard_alone() -> Iterator[None]:
    """Facts that one guard of a call has read are asked for again by the next."""
    ask = Inquiry.ask

    def alone(self: Inquiry, *given: Any, **named: Any) -> Any:
        self.given, self.unknowns, self.admitted, self.is_open = {}, {}, {}, True
        return ask(self, *given, **named)

    with mock.patch.object(Inquiry, "ask", alone):
        yield


def decide_in_a_session(self: Shield, messages: Any, tool: str, arguments: Any, **_: Any) -> Any:
    return LiveSession(self, context={}).decide_after(messages, tool, arguments)


def patched(target: str, new: object) -> Switch:
    return partial(mock.patch, target, new)


FAST_PATHS: dict[str, Switch] = {
    "1 one Inquiry for all guards of a call": ask_each_guard_alone,
    "3 no second run if the world agrees": patched("bylaw.engine.settlement._CallCase._holds", lambda *_: False),
    "5 grounds of a permitted call kept": patched("bylaw.shield.deciding._is_permitted", lambda _: False),
    "6 one decision without a session": patched("bylaw.shield.shield.Shield.decide", decide_in_a_session),
}


if __name__ == "__main__":
    main()
