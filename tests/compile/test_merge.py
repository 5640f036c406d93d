"""An owner's edits survive updates: item by item, wherever the item is; a clash becomes a question."""

from pathlib import Path

import pytest

from bylaw.policy.folder import read_folder
from bylaw.policy.yaml import read_yaml_file
from tests.command import bylaw
from tests.compile.shop import LIMIT, POLICY, Scripted
from tests.compile.test_update import NEW, OLD, Silent, _cover, _only, _sorted, compiled, pack

__all__ = ["pack"]

KINDS = """
def confirm_refunds(call, facts):
    if done("refund", order_id=call.order_id) > 0:
        return deny("one refund for an order")
    return permit()
"""


def changed() -> Scripted:
    """Answers for a document in which the limit is another one."""
    guards = LIMIT.replace("500.00", "600.00")
    return Scripted(
        cover=_cover(NEW, "limit"), sort=_sorted("refund-limit"), guards=guards, cases=_only("refund-limit", "600.0")
    )


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, text
    path.write_text(text.replace(old, new, 1))


def questions(root: Path, policy: str) -> list[str]:
    noted = read_yaml_file(root / "compiled.yaml").data["policies"][policy]
    return [f"{each['about']}: {each['text']}" for each in noted.get("questions", ())]


def test_a_deleted_line_a_deleted_policy_and_a_deleted_case_stay_deleted(pack: Path) -> None:
    edit(pack / "tools.yaml", "    changes: [Order.refunded]\n", "")
    text = (pack / "policies.yaml").read_text()
    start = text.index("- id: refund-window")
    (pack / "policies.yaml").write_text(text[:start] + text[text.index("- id: refund-limit") :])
    guards = (pack / "guards/refunds.py").read_text()
    (pack / "guards/refunds.py").write_text(guards[guards.index("def refund_limit") :])
    cases = (pack / "cases/refunds.yaml").read_text()
    first = cases.index("policy: refund-limit")
    (pack / "cases/refunds.yaml").write_text(cases[cases.rindex("\n- ", 0, first) + 1 :])
    for chat, document in (
        (Silent(), POLICY),
        (changed(), POLICY.replace(OLD, NEW)),
        (Silent(), POLICY.replace(OLD, NEW)),
    ):
        compiled(pack, chat, document)
        assert "changes:" not in (pack / "tools.yaml").read_text()
        assert "refund-window" not in (pack / "policies.yaml").read_text() + (pack / "cases/refunds.yaml").read_text()
        assert "refund_window" not in (pack / "guards/refunds.py").read_text()
    assert "600.00" in (pack / "guards/refunds.py").read_text(), "what nobody edited is the new one"


def test_a_removed_file_stays_removed(pack: Path) -> None:
    (pack / "cases/refunds.yaml").unlink()
    told = compiled(pack, Silent())
    assert not (pack / "cases/refunds.yaml").exists()
    assert "cases/refunds.yaml was removed by hand and is not written again" in told.notes


def test_a_policy_of_another_kind_keeps_its_kind_and_its_check(pack: Path) -> None:
    """A rule becomes a guard, and a policy that is only knowledge becomes one as well."""
    (pack / "rules.yaml").unlink()
    (pack / "cases/rules.yaml").unlink()
    edit(pack / "policies.yaml", "kind: rule", "kind: guard\n  tools: [refund]")
    (pack / "guards/manner.py").write_text(KINDS)
    edit(pack / "policies.yaml", "kind: knowledge", "kind: guard\n  tools: [refund]")
    today = KINDS.replace("confirm_refunds", "today").replace("> 0", "> 1")
    (pack / "guards/today.py").write_text(today)
    for chat, document in ((Silent(), POLICY), (changed(), POLICY.replace(OLD, NEW))):
        compiled(pack, chat, document)
        bodies = {each["id"]: each for each in read_folder(pack).parts["policies"].data["policies"]}
        assert {bodies[name]["kind"] for name in ("confirm-refunds", "today")} == {"guard"}
        assert (pack / "guards/manner.py").read_text() == KINDS
        assert not (pack / "rules.yaml").exists()
    assert "600.00" in (pack / "guards/refunds.py").read_text()


def test_an_edited_guard_stays_whole_where_its_sentence_changed_and_the_owner_is_asked(pack: Path) -> None:
    edit(pack / "guards/refunds.py", 'money("500.00")', 'money("550.00")')
    before = (pack / "cases/refunds.yaml").read_text()
    new = POLICY.replace(OLD, NEW)
    compiled(pack, changed(), new)
    assert "550.00" in (pack / "guards/refunds.py").read_text()
    assert (pack / "cases/refunds.yaml").read_text() == before
    assert NEW in (pack / "policies.yaml").read_text(), "the sentence is the document's"
    asked = questions(pack, "refund-limit")
    assert any("you edited the check" in each and "600.00" in each for each in asked), asked
    compiled(pack, Silent(), new)
    assert any("you edited the check" in each for each in questions(pack, "refund-limit")), "until somebody settles it"
    bylaw(pack.parent, "review", pack, "--accept", "refund-limit", "--by", "Ines")
    compiled(pack, Silent(), new)
    compiled(pack, Silent(), new)
    assert not any("you edited the check" in each for each in questions(pack, "refund-limit"))
    assert "550.00" in (pack / "guards/refunds.py").read_text()


def test_an_added_case_stays_and_a_new_check_that_fails_it_is_told(pack: Path) -> None:
    mine = """- note: ours
  policy: refund-limit
  call: {refund: {order_id: A1, customer_id: C1, amount: "550.00"}}
  facts: {"Customer[C1]": {level: gold}}
  want: deny
"""
    path = pack / "cases/refunds.yaml"
    path.write_text(path.read_text() + mine)
    compiled(pack, changed(), POLICY.replace(OLD, NEW))
    assert path.read_text().count(mine) == 1
    assert "600.0" in path.read_text()
    assert any("`ours` expects deny" in each for each in questions(pack, "refund-limit"))


def test_an_edit_of_a_policy_whose_sentence_is_gone_is_told_in_full(pack: Path) -> None:
    edit(pack / "guards/refunds.py", 'money("500.00")', 'money("550.00")')
    told = compiled(pack, Scripted(), POLICY.replace(f"{OLD}\n", ""))
    assert "refund-limit" not in (pack / "policies.yaml").read_text()
    assert any("the document no longer contains `refund-limit`" in each and "550.00" in each for each in told.notes)


def test_requests_are_built_from_the_owner_s_entities(pack: Path) -> None:
    path = pack / "entities.yaml"
    edit(path, "level: [none, gold]", "level: [none, gold, platinum]")
    chat = changed()
    compiled(pack, chat, POLICY.replace(OLD, NEW))
    assert "none|gold|platinum" in chat.asked("guards")[0].messages[1].content
    assert "platinum" in path.read_text()
    compiled(pack, Silent(), POLICY.replace(OLD, NEW))
    assert "platinum" in path.read_text(), "and it is still the owner's edit"


@pytest.mark.parametrize("remark", ["# above\n- id: refund-limit", "- id: refund-limit\n  # inside"])
def test_a_remark_stays_where_its_policy_changes(remark: str, pack: Path) -> None:
    edit(pack / "policies.yaml", "- id: refund-limit", remark)
    compiled(pack, changed(), POLICY.replace(OLD, NEW))
    assert "# above" in (pack / "policies.yaml").read_text() or "# inside" in (pack / "policies.yaml").read_text()
    assert NEW in (pack / "policies.yaml").read_text()


def test_a_function_that_was_moved_to_another_file_is_updated_there(pack: Path) -> None:
    guards = (pack / "guards/refunds.py").read_text()
    start = guards.index("def refund_limit")
    (pack / "guards/refunds.py").write_text(guards[:start])
    (pack / "guards/limits.py").write_text(guards[start:])
    compiled(pack, changed(), POLICY.replace(OLD, NEW))
    assert "600.00" in (pack / "guards/limits.py").read_text()
    assert "refund_limit" not in (pack / "guards/refunds.py").read_text()
