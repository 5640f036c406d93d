"""The audit's evidence check: per look-up tool, what was recorded, could be read, and showed what the entities map."""

import json
from typing import Any

import pytest

from tests.audit.logs import NO_RESULT, Shop, call, look, record, ship
from tests.docs.walkthrough import run


def asked(result: Any) -> list[dict[str, Any]]:
    return call("get_order", {"order_id": "PAID"}, result)


RECORDS = (
    record(look("PAID", paid=True), ship("PAID")),
    record(asked("the order is in good shape"), ship("PAID")),
    record(asked({"message": {"body": 1}}), ship("PAID")),
    record(asked("{'order_id': 'PAID', 'paid': True}"), ship("PAID")),
    record(asked(NO_RESULT), ship("PAID")),
)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("quick_workers")
def test_every_look_up_is_counted_with_the_cure(shop: Shop, jobs: int) -> None:
    (evidence,) = shop.audit(shop.logs(*RECORDS), jobs=jobs).summary["evidence"]
    counted = {name: evidence[name] for name in ("tool", "results", "captured", "readable", "shown")}
    assert counted == {"tool": "get_order", "results": 4, "captured": 4, "readable": 3, "shown": 2}
    assert any("correct the tool's observations" in cure for cure in evidence["cures"])
    assert any("return JSON from the tool" in cure for cure in evidence["cures"])


def test_the_terminal_and_the_report_say_what_could_not_be_read(shop: Shop) -> None:
    shop.logs(*RECORDS)
    shown = run(f"bylaw audit logs.jsonl --pack {shop.pack} --report", shop.root).stdout
    assert "get_order: 4 results, 4 recorded, 3 readable, 2 used by the pack." in " ".join(shown.split())
    page = (shop.root / "out" / "report.html").read_text()
    held = json.loads(page.split('id="data">', 1)[1].split("</script>", 1)[0])
    assert held["overview"]["evidence"][0]["cures"]


def test_whole_evidence_is_not_worth_a_line(shop: Shop) -> None:
    shop.logs(record(look("PAID", paid=True), ship("PAID")))
    assert "readable" not in run(f"bylaw audit logs.jsonl --pack {shop.pack}", shop.root).stdout
