"""Actions that a pack declares wrongly: every fault with its line."""

import pytest

from bylaw import Shield
from bylaw.errors import PackError
from tests.actions.desk import FILES, acts, opened, with_tools

READS, OTHERWISE = (
    "argument: query, as: sql, dialect: postgres, statements: [delete]",
    "otherwise: {browser_evaluate: deny}",
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  place_order:\n", "  browser_click:\n", "the tool at tools.yaml:4 have the same name, `browser_click`"),
        ("of: [browser_click, browser_type, browser_press_key]", "of: [browser_clik]", "did you mean `browser_click`"),
        ("page: '/checkout$'", "page: '/checkout('", "is not a valid pattern"),
        ("$page.text('^Total: ([0-9.]+) EUR$')", "$page.text('^Total: (')", "is not a valid pattern"),
        ("$argument.text", "$argument", "is not a valid source"),
        ("$argument.text", "$words.text", "`$words` is not a valid source"),
        ("$argument.text", "$statement.kind", "because this action matches no `sql`"),
        ("$statement.bounded", "$statement.bound", "`$statement` has no `bound`"),
        ("$row.cell('Product')", "$row.cell(Product)", "requires quoted text"),
        (READS, "argument: sql, as: sql", "`execute_sql` has no argument `sql`"),
        (READS, "argument: query, as: soql", "`soql` is not a known format"),
        (READS, "argument: query, as: sql, dialect: snowflake", "`snowflake` is not a supported dialect"),
        (READS, "argument: query, as: sql, program: rm", "`program` is not allowed with `as: sql`"),
        ("on: {role: link}, effect: write", "on: {role: link}, effect: read", "may click or press a key"),
        ("on: {role: textbox}", "on: {role: [textbox, checkbox]}", "may click or press a key"),
        ("on: {role: textbox}", "on: {name: Note}", "may click or press a key"),
        ("fields: [", "fields: ['Note(', ", "is not a valid pattern"),
        ("on: {role: link}", "on: {page: x}", "an action must name an element of the page"),
        ("on: {role: link}", "on: {rolle: link}", "`rolle` is not a known key"),
        ("type: number", "type: amount", "`amount` is not a parameter type"),
        (OTHERWISE, "otherwise: {browser_evaluate: allow}", "`browser_evaluate` may write"),
        (OTHERWISE, "otherwise: {browser_eval: deny}", "`browser_eval` is not a tool"),
        (OTHERWISE, "otherwise: {browser_evaluate: maybe}", "`maybe` is not a valid `otherwise`"),
        ("content: [{role: region, name: Reviews}]", "content: [{}]", "every element of the page"),
        ("looks: [", "looks: ['shop[.]test/.*', ", "must match a single host"),
        ("looks: [", "looks: ['https://shop[.]test/a|.*', ", "must match a single host"),
        ("looks: [", "looks: ['https://shop[.]test/(', ", "is not a valid pattern"),
        ("looks: [", "looks: ['https://shop[.]test/x)?(.*', ", "is not a valid pattern"),
        ("^Total: ([0-9.]+) EUR$')\"", "^Total: ([0-9.]+) EUR$')\", within: {}", "every element of the page"),
        ("tables_written, type: list}", "tables_written, type: list, within: {role: main}}", "is not allowed with"),
    ],
)  # fmt: skip
def test_a_wrong_action_is_told_with_its_line(old: str, new: str, message: str) -> None:
    line = next(
        number for number, text in enumerate(FILES["tools.yaml"].splitlines(), 1) if old.splitlines()[0] in text
    )
    with pytest.raises(PackError) as error:
        with_tools(old, new)
    fault = next(each for each in error.value.faults if message in f"{each.message}; {each.hint}")
    assert fault.place == f"tools.yaml:{line}"


def test_two_actions_of_one_name_are_a_fault() -> None:
    with pytest.raises(PackError, match="fill_in"):
        with_tools("  follow_link:", "  fill_in: {of: browser_click, on: {role: tab}, effect: read}\n  follow_link:")


def test_a_value_that_is_not_of_its_type_leaves_the_call_unknown() -> None:
    with Shield(with_tools("^Total: ([0-9.]+) EUR$", "^(Total: .*) EUR$")) as shield:
        decision = opened(shield).decide("browser_click", {"target": "e7"})
        assert not acts(decision)
        assert "`total` is not a number" in decision.for_person


def test_an_optional_value_may_be_missing() -> None:
    text = "{value: \"$page.text('^Voucher: (.*)')\", optional: true}"
    with Shield(with_tools("      address: ", f"      voucher: {text}\n      address: ")) as shield:
        (_, arguments), *_ = acts(opened(shield).decide("browser_click", {"target": "e7"}))
        assert "voucher" not in arguments
