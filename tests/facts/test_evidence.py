"""What became of the results of look-ups is counted per tool, with what to do about it."""

import pytest

from bylaw.facts.evidence import CURES, EvidenceCount, LookupEvidence
from bylaw.trace import Call, Result
from tests.facts.boxes import ledger_of, schema

CALL = Call("look", {"box_id": "x"})


def result(content: str, **about) -> Result:
    return Result(0, content, **about)


@pytest.mark.parametrize(
    ("answer", "with_pack", "without"),
    [
        (result('{"box_id": "x", "a": 1}'), "shown", "readable"),
        (result("{'box_id': 'x', 'a': None}"), "shown", "readable"),
        (result("Box(box_id='x', a=1)"), "shown", "readable"),
        (result("there is no box"), "shown", "unreadable"),
        (result("Error: no box"), "shown", "refused"),
        (result('{"id": "x"}'), "unmapped", "readable"),
        (result('[{"a": 1}]'), "unmapped", "readable"),
        (result("a = 1"), "unreadable", "unreadable"),
        (result("{'box_id': <object at 0x7f>}"), "unreadable", "unreadable"),
        (result("Error: try later"), "refused", "refused"),
        (result('{"a": 1}', error=True), "refused", "refused"),
        (result("", captured=False), "uncaptured", "uncaptured"),
        (result(""), "empty", "empty"),
        (result("[]"), "empty", "empty"),
    ],
)
def test_a_result_is_graded(answer, with_pack, without):
    assert EvidenceCount().grade(CALL, answer) == without
    found = EvidenceCount(schema()).grade(CALL, answer)
    assert found == with_pack
    # What is graded as shown is what the ledger knows of.
    ledger, box = ledger_of([CALL, answer]), schema().entities["Box"]
    fields = [shown for name in ("a", "b") for shown in ledger.shown(box, ("x",), name)]
    absent = [shown for shown in ledger.shown(box, ("x",), "exists") if not shown.value]
    assert (found == "shown") == bool(fields or absent)


def test_counts_are_per_look_up_and_name_the_cure_of_the_commonest_fault():
    listed = Call("list", {})
    events = [CALL, result('{"a": 1}'), CALL, result("", captured=False), CALL, result("Error: no"), CALL]
    events += [result("prose"), CALL, result("prose"), listed, result('{"other": 1}'), listed, result("[]")]
    events += [Call("set_a", {"box_id": "x", "to": 1}), result("done"), Call("nobody", {}), result("{}")]
    events = [
        Result(at - 1, each.content, each.error, each.captured) if isinstance(each, Result) else each
        for at, each in enumerate(events)
    ]
    halves = EvidenceCount(schema()), EvidenceCount(schema())
    halves[0].add(events)
    halves[1].update(halves[0])
    assert halves[1].found() == (
        LookupEvidence("look", 5, 4, 2, 1, refused=1, cures=(CURES["unreadable"], CURES["uncaptured"])),
        LookupEvidence("list", 2, 2, 2, 0, empty=1, cures=(CURES["unmapped"],)),
    )
    without = EvidenceCount()
    without.add(events)
    assert {each.tool for each in without.found()} == {"look", "list", "set_a", "nobody"}
    assert all(each.shown is None for each in without.found())
