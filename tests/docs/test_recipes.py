"""The recipes of the guide to packs do what they say; they are taken from the page as they stand there."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from bylaw import Conversation, Pack
from tests.packs import made

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "write-a-pack.md").read_text(encoding="utf-8")
FILES = {
    name: text
    for name, text in re.findall(r"<!-- file: till/(\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    if not name.startswith("cases/")
}

NOBODY = ("Error: no such customer", "Customer not found", "", "[]", "null")


def recipe(title: str) -> list[str]:
    """The blocks of code of one recipe."""
    part = PAGE.partition(f"**{title}")[2].partition("\n**")[0]
    return re.findall(r"```\w+\n(.*?)```", part, re.DOTALL)


def pack(**changed: str) -> Pack:
    return made(FILES | changed)


@pytest.mark.parametrize(
    ("found", "evidence"),
    [
        ((), "deny"),
        (("C1",), "permit"),
        (("C1\n",), "permit"),
        (("C2",), "deny"),
        (("C1", "C2"), "deny"),
        # Nobody is found under an address that was mistyped, and nobody is no second customer.
        *[((nobody, "C1"), "permit") for nobody in NOBODY],
        *[((nobody,), "deny") for nobody in NOBODY],
    ],
)
def test_one_customer_in_a_conversation(found: tuple[str, ...], evidence: str) -> None:
    entities, guard = recipe("Serve only one customer")
    yaml = re.sub(r"  Caller: .*\n", lambda _: entities, FILES["entities.yaml"])
    guards = guard + "\n\n" + FILES["guards/till.py"].partition("\n\n\n")[2]
    conversation = Conversation(pack(**{"entities.yaml": yaml, "guards/till.py": guards}))
    for each in found:
        conversation.call("find_customer", {"email": f"{each}@mail.example"})
        conversation.result(each)
        conversation.agent("Thank you.")
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "C1", "status": "delivered", "delivered_on": "2025-05-05", "items": []})
    conversation.agent("I see.")
    judged = conversation.call("take_back", {"order_id": "A1"})
    assert {each.policy.id: each.outcome for each in judged.evidence}["own-order"] == evidence


@pytest.mark.parametrize(("found", "evidence"), [*[(nobody, "deny") for nobody in NOBODY], ("C1", "deny")])
def test_nobody_is_not_who_an_order_of_nobodys_belongs_to(found: str, evidence: str) -> None:
    """By the guide's own pack: an order without a customer, and a look-up that found none."""
    conversation = Conversation(pack())
    conversation.call("find_customer", {"email": "x@mail.example"})
    conversation.result(found)
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "", "status": "delivered", "delivered_on": "2025-05-05", "items": []})
    conversation.agent("I see.")
    judged = conversation.call("take_back", {"order_id": "A1"})
    assert {each.policy.id: each.outcome for each in judged.evidence}["own-order"] == evidence


@pytest.mark.parametrize(
    ("said", "on_file", "evidence"),
    [
        ("Take A1 back.", "ann@mail.example", "deny"),
        ("Take A1 back, I'm ann@mail.example.", "ann@mail.example", "permit"),
        ("It's Ann@Mail.example", "ann@mail.example", "permit"),
        ("It's ben@mail.example", "ann@mail.example", "deny"),
        ("It's ann@mail.example.net", "ann@mail.example", "deny"),
        # An order of nobody's is not that of whoever says nothing.
        ("Take A1 back.", "", "deny"),
        ("Take A1 back.", None, "deny"),
        ("It's ben@mail.example", "", "deny"),
        ("It's ben@mail.example", None, "deny"),
    ],
)
def test_the_caller_names_what_is_on_file(said: str, on_file: str | None, evidence: str) -> None:
    entities, guard = recipe("Compare what the caller says")
    yaml = FILES["entities.yaml"].replace("entities:\n", f"entities:\n{entities}")
    yaml = yaml.replace("fields: {customer_id: string, status:", "fields: {customer_id: string, email: string, status:")
    policies = FILES["policies.yaml"] + "  - {id: caller-knows-the-order}\n"
    guards = guard + "\n\n" + FILES["guards/till.py"]
    conversation = Conversation(pack(**{"entities.yaml": yaml, "guards/till.py": guards, "policies.yaml": policies}))
    conversation.user(said)
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "C1", "email": on_file, "status": "open", "items": []})
    conversation.agent("I see.")
    assert outcome(conversation, "caller-knows-the-order", "take_back", order_id="A1") == evidence


@pytest.mark.parametrize(("opened", "evidence"), [((), "deny"), (("A2",), "deny"), (("A1",), "permit")])
def test_a_look_up_that_the_sentence_names(opened: tuple[str, ...], evidence: str) -> None:
    entities, guard = recipe("Require a certain look-up")
    thing, shown = (line.partition("#")[0].rstrip() for line in entities.splitlines())
    yaml = FILES["entities.yaml"].replace("entities:\n", f"entities:\n{thing}\n") + shown + "\n"
    guards = guard + "\n\n" + FILES["guards/till.py"]
    policies = FILES["policies.yaml"] + "  - {id: opened-first}\n"
    changed = {"entities.yaml": yaml, "guards/till.py": guards, "policies.yaml": policies}
    conversation = Conversation(pack(**changed))
    for each in opened:
        conversation.call("get_order", {"order_id": each})
        conversation.result({"customer_id": "C1", "status": "open", "delivered_on": None, "items": []})
        conversation.agent("I see.")
    assert outcome(conversation, "opened-first", "take_back", order_id="A1") == evidence


SWAPS = """
predicates:
  swap: {tool: swap_items}
  reminded: {pattern: remember}
rules:
  - {id: confirm, formula: "%s"}
"""


@pytest.mark.parametrize(
    ("talk", "wanted"),
    [
        (["swap"], [True]),
        (["remind", "swap"], [False]),
        (["remind", "swap", "swap"], [False, True]),
        (["remind", "swap", "remind", "swap"], [False, False]),
    ],
)
def test_a_reminder_before_each_swap(talk: list[str], wanted: list[bool]) -> None:
    (formula,) = re.findall(r"`(ALWAYS \(swap IMPLIES YESTERDAY .*?)`", PAGE)
    conversation = Conversation(pack(**{"rules.yaml": SWAPS % formula}))
    found: list[bool] = []
    for each in talk:
        if each == "remind":
            conversation.agent("Please remember that swaps are final.")
            conversation.user("I do.")
        else:
            judged = conversation.call("swap_items", {"order_id": "A1", "old": [], "new": []})
            found.append(any(finding.rule.name == "confirm" for finding in judged.rules))
            conversation.result("ok")
    assert found == wanted


@pytest.mark.parametrize("text", ["", "Let me see."])
@pytest.mark.parametrize(
    ("tries", "wanted"),
    [
        ((1, 1, 1, 1), "+ + + -"),
        ((5, 1, 2), "+++-- - --"),
        ((1, 2, 1), "+ ++ -"),
        ((2, 0, 2), "++  +-"),
    ],
)
def test_three_tries_and_no_fourth(tries: tuple[int, ...], wanted: str, text: str) -> None:
    """So many side by side in each turn, with or without a text before them."""
    (rules,) = recipe("Allow three tries")
    rules = rules.replace("check_pin", "find_customer").replace("three-tries", "confirm")
    conversation = Conversation(pack(**{"rules.yaml": rules}))
    said: list[str] = []
    for turn, count in enumerate(tries):
        said.append("")
        with conversation.turn(text):
            for place in range(count):
                judged = conversation.call("find_customer", {"email": "a@mail.example"}, id=f"{turn}-{place}")
                said[-1] += "-" if judged.rules else "+"
                if judged.rules:
                    conversation.refuse()
            for call in conversation.waiting():
                conversation.result({"verified": False}, id=call.id)
        assert not conversation.call("get_order", {"order_id": "A1"}).rules
        conversation.result("nobody's")
        conversation.agent("I see.")
        conversation.user("And now?")
    assert " ".join(said) == wanted


def test_a_tool_may_be_spared_the_question() -> None:
    formula, minor = re.findall(r"`(ALWAYS \(change AND NOT minor IMPLIES agreed\))` with `(minor: .*?)`", PAGE)[0]
    rules = FILES["rules.yaml"].replace("ALWAYS (change IMPLIES agreed)", formula)
    rules = rules.replace("predicates:\n", f"predicates:\n  {minor.replace('add_note', 'take_back')}\n")
    conversation = Conversation(pack(**{"rules.yaml": rules}))
    conversation.user("Take A1 back and swap the lamp.")
    assert not conversation.call("take_back", {"order_id": "A1"}).rules
    assert conversation.call("swap_items", {"order_id": "A1", "old": ["L1"], "new": ["L2"]}).rules


def outcome(conversation: Conversation, policy: str, tool: str, **arguments: str) -> str:
    """What the guard of a policy says of a call."""
    judged = conversation.call(tool, arguments)
    return {each.policy.id: each.outcome for each in judged.evidence}[policy]


def test_a_guard_on_look_ups_judges_reads_too() -> None:
    (annotation,) = re.findall(r"`(call: write\(account_id\) \| get_account)`", PAGE)
    binding = annotation.replace("account_id", "order_id").replace("get_account", "get_order")
    guards = FILES["guards/till.py"].replace("call: write(order_id)", binding)
    conversation = Conversation(pack(**{"guards/till.py": guards}))
    conversation.user("Where is A1?")
    assert outcome(conversation, "own-order", "get_order", order_id="A1") == "deny"
    conversation.result({"customer_id": "C1", "status": "open", "delivered_on": None, "items": []})
    (verdict,) = [each for each in conversation.verdicts() if each.made.call.tool == "get_order"]
    assert verdict.determined == "violation"


CARDS = """def card_open(call: take_back, facts):
    \"\"\"An order is taken back within 30 days\"\"\"
    order = facts.Order(call.order_id)
    return deny("blocked") if {condition} else permit()
"""


@pytest.mark.parametrize(
    ("field", "condition", "shown", "wanted"),
    [
        ("string?", 'order.blocked_by == "bank"', None, "permit"),
        ("string?", 'order.blocked_by == "bank"', "bank", "deny"),
        ("string?", 'order.blocked_by in {"bank", "police"}', None, "permit"),
        ("string?", 'order.blocked_by in {"bank", "police"}', "police", "deny"),
        ("string", 'order.blocked_by == "bank"', None, "undetermined"),
        ("integer?", "order.blocked_by != None and order.blocked_by > 3", None, "permit"),
        ("integer?", "order.blocked_by > 3", None, "failed"),
        ("integer?", "order.blocked_by > 3", 4, "deny"),
    ],
)
def test_nothing_there_is_none_only_where_the_field_says_so(
    field: str, condition: str, shown: str | int | None, wanted: str
) -> None:
    assert "is optional (`blocked_by: string?`), a `null` is `None`" in " ".join(PAGE.split())
    entities = FILES["entities.yaml"].replace("items: list", f"items: list, blocked_by: {field}")
    guards = FILES["guards/till.py"].replace("def back_in_time(call: take_back", "def late(call: take_back")
    guards = guards.partition("def late")[0] + CARDS.format(condition=condition)
    conversation = Conversation(pack(**{"entities.yaml": entities, "guards/till.py": guards}))
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "C1", "status": "open", "items": [], "delivered_on": None, "blocked_by": shown})
    conversation.agent("I see.")
    judged = conversation.call("take_back", {"order_id": "A1"})
    (evidence,) = [each for each in judged.evidence if each.policy.id == "card-open"]
    assert evidence.outcome == wanted


SEEN = """def another_order(call: take_back, facts):
    \"\"\"An order is taken back within 30 days\"\"\"
    return permit() if any(order.status == "open" for order in facts.Order.seen()) else deny("no open order")
"""


@pytest.mark.parametrize(
    ("complete", "shown", "wanted"),
    [
        (False, (), "undetermined"),
        (False, ("delivered",), "undetermined"),
        (False, ("delivered", "open"), "permit"),
        (True, (), "deny"),
        (True, ("delivered",), "deny"),
        (True, ("open",), "permit"),
    ],
)
def test_nothing_seen_is_not_known_unless_the_kind_is_complete(
    complete: bool, shown: tuple[str, ...], wanted: str
) -> None:
    assert "`any(...)` is unknown, or false for a `complete` entity" in " ".join(PAGE.split())
    entities = FILES["entities.yaml"]
    if complete:
        entities = entities.replace("key: order_id\n", "key: order_id\n    origin: conversation\n    complete: true\n")
    guards = FILES["guards/till.py"].partition("def back_in_time")[0] + SEEN
    conversation = Conversation(pack(**{"entities.yaml": entities, "guards/till.py": guards}))
    for number, status in enumerate(shown):
        conversation.call("get_order", {"order_id": f"A{number}"})
        conversation.result({"customer_id": "C1", "status": status, "delivered_on": None, "items": []})
        conversation.agent("I see.")
    assert outcome(conversation, "another-order", "take_back", order_id="A9") == wanted


def dated(guard: str, now: str, **shown: str) -> str | None:
    """What a guard on taking back says at a time, where the order has times of its own."""
    files = {
        "pack.yaml": FILES["pack.yaml"].replace("now: 2025-05-12T09:00:00", "timezone: Europe/Berlin"),
        "entities.yaml": FILES["entities.yaml"].replace(
            "fields: {customer_id: string, status:",
            "fields: {delivered_at: datetime, born: date, customer_id: string, status:",
        ),
        "guards/till.py": guard + "\n\n" + FILES["guards/till.py"],
        "policies.yaml": FILES["policies.yaml"] + "  - {id: before-six}\n",
    }
    conversation = Conversation(pack(**files))
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "C1", "status": "delivered", "items": [], **shown})
    conversation.agent("I see.")
    judged = conversation.call("take_back", {"order_id": "A1"}, time=datetime.fromisoformat(now).timestamp())
    return next(each.outcome for each in judged.evidence if each.policy.id == "before-six")


@pytest.mark.parametrize(
    ("now", "wanted"),
    [
        ("2025-07-01T15:30:00+00:00", "permit"),
        ("2025-07-01T16:30:00+00:00", "deny"),
        ("2025-07-02T10:00:00+00:00", "deny"),
    ],
)
def test_the_clocks_are_those_of_the_handbook(now: str, wanted: str) -> None:
    (guard,) = recipe("Check the time of day")
    assert dated(guard, now, delivered_at="2025-06-30T22:30:00Z") == wanted


@pytest.mark.parametrize(
    ("day", "wanted"),
    [("2026-05-14", "deny"), ("2026-05-15", "permit"), ("2026-06-01", "permit"), ("2026-04-30", "deny")],
)
def test_how_old_somebody_is(day: str, wanted: str) -> None:
    (function,) = recipe("Compute an age")
    assert 'if age(facts.Customer(call.customer_id).born, now()) < 18: return deny("for adults only")' in PAGE
    guard = """def before_six(call: take_back, facts):
    \"\"\"An order is taken back within 30 days after it was delivered.\"\"\"
    if age(facts.Order(call.order_id).born, now()) < 18:
        return deny("for adults only")
    return permit()
"""
    assert dated(f"{guard}\n\n{function}", f"{day}T12:00:00+00:00", born="2008-05-15") == wanted


PAID = {"amount": "20.00", "payment_id": "gift_card_7"}


@pytest.mark.parametrize(
    ("put", "more", "is_open"),
    [
        ("Shall I take order A1 back?", {}, False),
        ("Shall I take order A1 back?", PAID, True),
        ("Shall I take order A1 back and pay 20.00 to gift_card_7?", PAID, False),
        ("Shall I take order A1 back and pay 20.00 to gift_card_7?", {}, True),
        ("I will take back A1. 20.00 go to gift_card_7. Shall I?", PAID, True),
    ],
)
def test_a_sentence_for_an_optional_argument(put: str, more: dict[str, str], is_open: bool) -> None:
    (sentences,) = recipe("Ask for consent")
    put_as = re.findall(r"put_as: \[.*\]", sentences)[0]
    before, at, after = FILES["tools.json"].partition('"take_back", "parameters": {"type": "object", "properties": {')
    tools = before + at + '"amount": {"type": "string"}, "payment_id": {"type": "string"}, ' + after
    entries = FILES["tools.yaml"].replace('put_as: "take order {order_id} back"', put_as)
    assert entries != FILES["tools.yaml"]
    conversation = Conversation(pack(**{"tools.json": tools, "tools.yaml": entries}))
    conversation.user("Take A1 back.")
    conversation.agent(put)
    conversation.user("Yes.")
    judged = conversation.call("take_back", {"order_id": "A1"} | more)
    assert any(finding.rule.name == "confirm" for finding in judged.open_rules) is is_open
    assert not any(finding.rule.name == "confirm" for finding in judged.rules)


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [(("open",), "deny"), (("open", ""), "undetermined"), (("open", "", "delivered"), "permit")],
)
def test_what_the_user_may_have_paid_is_unknown(seen: tuple[str, ...], wanted: str) -> None:
    """Of each step the status that a look-up shows, or an empty text for a request to pay."""
    (entry,) = recipe("Handle changes by the user")
    guard = SEEN.replace(
        'any(order.status == "open" for order in facts.Order.seen())',
        'facts.Order(call.order_id).status == "delivered"',
    )
    tools = f"{FILES['tools.yaml']}  {entry}"
    conversation = Conversation(pack(**{"tools.yaml": tools, "guards/till.py": swaps_and(guard)}))
    for status in seen:
        conversation.call("get_order" if status else "request_payment", {"order_id": "A1"})
        conversation.result({"customer_id": "C1", "status": status, "items": []} if status else "sent")
        conversation.agent("I see.")
    assert outcome(conversation, "another-order", "take_back", order_id="A1") == wanted


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [({"kind": "A1", "stock": {}, "status": "open"}, "undetermined"), ({"items": [], "status": "open"}, "permit")],
)
def test_each_record_of_one_look_up_is_of_its_own_kind(shown: dict[str, object], wanted: str) -> None:
    (observation,) = recipe("Map a look-up that returns several kinds")
    guard = SEEN.replace(
        'any(order.status == "open" for order in facts.Order.seen())', 'facts.Order(call.order_id).status == "open"'
    )
    conversation = Conversation(
        pack(**{"entities.yaml": FILES["entities.yaml"] + observation, "guards/till.py": swaps_and(guard)})
    )
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result(shown)
    conversation.agent("I see.")
    assert outcome(conversation, "another-order", "take_back", order_id="A1") == wanted


@pytest.mark.parametrize(
    ("said", "wanted"), [("It is 555-0101.", "permit"), ("It is 555-0102.", "deny"), ("Take A1 back.", "deny")]
)
def test_the_user_named_a_phone_number(said: str, wanted: str) -> None:
    (guard,) = recipe("Require that the user named a value")
    yaml = FILES["entities.yaml"].replace(
        "fields: {customer_id: string, status:", "fields: {customer_id: string, phone: string, status:"
    )
    policies = FILES["policies.yaml"] + "  - {id: named-phone}\n"
    guards = f"{guard}\n\n{FILES['guards/till.py']}"
    conversation = Conversation(pack(**{"entities.yaml": yaml, "guards/till.py": guards, "policies.yaml": policies}))
    conversation.user(said)
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "C1", "phone": "555-0101", "status": "open", "items": []})
    conversation.agent("Your number is 555-0101.")
    conversation.user("Go on.")
    assert outcome(conversation, "named-phone", "take_back", order_id="A1") == wanted


@pytest.mark.parametrize(("fee", "is_open"), [("4.00", False), ("3.00", True)])
def test_a_yes_counts_for_the_price_that_was_looked_up(fee: str, is_open: bool) -> None:
    (entry,) = recipe("Tell the user the price")
    added = entry.partition("\n")[2].replace("\n", "\n  ").rstrip()
    tools = re.sub(
        r"  take_back: .*\n",
        lambda _: f"  take_back:\n    effect: write\n    changes: [Order.status]\n  {added}\n",
        FILES["tools.yaml"],
    )
    yaml = FILES["entities.yaml"].replace(
        "fields: {customer_id: string, status:", "fields: {customer_id: string, fee: money, status:"
    )
    conversation = Conversation(pack(**{"tools.yaml": tools, "entities.yaml": yaml}))
    conversation.user("Take A1 back.")
    conversation.call("get_order", {"order_id": "A1"})
    conversation.result({"customer_id": "C1", "fee": "4.00", "status": "open", "items": []})
    conversation.agent(f"Shall I take order A1 back for a fee of {fee}?")
    conversation.user("Yes.")
    judged = conversation.call("take_back", {"order_id": "A1"})
    assert any(finding.rule.name == "confirm" for finding in judged.open_rules) is is_open
    assert not any(finding.rule.name == "confirm" for finding in judged.rules)


def swaps_and(guard: str) -> str:
    """Return the guide's guards with another last guard."""
    return FILES["guards/till.py"].partition("def back_in_time")[0] + guard


TESTED = {
    "Serve only one customer per conversation": test_one_customer_in_a_conversation,
    "Compare what the caller says with the record": test_the_caller_names_what_is_on_file,
    "Require a certain look-up": test_a_look_up_that_the_sentence_names,
    "Require a reminder before each swap": test_a_reminder_before_each_swap,
    "Guard a look-up": test_a_guard_on_look_ups_judges_reads_too,
    "Allow three tries": test_three_tries_and_no_fourth,
    "Check the time of day": test_the_clocks_are_those_of_the_handbook,
    "Compute an age": test_how_old_somebody_is,
    "Handle `null`": test_nothing_there_is_none_only_where_the_field_says_so,
    "Handle unseen entities": test_nothing_seen_is_not_known_unless_the_kind_is_complete,
    "Ask for consent": test_a_sentence_for_an_optional_argument,
    "Handle changes by the user": test_what_the_user_may_have_paid_is_unknown,
    "Map a look-up that returns several kinds": test_each_record_of_one_look_up_is_of_its_own_kind,
    "Require that the user named a value": test_the_user_named_a_phone_number,
    "Tell the user the price": test_a_yes_counts_for_the_price_that_was_looked_up,
}


def test_every_recipe_of_the_page_has_a_test_of_its_verdict() -> None:
    section = PAGE.partition("## 3. Recipes")[2].partition("\n## ")[0]
    assert re.findall(r"^\*\*(.+?)\.\*\*", section, re.MULTILINE) == list(TESTED)
