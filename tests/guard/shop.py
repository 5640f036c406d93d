"""A small vocabulary for the tests of this folder, and a generator of random guards over it."""

from datetime import date, datetime, timedelta
from typing import Any

from bylaw.facts.entity import Entity, Fact, Field
from bylaw.guard import Guard, Vocabulary, parse_guards

NOW = datetime(2024, 5, 15, 15, 0)
DAY0 = date(2024, 5, 10)

ORDER = Entity(
    "Order",
    ("order_id",),
    {
        "paid": Field("paid", "boolean"),
        "gift": Field("gift", "boolean"),
        "state": Field("state", "enum", ("open", "sent", "done")),
        "size": Field("size", "integer"),
        "due": Field("due", "date"),
        "made": Field("made", "datetime"),
        "price": Field("price", "money"),
        "weight": Field("weight", "number"),
        "owner": Field("owner", "string"),
        "items": Field("items", "list"),
        "address": Field("address", "object"),
    },
)
OWNER = Entity("Owner", ("owner_id",), {"vip": Field("vip", "boolean"), "level": Field("level", "integer")})
LINE = Entity("Line", ("order_id", "number"), {"amount": Field("amount", "integer"), "day": Field("day", "date")})
REQUEST = Entity(
    "Request",
    (),
    {
        "reason": Field("reason", "enum", ("lost", "late", "other"), origin="user"),
        "sure": Field("sure", "boolean", origin="user"),
        "wants": Field("wants", "integer", origin="user"),
        "things": Field("things", "list", origin="user"),
    },
)
CONTEXT = Entity("context", (), {"principal": Field("principal", "string", origin="context")})
ENTITIES = {entity.name: entity for entity in (ORDER, OWNER, LINE, REQUEST, CONTEXT)}
VOCABULARY = Vocabulary(
    ENTITIES,
    frozenset(("order_id", "other_id", "amount", "note", "codes", "rows", "day")),
    frozenset(("refund", "ship")),
)
ARGUMENTS: dict[str, Any] = {
    "order_id": "A",
    "other_id": "B",
    "amount": 3,
    "codes": [1, 2, 4],
    "rows": [{"n": 1, "ok": True}, {"n": 3, "ok": False}],
}


def guard(text: str, vocabulary: Vocabulary = VOCABULARY) -> Guard:
    """The one guard of `text`, which must have no faults."""
    guards, faults = parse_guards(text, file="guards/shop.py", vocabulary=vocabulary)
    assert not faults, "\n".join(map(str, faults))
    ((_, only),) = guards.items()
    return only


def faults(text: str) -> list[str]:
    """What is wrong with `text`."""
    return [str(fault) for fault in parse_guards(text, file="guards/shop.py", vocabulary=VOCABULARY)[1]]


def order(key: str = "A", **fields: Any) -> dict[Fact, Any]:
    """Facts of one order."""
    return {Fact("Order", (key,), name): value for name, value in fields.items()}


def request(**fields: Any) -> dict[Fact, Any]:
    """Facts of the request."""
    return {Fact("Request", (), name): value for name, value in fields.items()}


DOMAINS: dict[str, tuple[Any, ...]] = {
    "paid": (True, False),
    "gift": (True, False),
    "exists": (True, False),
    "state": ("open", "sent", "done"),
    "size": tuple(range(-8, 10)),
    "due": tuple(DAY0 + timedelta(days=n) for n in range(-13, 11)),
    "made": tuple(
        NOW - timedelta(hours=hours, microseconds=us) for hours in (-1, 0, 12, 24, 36, 48) for us in (-1, 0, 1)
    ),
    "owner": ("o1", "o2"),
    "vip": (True, False),
    "reason": ("lost", "late", "other"),
    "sure": (True, False),
}


SHARED = {
    "is_so": """
def is_so(order):
    if order.paid:
        return order.size > 2
    if order.gift:
        return not order.paid
    return order.size < 1
""",
    "chosen": """
def chosen(call, facts):
    if call.amount > 9:
        return facts.Order(call.order_id)
    return facts.Order(call.other_id)
""",
}
"""Functions that random guards may call."""


class Writer:
    """Writes random guards. `simple` ones ask only about one fact against constants."""

    def __init__(self, random: Any, *, simple: bool) -> None:
        self.random = random
        self.simple = simple
        self.names = 0
        self.booleans: list[str] = []
        self.numbers: list[str] = []
        # Questions about one field often contradict or imply each other, which is what is hard to get right.
        self.focus = self.pick("size", "due", "made", "state", "paid", "exists", "reason", "")

    def pick(self, *options: Any) -> Any:
        return options[self.random.randrange(len(options))]

    def thing(self) -> str:
        return self.pick("facts.Order(call.order_id)", "facts.Order(call.order_id)", "facts.Order(call.other_id)")

    def number(self) -> str:
        size = f"{self.thing()}.size"
        c = self.random.randrange(-2, 4)
        options = [size, size, f"({size} + {c})", f"({c} - {size})", f"({size} - {c})", f"-{size}", *self.numbers]
        if not self.simple:
            two = f"{self.thing()}.size"
            options += [f"({size} + {two})", f"max({size}, {c})", f"({size} * {c})", "call.amount", f"abs({size})"]
            options += [f"({size} - {two})", f"sum([{size}, {two}])", f"({size} % 3)", "len(call.codes)"]
        return self.pick(*options)

    def atom(self) -> str:
        c, d = self.random.randrange(-2, 6), self.random.randrange(-2, 6)
        op = self.pick("<", "<=", ">", ">=", "==", "!=")
        op2 = self.pick("<", "<=")
        day = f'date("{DAY0 + timedelta(days=c)}")'
        due = self.pick(f"{self.thing()}.due", f"({self.thing()}.due + days({d}))", f"({self.thing()}.due - days(1))")
        made = f"{self.thing()}.made"
        hours = f"hours({self.pick(0, 12, 24, 36)})"
        negate = self.pick("in", "in", "not in")
        options = [
            f"{self.thing()}.paid",
            f"{self.thing()}.gift",
            f"{self.thing()}.gift == {self.pick(True, False)}",
            f'{self.thing()}.state {self.pick("==", "!=")} "{self.pick("open", "sent", "done")}"',
            f'{self.thing()}.state {negate} ("open", "{self.pick("sent", "done")}")',
            f"{self.number()} {op} {c}",
            f"{c} {op} {self.number()}",
            f"{c} {op2} {self.number()} {op2} {d}",
            f"{self.number()} {negate} ({c}, {d}, 1)",
            f"{self.number()} {negate} call.codes",
            f"{due} {op} {day}",
            f"{day} - {due} {op} days({d})",
            f"now() - {made} {op} {hours}",
            f"{made} {op} now() - {hours}",
            f'{due} {negate} ({day}, date("{DAY0}"))',
            'facts.Request.reason == "lost"',
            f'facts.Request.reason {negate} ("late", "other")',
            "facts.Request.sure",
            f"call.amount {op} {c}",
            f"{self.thing()}.exists",
            f"is_so({self.thing()})",
            f"chosen(call, facts).size {op} {c}",
            *self.booleans,
        ]
        if not self.simple:
            options += [
                f"{self.thing()}.size {op} {self.thing()}.size",
                f"{self.thing()}.due {op} {self.thing()}.due",
                f"{self.thing()}.made - {self.thing()}.made {op} {hours}",
                f'time({self.thing()}.due, "12:30") {op} now() - {hours}',
                f'time({self.thing()}.due, "09:00") {op} {made}',
                f"{self.thing()}.paid == {self.thing()}.gift",
                f"{self.thing()}.state == {self.thing()}.state",
                f"{self.number()} {op} {self.number()}",
                f"{self.thing()}.owner == {self.thing()}.owner",
                f"facts.Owner({self.thing()}.owner).vip",
                f"count([{self.thing()}.paid, {self.thing()}.gift]) {op} 1",
                f"{self.thing()}.size in [{self.thing()}.size, {c}]",
                f'lower({self.thing()}.state) == "open"',
                f"({self.thing()}.size > {c}) == ({self.thing()}.size < {d})",
                f'{{"open": 1, "sent": 2, "done": 3}}[{self.thing()}.state] {op} {c}',
                f"facts.Order({self.thing()}.owner).exists",
                "facts.Request.sure == " + f"{self.thing()}.paid",
            ]
        focused = [option for option in options if f".{self.focus}" in option]
        return self.pick(*(focused if focused and self.random.randrange(4) else options))

    def condition(self, depth: int) -> str:
        kind = self.random.randrange(9) if depth else 0
        if kind < 3:
            return self.atom()
        one, two = self.condition(depth - 1), self.condition(depth - 1)
        match kind:
            case 3:
                return f"({one} and {two})"
            case 4:
                return f"({one} or {two})"
            case 5:
                return f"(not {one})"
            case 6:
                return f"({one} if {two} else {self.condition(depth - 1)})"
            case 7:
                return f"{self.pick('any', 'all')}([{one}, {two}])"
            case _:
                row = f"row.n {self.pick('<', '>=')} {self.random.randrange(4)}"
                mixed = self.pick(f"{row} and {one}", f"({one} or {row})", "row.ok", f"{self.thing()}.size > row.n")
                guard = self.pick("", f" if {row}", f" if {two}")
                source = self.pick(
                    "row in call.rows",
                    "row in call.rows",
                    "i, row in enumerate(call.rows)",
                    "code, row in zip(call.codes, call.rows)",
                )
                number = {"i": "i", "c": "code"}.get(source[0])
                if number:
                    mixed = self.pick(mixed, f"{self.thing()}.size > {number}", f"row.n > {number}")
                return f"{self.pick('any', 'all')}({mixed} for {source}{guard})"

    def answer(self) -> str:
        return self.pick("return permit()", 'return deny("no")')

    def block(self, depth: int, indent: str, *, must_end: bool) -> list[str]:
        lines: list[str] = []
        booleans, numbers = list(self.booleans), list(self.numbers)
        for _ in range(self.random.randrange(1, 3)):
            match self.random.randrange(6) if depth else 0:
                case 0:
                    self.names += 1
                    name = f"v{self.names}"
                    if self.random.randrange(2):
                        lines.append(f"{indent}{name} = {self.condition(1)}")
                        self.booleans.append(name)
                    else:
                        lines.append(f"{indent}{name} = {self.number()}")
                        self.numbers.append(name)
                case 1 | 2 | 3:
                    lines.append(f"{indent}if {self.condition(2)}:")
                    lines += self.block(depth - 1, indent + "    ", must_end=bool(self.random.randrange(3)))
                    if self.random.randrange(2):
                        lines.append(f"{indent}else:")
                        lines += self.block(depth - 1, indent + "    ", must_end=False)
                case 4:
                    loop = self.pick("i in range(2)", "i in call.codes", "n, i in enumerate(call.codes)")
                    loop = self.pick(loop, loop, "i, row in zip(call.codes, call.rows)")
                    lines.append(f"{indent}for {loop}:")
                    test = self.pick(f"i == {self.random.randrange(4)}", f"{self.number()} > i", self.condition(1))
                    lines.append(f"{indent}    if {test}:")
                    lines.append(f"{indent}        {self.pick(self.answer(), 'continue', 'break')}")
                case _:
                    lines.append(f"{indent}if {self.condition(1)}:")
                    lines.append(f"{indent}    {self.answer()}")
        self.booleans, self.numbers = booleans, numbers
        if must_end:
            lines.append(f"{indent}{self.answer()}")
        return lines

    def guard(self) -> str:
        lines = ["def random_guard(call, facts):"]
        lines += self.block(2, "    ", must_end=True)
        text = "\n".join(lines) + "\n"
        return text + "".join(shared for name, shared in SHARED.items() if f"{name}(" in text)
