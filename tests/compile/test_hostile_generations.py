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
import yaml

from bylaw.compile.bench import Bench
from bylaw.compile.inputs import tried
from bylaw.compile.pipeline import CompileError, compile_pack
from bylaw.compile.things import Things
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import read_yaml
from tests.compile.shop import CARDS, LIMIT, RULES, THINGS, WINDOW, Scripted, source
from tests.compile.test_lookups import BLIND

NOW = datetime.fromisoformat("2025-01-15T10:00:00")
FORBIDDEN = ("subprocess.", "os.system", "os.exec", "os.fork", "os.spawn", "socket.", "ctypes.", "shutil.", "os.remove")
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
CORPUS = yaml.safe_load((Path(__file__).parents[1] / "guard" / "hostile.yaml").read_text())
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


def test_hostile_guards_are_no_guards_and_touch_nothing(events: list[str]) -> None:
    for text in [*map(guard, BODIES), *WHOLE]:
        made = compile_pack(source(), Scripted(guards=text + LIMIT, repair=text))[0].checks["refund-window"]
        assert not made.code, text
        assert made.failed
    assert not events


def test_the_corpus_of_hostile_guards_finds_no_way_through_the_bench(events: list[str]) -> None:
    data = read_yaml(THINGS, file="answer").data
    things = Things(data["entities"], data["observations"], data["tools"])
    bench = Bench(CARDS, things, {}, "2025-01-15T10:00:00")
    policy = Policy("refund-window", "guard", "", ("refund",))
    for text in corpus():
        found, faults = bench.guard(policy, text)
        assert found is None or not faults
        if found is not None:
            for trial in tried(policy.id, [found], [text], [bench.base.schema.tools["refund"]], NOW, {})[:5]:
                assert trial.outcomes[0] in ("permit", "deny", "failed")
    assert not events


def test_hostile_repairs_of_a_wrong_guard_are_no_guards(events: list[str]) -> None:
    wrong = WINDOW.replace("days(30)", "days(31)")
    for body in BODIES:
        made = compile_pack(source(), Scripted(guards=wrong + LIMIT, repair=guard(body), referee=RULED))[0].checks
        assert not made["refund-window"].code, body
    assert not events


RULED = '{"rulings": [{"number": 1, "want": "deny", "why": "31 days"}]}'


def test_hostile_look_up_functions_are_left_out(events: list[str]) -> None:
    for body in BODIES:
        text = f"def find_Order_delivered_on(key, history):\n    {body}\n    return unseen()\n"
        lookups = compile_pack(source(), Scripted(things=BLIND, lookups=text))[0].lookups
        assert lookups is not None
        assert not lookups.codes, body
    assert not events


@pytest.mark.parametrize(
    "way",
    [
        'code: \'__import__("os").system("id")\'',
        "code: 'act.__class__'",
        "code: 'open(\"/etc/passwd\")'",
        "code: '(lambda: 1)()'",
        "tool: refund, when: 'exec(\"1\")'",
    ],
)
def test_hostile_predicates_make_no_rule(way: str, events: list[str]) -> None:
    rules = RULES.replace("tool: refund", way)
    made = compile_pack(source(), Scripted(rules=rules))[0].checks["confirm-refunds"]
    assert made.failed
    assert not events


@pytest.mark.parametrize(
    "data",
    [
        "!!python/object/apply:os.system ['id']",
        THINGS.replace("Order:", "Order: !!python/name:os.system\n  Other:"),
        "a: &a [*a]",
        "a: &a " + "[" * 2000,
        "x: &x [1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"x{n}: &x{n} [*x{n - 1 or ''},*x{n - 1 or ''}]\n" for n in range(1, 40)),
    ],
    ids=["object", "name", "itself", "deep", "doubling"],
)
def test_hostile_data_is_no_data(data: str, events: list[str]) -> None:
    with pytest.raises(CompileError):
        compile_pack(source(), Scripted(things=data))
    assert not events
