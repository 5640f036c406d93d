"""Histories that a host trims, summarises, repeats or reorders: no write runs that the whole history would refuse.

pytest tests/integrations/test_histories.py -s        prints how many legitimate tasks are finished all the same
"""

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bylaw.integrations.follower import Follower
from bylaw.integrations.history import Answered, Asked, Heard, Part, Summary, Turn
from bylaw.shield import Shield
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, PUT_REFUND, REFUND, Rentals, desk

SAYS = [
    *("Yes.", "Yes.", "Yes, please.", "No, stop."),
    *("Hello", "Yes, please.", "Yes.", "No, stop.", "Hm", "Extend R1", "Refund 20.00 for R1"),
    *("The car was dirty.", "It was too expensive.", "What is the weather like?"),
]
REPLIES = ["All right.", PUT_EXTEND, PUT_EXTEND, PUT_REFUND, "Is there anything else?"]
CALLS: list[tuple[str, dict[str, str]]] = [
    ("get_rental", {"rental_id": "R1"}),
    ("extend_rental", EXTEND),
    ("extend_rental", EXTEND),
    ("refund", REFUND),
]
MANGLINGS = [
    "keep",
    "keep",
    "window",
    "nothing",
    "summary",
    "told_summary",
    "twice",
    "no_tools",
    "gaps",
    "swap",
    "users",
]

TASKS = 20
"""How many tasks are tried for each way of changing a history."""

Stored = list[Part]


@pytest.fixture(scope="module")
def shield(tmp_path_factory: pytest.TempPathFactory) -> Shield:
    return desk(tmp_path_factory.mktemp("histories"))


class Host:
    """A host that keeps a history for its agent, and hands it to a follower; `truth` is all that happened."""

    def __init__(self, shield: Shield, *, has_keys: bool, name: str = "") -> None:
        self.shield = shield
        self.name = name
        self.follower = Follower(shield.session(name, context=CUSTOMER))
        self.rentals = Rentals()
        self.stored: Stored = []
        self.truth: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self._has_keys = has_keys
        self._ids = itertools.count(1)

    def key(self) -> str:
        return f"m{next(self._ids)}" if self._has_keys else ""

    def user(self, text: str) -> None:
        self.stored.append(Heard(text, self.key()))
        self.truth.append({"role": "user", "content": text})
        self.follower.follow(self.stored)

    def reply(self, text: str) -> None:
        self.stored.append(Turn(text, (), self.key()))
        self.truth.append({"role": "assistant", "content": text})
        self.follower.follow(self.stored)
        self.follower.end()

    def call(self, tool: str, arguments: dict[str, str]) -> bool:
        """Make a call, if the shield lets it; whether it ran."""
        id = f"call_{next(self._ids)}"
        self.stored.append(Turn("", (Asked(id, tool, dict(arguments)),), self.key()))
        self.follower.follow(self.stored)
        decision = self.follower.decide(id, tool, arguments)
        whole = self.shield.decide(self.truth, tool, arguments, context=CUSTOMER)
        if decision.allowed and not whole.allowed:
            self.wrong.append(f"{tool} ran, and the whole history says: {whole.feedback}")
        told = decision.feedback
        if decision.allowed:
            told = getattr(self.rentals, tool)(**arguments)
            self.follower.answered(id, told)
        self.stored.append(Answered(id, told, None if decision.allowed else True))
        asked = [{"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]
        self.truth.append({"role": "assistant", "content": None, "tool_calls": asked})
        self.truth.append({"role": "tool", "tool_call_id": id, "content": told})
        return decision.allowed

    def restart(self) -> None:
        """Another worker, with the same log."""
        self.follower.end()
        self.follower = Follower(self.shield.session(self.name, context=CUSTOMER))

    def mangle(self, how: str, chance: random.Random) -> None:
        stored = self.stored
        match how:
            case "window":
                self.stored = stored[chance.randrange(len(stored) + 1) :]
            case "nothing":
                self.stored = []
            case "summary":
                self.stored = [Summary(), *stored[chance.randrange(len(stored) + 1) :]]
            case "told_summary":
                start = chance.randrange(len(stored) + 1)
                self.stored = [Heard("So far: the customer says the car was dirty. Yes.", self.key()), *stored[start:]]
                if start == len(stored):
                    # Nobody could tell it from a user who begins to speak.
                    self.stored = stored
            case "twice" if stored:
                at = chance.randrange(len(stored))
                self.stored = [*stored[: at + 1], *stored[at:]]
            case "no_tools":
                kept = [each for each in stored if not isinstance(each, Answered)]
                self.stored = [each for each in kept if not (isinstance(each, Turn) and each.calls)]
            case "gaps":
                self.stored = [each for each in stored if chance.random() < 0.6]
            case "users":
                self.stored = [each for each in stored if isinstance(each, Heard)]
            case "swap" if len(stored) > 1:
                at = chance.randrange(len(stored) - 1)
                self.stored = [*stored[:at], stored[at + 1], stored[at], *stored[at + 2 :]]
            case _:
                pass


runs = st.lists(
    st.tuples(
        st.sampled_from(MANGLINGS),
        st.integers(0, 1 << 16),
        st.lists(st.sampled_from(SAYS), min_size=1, max_size=2),
        st.lists(st.sampled_from(CALLS), max_size=2),
        st.sampled_from(REPLIES),
    ),
    min_size=2,
    max_size=7,
)


def play(host: Host, steps: list[Any], *, restarts: bool = False) -> None:
    for place, (how, seed, says, calls, reply) in enumerate(steps):
        host.mangle(how, random.Random(seed))
        if restarts and place and seed % 2:
            host.restart()
        for text in says:
            host.user(text)
        for tool, arguments in calls:
            host.call(tool, arguments)
        host.reply(reply)


LIMITS: Any = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@pytest.mark.parametrize("has_keys", [True, False])
@settings(max_examples=40, **LIMITS)
@given(steps=runs)
def test_no_write_runs_that_the_whole_history_would_refuse(shield: Shield, has_keys: bool, steps: list[Any]) -> None:
    host = Host(shield, has_keys=has_keys)
    host.user("Hello")
    host.call("get_rental", {"rental_id": "R1"})
    host.reply("I have it.")
    play(host, steps)
    assert host.wrong == []


_names = itertools.count(1)


@pytest.mark.parametrize("has_keys", [True, False])
@settings(max_examples=20, **LIMITS)
@given(steps=runs)
def test_nor_after_another_worker_took_the_conversation_up(
    tmp_path_factory: pytest.TempPathFactory, has_keys: bool, steps: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    with desk(folder, log=folder / "log.sqlite") as shield:
        host = Host(shield, has_keys=has_keys, name=f"c{next(_names)}")
        play(host, steps, restarts=True)
        assert host.wrong == []


def task(host: Host, mangle: Callable[[], None], deed: str) -> int:
    """A customer who wants one thing and says yes when asked, and an agent that does what it is told to: how often it
    was asked for before it was done; 0 where it never was."""
    put, call = (PUT_EXTEND, ("extend_rental", EXTEND)) if deed == "extend" else (PUT_REFUND, ("refund", REFUND))
    host.user("Hello")
    host.reply("How can I help?")
    mangle()
    host.user("Extend R1, please." if deed == "extend" else "The car was dirty. Refund 20.00 for R1.")
    host.call("get_rental", {"rental_id": "R1"})
    host.reply(put)
    for times in range(1, 4):
        mangle()
        host.user("Yes, please.")
        if host.call(*call):
            return times
        # It looks again, and puts the question again with the reason, as the shield's answer says.
        host.call("get_rental", {"rental_id": "R1"})
        host.reply("Why do you want the money back?" if deed == "refund" else "One moment.")
        mangle()
        host.user("The car was dirty." if deed == "refund" else "Go on.")
        host.reply(put)
    return 0


@pytest.mark.parametrize("has_keys", [True, False])
def test_trimmed_and_summarised_agents_finish_their_tasks(shield: Shield, has_keys: bool) -> None:
    shares: dict[str, tuple[float, float]] = {}
    for how in ("keep", "window", "nothing", "summary", "no_tools", "twice"):
        done: list[int] = []
        for seed in range(TASKS):
            chance = random.Random(seed)
            host = Host(shield, has_keys=has_keys)
            done.append(task(host, lambda: host.mangle(how, chance), chance.choice(["extend", "refund"])))  # noqa: B023
            assert host.wrong == []
        shares[how] = (sum(times > 0 for times in done) / TASKS, done.count(1) / TASKS)
    print(f"\n{'with' if has_keys else 'without'} ids, finished and finished at the first yes:", shares)
    assert min(finished for finished, _ in shares.values()) >= 0.95


GO, PUT = "Shall I go on?", PUT_EXTEND
EXCHANGES = [(GO, "No, stop!"), (PUT, "Yes"), (PUT, "No, stop!"), (GO, "Yes")]
Ways = dict[str, list[Stored]]


def ways(all: Stored) -> Ways:
    """Every way in which a host may hand over a conversation of exchanges, one after the other."""
    so_far = [all[: at + 2] for at in range(0, len(all), 2)]
    found: Ways = {f"the last {count}": [each[-count:] for each in so_far] for count in range(1, 6)}
    found |= {
        f"a summary and the last {count}": [[Summary(), *each[-count:]] for each in so_far] for count in (1, 2, 3)
    }
    found["all"], found["only the user"] = so_far, [[each for each in all if isinstance(each, Heard)]]
    found["the first and the last two"] = [[*each[:1], *each[-2:]] if len(each) > 3 else each for each in so_far]
    found["one by one"] = [[each] for each in all]
    found["the first, then the rest"] = [all[:2], all[2:]]
    return found


def named(text: str, at: int, ids: str) -> Part:
    return (Turn if at % 2 == 0 else Heard)(text, key=f"{ids}{at}" if ids else "")


def allows(shield: Shield, histories: list[Stored]) -> bool:
    follower = Follower(shield.session("", context=CUSTOMER))
    follower.decide("g", "get_rental", {"rental_id": "R1"})
    follower.answered("g", Rentals().rental)
    for each in histories:
        follower.follow(each)
    return follower.decide("w", "extend_rental", EXTEND).allowed


@pytest.mark.parametrize("ids", ["", "m"])
@pytest.mark.parametrize("first", EXCHANGES)
def test_a_no_is_heard_where_the_same_was_said_before(shield: Shield, ids: str, first: tuple[str, str]) -> None:
    for exchanges in itertools.product([first], EXCHANGES, EXCHANGES):
        words = [word for each in exchanges for word in each]
        whole = allows(shield, [[named(word, at, "") for at, word in enumerate(words)]])
        for way, histories in ways([named(word, at, ids) for at, word in enumerate(words)]).items():
            assert whole or not allows(shield, histories), (way, words)
        anew = [[named(word, at, f"h{end}-") for at, word in enumerate(words[:end])][-2:] for end in (2, 4, 6)]
        assert whole or not allows(shield, anew), ("other ids each time", words)


@pytest.mark.parametrize("ids", ["", "m"])
@pytest.mark.parametrize("first", EXCHANGES)
def test_a_yes_that_was_taken_back_counts_no_more(shield: Shield, ids: str, first: tuple[str, str]) -> None:
    """A history that ends before what was heard allows nothing that it would not allow alone."""
    write = Turn("", (Asked("w", "extend_rental", EXTEND),), "w" if ids else "")
    for exchanges in itertools.product([first], EXCHANGES):
        history = [named(word, at, ids) for at, word in enumerate(word for each in exchanges for word in each)]
        for end in range(1, 4):
            rewound = history[:end]
            alone = allows(shield, [rewound])
            for then in ([rewound], [rewound, [*rewound, write]], [[*rewound, write]]):
                assert alone or not allows(shield, [history, *then]), (exchanges, end)
            answered: Stored = [*rewound, Heard("Yes", "y" if ids else "")]
            assert allows(shield, [answered]) or not allows(shield, [history, answered]), (exchanges, end)
