"""Guards that search things by a field, that reach several things from one key, and that read optional arguments."""

from msgspec.structs import replace

from bylaw.compile.assemble import assemble, on_trial
from bylaw.compile.context import other_tools_text
from bylaw.compile.pipeline import compile_pack
from bylaw.pack import Pack
from bylaw.review.case import CaseResult, run_cases
from tests.compile import shop
from tests.compile.shop import CARDS, LIMIT, Scripted, source

_BODY = """
        return deny("an order is older than 30 days")
    return permit()
"""
SEARCHES = f"""
def refund_window(call, facts):
    first = date(now()) - days(30)
    if any(order.delivered_on < first for order in facts.Order.seen(customer_id=call.customer_id)):{_BODY}"""
LISTED = f"""
def refund_window(call, facts):
    first = date(now()) - days(30)
    if any(facts.Order(each).delivered_on < first for each in facts.Customer(call.customer_id).order_ids):{_BODY}"""
CALL = 'call: {refund: {order_id: A1, customer_id: C1, amount: "20.00"}}, now: 2025-02-15T09:00:00'
OTHER_CASES = "".join(shop.CASES.partition("- {note: up to")[1:])
CASES = f"""
- {{note: none, policy: refund-window, {CALL}, facts: {{"Customer[C1]": {{order_ids: []}}}}, want: permit}}
- {{note: of another, policy: refund-window, {CALL}, want: permit,
   facts: {{"Customer[C1]": {{order_ids: []}}, "Order[A2]": {{customer_id: C2, delivered_on: 2024-01-16}}}}}}
- {{note: an old one, policy: refund-window, {CALL}, want: deny,
   facts: {{"Customer[C1]": {{order_ids: [A2]}}, "Order[A2]": {{customer_id: C1, delivered_on: 2024-01-16}}}}}}
{OTHER_CASES}"""
THINGS = shop.THINGS.replace("level: [none, gold]", "level: [none, gold], order_ids: list")


def _passed(guard: str) -> dict[str, tuple[str, bool]]:
    """By its note, what each case of the compiled pack wants, and whether it passes."""
    given = source()
    work, _ = compile_pack(given, Scripted(guards=guard + LIMIT, cases=CASES, things=THINGS))
    assert not work.checks["refund-window"].failed
    pack = Pack.from_files(on_trial(assemble(given, work, name="shop")))
    results = [each for each in run_cases(pack, of={"refund-window"}) if isinstance(each, CaseResult)]
    return {each.note: (each.wanted, each.passed) for each in results}


def test_a_guard_may_search_and_its_cases_say_that_nothing_else_is_there() -> None:
    passed = _passed(SEARCHES)
    assert passed["none"] == passed["of another"] == ("permit", True)
    assert passed["an old one"] == ("deny", True)
    assert all(is_passed for _, is_passed in passed.values())


def test_a_guard_may_go_through_a_list_of_keys() -> None:
    passed = _passed(LISTED)
    assert passed["none"] == passed["of another"] == ("permit", True)
    assert passed["an old one"] == ("deny", True)
    assert all(is_passed for _, is_passed in passed.values())


def test_a_guard_that_fails_where_an_optional_argument_lacks_is_mended() -> None:
    refund = CARDS["refund"]
    refund = replace(refund, parameters={**refund.parameters, "note": {"type": "string"}})
    careless = shop.WINDOW.replace("    if", '    if call.note == "urgent":\n        return permit()\n    if')
    mended = careless.replace("call.note", 'get(call, "note", "")')
    chat = Scripted(guards=careless + LIMIT, repair=mended)
    work, _ = compile_pack(replace(source(), cards={**CARDS, "refund": refund}), chat)
    told = chat.asked("repair")[0].messages[1].content
    assert "calls without an argument that need not be given" in told
    assert "the call has no argument `note`; use get(call, ...)" in told
    assert work.checks["refund-window"].code.strip() == mended.strip()


def test_code_is_told_which_calls_it_may_count() -> None:
    chat = Scripted()
    compile_pack(source(), chat)
    assert "get_order(order_id), get_customer(customer_id)" in chat.asked("guards")[0].messages[1].content


def test_of_very_many_tools_those_are_named_that_the_sentences_name() -> None:
    cards = {f"tool_{number}": CARDS["refund"] for number in range(50)} | {"open_ticket": CARDS["get_order"]}
    assert other_tools_text(cards, [], "Open a ticket first.") == "open_ticket(order_id)"


def test_of_two_guards_that_say_the_same_the_one_that_does_not_search_is_kept() -> None:
    for codes in ([SEARCHES, LISTED], [LISTED, SEARCHES]):
        chat = Scripted(guards=[code + LIMIT for code in codes], cases=CASES, things=THINGS)
        made = compile_pack(source(), chat)[0].checks["refund-window"]
        assert made.code.strip() == LISTED.strip()
