"""Cases, reviews and prompts of a pack with actions."""

import json
from pathlib import Path

from bylaw import load_pack
from bylaw.pack.review import sides_of
from bylaw.policy.folder import read_folder
from bylaw.review.check import check, signed_lines
from bylaw.shield.instructions import instructions
from tests.actions.desk import CHECKOUT, FILES, page
from tests.packs import made

CASES = f"""
- {{policy: order-limit, note: dear, call: {{place_order: {{total: 600, address: x}}}}, want: deny}}
- {{policy: order-limit, note: cheap, call: {{place_order: {{total: 60, address: x}}}}, want: permit}}
- policy: one-deletion
  note: a second one
  events:
    - {{call: delete_product, args: {{product: Chair}}, result: ok}}
  call: {{delete_product: {{product: Lamp}}}}
  want: deny
- rule: confirmed
  note: a click on the button, without a yes
  events:
    - user: I want a lamp.
    - {{call: browser_navigate, args: {{url: "http://shop.test/checkout"}}, result: {json.dumps(page(CHECKOUT))}}}
    - {{call: browser_click, args: {{target: e7}}}}
  want: broken
"""


def test_cases_are_told_in_actions_or_in_calls() -> None:
    pack = made({**FILES, "cases/shop.yaml": CASES})
    found = check(pack)
    assert [(each.note, each.got) for each in found.cases if not each.passed] == []
    assert len(found.cases) == 4


def test_the_prompt_says_which_tools_an_action_is_done_with() -> None:
    text = instructions(made(FILES))
    assert "## place_order" in text
    assert "- Call it through: `browser_click`, `browser_type`, `browser_press_key`" in text


def test_a_signature_covers_the_actions_that_a_check_is_about(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    pack, before = load_pack(tmp_path), sides_of(read_folder(tmp_path))
    for policy in ("order-limit", "confirmed"):
        assert "Place order" in "\n".join(signed_lines(pack, pack.policies[policy]))
    assert "Place order" not in "\n".join(signed_lines(pack, pack.policies["bounded"]))
    tools = tmp_path / "tools.yaml"
    tools.write_text(
        tools.read_text(encoding="utf-8").replace("name: Place order", "name: Place orders"), encoding="utf-8"
    )
    after = sides_of(read_folder(tmp_path))
    changed = {name for name, sides in after.items() if sides.check != before[name].check}
    assert {"order-limit", "office", "confirmed"} <= changed
    assert "bounded" not in changed
