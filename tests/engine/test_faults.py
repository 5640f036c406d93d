"""A guard's failure is the guard's; anything else that goes wrong in our code is said to be ours."""

import json
from pathlib import Path

import pytest

from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw.engine.session import Session
from bylaw.facts.ledger import Ledger
from bylaw.trace import Call
from tests.audit.logs import HASTY, Shop, record

from .clinic import pack

CANCEL = Call("cancel_appointment", {"patient_id": "P1", "appointment_id": "A1", "late_fee": "0.00"}, turn=1)


def broken(self: Ledger, *args: object) -> None:
    raise KeyError("a bug of ours")


def test_a_fault_of_ours_leaves_the_call_inconclusive_and_is_not_blamed_on_the_guard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Ledger, "thing", broken)
    session = Session(pack())
    judgement = session.judge(CANCEL)
    assert judgement.outcome == "failed"
    assert "an internal error in Bylaw (KeyError)" in judgement.fault
    session.observe(CANCEL)
    (verdict,) = session.settle()
    assert (verdict.strict, verdict.determined) == ("inconclusive", "inconclusive")
    assert [fault.error for fault in session.faults] == ["KeyError"]
    assert "test_faults.py" in session.faults[0].trace


def test_an_audit_goes_on_after_a_fault_of_ours_and_keeps_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path)
    shop.logs(*[record(*HASTY, id=name) for name in ("first", "second")])
    judge = Session._ask_guards
    seen: list[object] = []

    def once(self: Session, *args: object) -> object:
        seen.append(args)
        if len(seen) == 1:
            raise TypeError("a bug of ours")
        return judge(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "_ask_guards", once)
    out = tmp_path / "out"
    audit(Request((tmp_path / "logs.jsonl",), str(shop.pack), None, "none"), out)
    first, second = read_calls(out)
    assert first["determined"] == "inconclusive"
    assert "in Bylaw (" in first["because"]
    assert "because" not in second
    (fault,) = [json.loads(line) for line in (out / "faults.jsonl").read_text().splitlines()]
    assert (fault["trajectory"], fault["error"], fault["message"]) == ("first", "TypeError", "a bug of ours")
