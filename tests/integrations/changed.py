"""Random conversations in real frameworks, whose hosts trim, summarise, repeat or reorder the history between runs.

An adapter's test gives a `Host` that runs the framework's own agent, and `class TestChanges(EveryChange): host = ...`.
Whatever becomes of the history, no write may run that the whole one would refuse.
"""

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bylaw.shield import Shield
from tests.integrations.rental import CUSTOMER, Rentals, desk
from tests.integrations.test_histories import CALLS, REPLIES, SAYS, task

LIMITS: Any = {
    "deadline": None,
    "max_examples": 15,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}
MANGLINGS = ["keep", "window", "nothing", "twice", "no_tools", "gaps", "swap", "users", "summary"]
WAYS = ["keep", "window", "nothing", "summary", "no_tools", "twice"]
"""Those that leave enough for a task to be finished."""
TASKS = 6

Say = tuple[list[str], list[tuple[str, dict[str, str]]], str]
_names = itertools.count(1)


def runs(manglings: list[str]) -> Any:
    """Runs of an agent: what becomes of the history before, what the user says, what the agent calls and replies."""
    each = st.tuples(
        st.sampled_from(manglings),
        st.integers(0, 1 << 16),
        st.lists(st.sampled_from(SAYS), min_size=1, max_size=2),
        st.lists(st.sampled_from(CALLS), max_size=2),
        st.sampled_from(REPLIES),
    )
    return st.lists(each, min_size=2, max_size=5)


class Host:
    """A host that keeps its agent's history; `truth` is all that happened."""

    def __init__(self, shield: Shield) -> None:
        self.shield = shield
        self.name = f"c{next(_names)}"
        self.rentals = Rentals()
        self.stored: list[Any] = []
        self.truth: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self._steps: list[Any] = []
        self._made: list[str] = []
        self._ids = itertools.count(1)

    def run(self, stored: list[Any], texts: list[str]) -> list[Any]:
        """Run the framework's agent on a history and what the user says now; the history afterwards."""
        raise NotImplementedError

    def kind(self, message: Any) -> str:
        """`user`, `call`, `answer` or `agent`."""
        raise NotImplementedError

    def summary(self) -> list[Any]:
        """What the framework puts in the place of earlier messages."""
        return []

    def say(self, texts: list[str], calls: list[tuple[str, dict[str, str]]], reply: str) -> None:
        self.truth += [{"role": "user", "content": text} for text in texts]
        self._steps = [*calls, reply]
        self.stored = self.run(self.stored, texts)

    def model(self, answers: list[str]) -> Any:
        """What the agent's model says next, once it has heard what became of its last call."""
        if self._made:
            self.truth.append({"role": "tool", "tool_call_id": self._made.pop(), "content": answers[-1]})
        step = self._steps.pop(0)
        if isinstance(step, str):
            self.truth.append({"role": "assistant", "content": step})
            return step
        tool, arguments = step
        self._before = list(self.truth)
        id = f"t{next(self._ids)}"
        asked = [{"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]
        self.truth.append({"role": "assistant", "content": None, "tool_calls": asked})
        self._made.append(id)
        return [(tool, dict(arguments))]

    def ran(self, tool: str, arguments: dict[str, str]) -> str:
        whole = self.shield.decide(self._before, tool, arguments, context=CUSTOMER)
        if not whole.allowed:
            self.wrong.append(f"{tool} ran, and the whole history says: {whole.feedback}")
        return getattr(self.rentals, tool)(**arguments)

    def tools(self) -> list[Callable[..., str]]:
        def get_rental(rental_id: str) -> str:
            """Show a rental."""
            return self.ran("get_rental", {"rental_id": rental_id})

        def extend_rental(rental_id: str, new_end: str) -> str:
            """Extend a rental to a new last day."""
            return self.ran("extend_rental", {"rental_id": rental_id, "new_end": new_end})

        def refund(rental_id: str, amount: str) -> str:
            """Pay money back."""
            return self.ran("refund", {"rental_id": rental_id, "amount": amount})

        return [get_rental, extend_rental, refund]

    def mangle(self, how: str, chance: random.Random) -> None:
        stored = self.stored
        match how:
            case "window":
                self.stored = stored[chance.randrange(len(stored) + 1) :]
            case "nothing":
                self.stored = []
            case "summary":
                self.stored = [*self.summary(), *stored[chance.randrange(len(stored) + 1) :]]
            case "twice" if stored:
                at = chance.randrange(len(stored))
                self.stored = [*stored[: at + 1], *stored[at:]]
            case "no_tools":
                self.stored = [each for each in stored if self.kind(each) not in ("call", "answer")]
            case "gaps":
                self.stored = [each for each in stored if chance.random() < 0.6]
            case "users":
                self.stored = [each for each in stored if self.kind(each) == "user"]
            case "swap" if len(stored) > 1:
                at = chance.randrange(len(stored) - 1)
                self.stored = [*stored[:at], stored[at + 1], stored[at], *stored[at + 2 :]]
            case _:
                pass


def play(host: Host, steps: list[Any]) -> None:
    """A conversation; afterwards nothing has run that the whole history would refuse."""
    host.say(["Hello"], [CALLS[0]], "I have it.")
    for how, seed, says, calls, reply in steps:
        host.mangle(how, random.Random(seed))
        host.say(says, calls, reply)
    assert host.wrong == []


class TaskHost:
    """A host as `task` of the shared tests drives it: the user's words and the agent's calls of a run in one go."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._texts: list[str] = []
        self._calls: list[tuple[str, dict[str, str]]] = []

    def user(self, text: str) -> None:
        self._end("All right.")
        self._texts = [text]

    def call(self, tool: str, arguments: dict[str, str]) -> bool:
        before = len(self.host.rentals.ran)
        self.host.say(self._texts, [(tool, arguments)], "One moment.")
        self._texts = []
        return len(self.host.rentals.ran) > before

    def reply(self, text: str) -> None:
        self._end(text)

    def _end(self, reply: str) -> None:
        if self._texts:
            self.host.say(self._texts, [], reply)
        elif reply != "All right.":
            self.host.say([], [], reply)
        self._texts = []


def finished(host_of: Callable[[], Host], manglings: list[str]) -> dict[str, float]:
    """For each way of changing a history, the share of legitimate tasks that are finished."""
    shares: dict[str, float] = {}
    for how in manglings:
        done: list[int] = []
        for seed in range(TASKS):
            chance, host = random.Random(seed), host_of()
            driven: Any = TaskHost(host)
            done.append(task(driven, lambda: host.mangle(how, chance), chance.choice(["extend", "refund"])))  # noqa: B023
            assert host.wrong == []
        shares[how] = sum(times > 0 for times in done) / TASKS
    return shares


@pytest.fixture(scope="module")
def shield(tmp_path_factory: pytest.TempPathFactory) -> Shield:
    """The shield of the desk; a test's module imports it."""
    return desk(tmp_path_factory.mktemp("changed"))


class EveryChange:
    """What holds of every adapter, however a host changes the history."""

    host: Any
    without: tuple[str, ...] = ()
    """Ways that cannot be in this framework."""

    @settings(**LIMITS)
    @given(steps=runs(MANGLINGS))
    def test_no_write_runs_that_the_whole_history_would_refuse(self, shield: Shield, steps: list[Any]) -> None:
        play(self.host(shield), [step for step in steps if step[0] not in self.without])

    def test_trimmed_and_summarised_agents_finish_their_tasks(self, shield: Shield) -> None:
        shares = finished(lambda: self.host(shield), [way for way in WAYS if way not in self.without])
        assert min(shares.values()) >= 0.95, shares
