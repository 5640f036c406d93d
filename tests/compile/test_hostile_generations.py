"""Nothing that a model writes runs outside the guard language: hostile answers at every door where code comes in.

The corpus of hostile guards, and answers made for the compiler, are given as guards, repairs, look-up functions,
predicates, cases and data. Nothing may be opened, started, connected or imported on their behalf.
"""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bylaw.compile.bench import Bench
from bylaw.compile.pipeline import compile_pack
from bylaw.compile.things import Things
from bylaw.guard import parse_lookups
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import read_yaml
from tests.compile.shop import CARDS, LIMIT, THINGS, Scripted, source
from tests.written import load

NOW = datetime.fromisoformat("2025-01-15T10:00:00")
FORBIDDEN = ("subprocess.", "os.system", "os.exec", "os.fork", "os.spawn", "socket.", "ctypes.")
BODIES = [
    "import os\n    os.system('touch /tmp/owned')",
    "__import__('os').system('id')",
    "open('/etc/passwd').read()",
    "x = ().__class__.__bases__[0].__subclasses__()",
    "x = call.__class__",
    "x = facts.__init__.__globals__",
    "exec('1')",
    "eval('1')",
    "x = getattr(call, 'amount')",
    "x = [y for y in (1).__class__.__mro__]",
    "while True:\n        pass",
    "x = 'a' * 10 ** 9",
    "x = 9 ** 9 ** 9",
    "x = (lambda: 1)()",
    "global date\n    date = None",
    "x = f'{call.amount!r:{\"{0.__class__}\"}}'",
    "try:\n        x = 1\n    except Exception:\n        pass",
    "x = breakpoint()",
    "x = input()",
    "x = compile('1', '', 'eval')",
    "x = globals()",
    "yield 1",
]
CORPUS = load(Path(__file__).parents[1] / "guard" / "hostile.yaml")
WHOLE = [
    "import os\nos.system('id')\n",
    "class A:\n    def __init_subclass__(cls):\n        import os\n\n\nclass B(A):\n    pass\n",
    "@__import__\ndef os(call, facts):\n    return permit()\n",
    "def refund_window(call, facts=open('/etc/passwd')):\n    return permit()\n",
    "(" * 5000,
    "\x00def refund_window(call, facts): return permit()",
]


@pytest.fixture
def events() -> Iterator[list[str]]:
    """What was done, by the interpreter's own audit hooks, that arithmetic on facts never needs."""
    seen: list[str] = []
    watching = [True]

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if not watching:
            return
        writes = event == "open" and isinstance(arguments[1], str) and any(each in arguments[1] for each in "wax+")
        ours = writes and str(arguments[0]).startswith(("/tmp/bylaw-", str(Path("/tmp").resolve() / "bylaw-")))
        if event.startswith(FORBIDDEN) or (writes and not ours) or (event == "open" and "passwd" in str(arguments[0])):
            seen.append(f"{event} {arguments}")

    sys.addaudithook(note)
    yield seen
    watching.clear()


def guard(body: str) -> str:
    return f"def refund_window(call, facts):\n    {body}\n    return permit()\n"


def corpus() -> list[str]:
    """The corpus of the guard language, under the name of a policy of the shop."""
    whole = [case["text"] for case in CORPUS if "text" in case]
    listed = [case.get("lines") or [f"x = {case['value']}"] for case in CORPUS if "text" not in case]
    return [text.replace("def hostile(", "def refund_window(") for text in whole] + [
        guard("\n    ".join(lines)) for lines in listed
    ]


@pytest.fixture(scope="module")
def bench() -> Bench:
    data = read_yaml(THINGS, file="answer").data
    return Bench(CARDS, Things(data["entities"], data["observations"], data["tools"]), {}, NOW.isoformat())


POLICY = Policy("refund-window", "guard", "", ("refund",))


def test_hostile_guards_do_not_load_and_touch_nothing(bench: Bench, events: list[str]) -> None:
    for text in [*map(guard, BODIES), *WHOLE]:
        found, faults = bench.guard(POLICY, text)
        assert found is None, text
        assert faults
    assert not events


def test_the_corpus_of_hostile_guards_loads_not_or_only_answers(bench: Bench, events: list[str]) -> None:
    for text in corpus():
        found, faults = bench.guard(POLICY, text)
        assert (found is None) == bool(faults), text
    assert not events


def test_a_hostile_guard_ends_as_a_policy_without_a_check(events: list[str]) -> None:
    text = guard(BODIES[0])
    made = compile_pack(source(), Scripted(guards=text + LIMIT, repair=text))[0].checks["refund-window"]
    assert not made.code
    assert "import" in made.failed
    assert not events


def test_hostile_look_up_functions_do_not_load(bench: Bench, events: list[str]) -> None:
    for body in BODIES:
        text = f"def find_Order_delivered_on(key, history):\n    {body}\n    return unseen()\n"
        _, faults = parse_lookups(text, file="lookups/found.py", vocabulary=bench.vocabulary)
        assert faults, body
    assert not events


@pytest.mark.parametrize(
    "way",
    [
        {"code": '__import__("os").system("id")'},
        {"code": "act.__class__"},
        {"code": 'open("/etc/passwd")'},
        {"code": "(lambda: 1)()"},
        {"tool": "refund", "when": 'exec("1")'},
    ],
)
def test_hostile_predicates_make_no_rule(way: dict[str, str], bench: Bench, events: list[str]) -> None:
    rules = {"predicates": {"p": way}, "rules": [{"id": "confirm", "formula": "ALWAYS p"}]}
    assert bench.rule_faults([Policy("confirm", "rule", "")], rules)
    assert not events


@pytest.mark.parametrize("data", ["!!python/object/apply:os.system ['id']", "a: !!python/name:os.system x"])
def test_hostile_data_is_no_data(data: str, events: list[str]) -> None:
    read = read_yaml(data, file="answer").data
    assert "built-in" not in repr(read), "a tag makes nothing"
    assert not events
