"""Cases, reviews and prompts of a pack with actions."""

import json

from bylaw.review.check import check
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
    assert "- Done with: `browser_click`, `browser_type`, `browser_press_key`" in text
