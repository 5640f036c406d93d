"""What a tool does is guessed from what there is, says why, and yields to a person's word."""

from pathlib import Path

import pytest

from bylaw.errors import BylawError
from bylaw.scan import scan
from bylaw.scan.effect import Behaviour, by_definition, by_name, effects_file, guess, read_effects, weigh

from .library import Talk, loan, visits


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("get_user_details", "read"),
        ("cancelReservation", "write"),
        ("github.issues.create", "write"),
        ("mcp__crm__list_contacts", "read"),
        ("search_direct_flight", "read"),
        ("get_scheduled_transactions", "read"),
        ("schedule_transaction", "write"),
        ("think", "none"),
        ("transfer_to_human_agents", "none"),
        ("hand_over", "none"),
        ("transfer_funds", "write"),
    ],
)
def test_names_tell(name: str, effect: str) -> None:
    assert weigh(by_name(name))[0] == effect


def test_a_tool_nothing_speaks_for_is_a_write_and_unsure() -> None:
    unknown = guess("frobnicate", Behaviour())
    assert unknown.effect == "write"
    assert unknown.sure < 0.5
    assert unknown.why == ("no evidence; assumed to write",)


def test_a_hint_outweighs_a_name() -> None:
    seen = Behaviour()
    seen.definitions.add(by_definition({"name": "run_report", "annotations": {"readOnlyHint": True}}))
    assert guess("run_report", seen).effect == "read"
    seen = Behaviour()
    seen.definitions.add(by_definition({"name": "get_and_lock", "annotations": {"destructiveHint": True}}))
    assert guess("get_and_lock", seen).effect == "write"


def test_a_record_that_differs_after_a_call_speaks_for_a_write() -> None:
    def talk(number: int) -> Talk:
        before, after = loan(number), {**loan(number), "due": "2024-07-01"}
        key = f"L{number:04}"
        made = Talk(f"t{number}").user("please").call("get_loan", before, loan_id=key)
        return made.call("loan_tool", "ok", loan_id=key).call("get_loan", after, loan_id=key)

    (found,) = [tool for tool in scan(talk(n).done() for n in range(5)).tools if tool.tool == "loan_tool"]
    assert (found.effect, found.sure > 0.9) == ("write", True)
    assert "a look-up after this call gave a different result, 5 of 5 times" in found.why


def test_that_a_calculator_repeats_itself_is_no_evidence() -> None:
    seen, look_up = Behaviour(), Behaviour()
    seen.same = look_up.same = 10
    assert guess("calculate", seen).why == guess("calculate", Behaviour()).why
    assert guess("calculate", seen).sure == guess("calculate", Behaviour()).sure
    assert "the same call gave the same result, 10 times" in guess("get_loan", look_up).why


def test_your_word_is_final(tmp_path: Path) -> None:
    file = tmp_path / "effects.yaml"
    file.write_text("effects:\n  renew_loan: read\n")
    result = scan(visits(10), effects=read_effects(file))
    assert [write.tool for write in result.writes] == ["pay_fine"]
    (renew,) = [tool for tool in result.tools if tool.tool == "renew_loan"]
    assert (renew.effect, renew.sure, renew.why) == ("read", 1.0, ("you said so",))


def test_an_effects_file_reads_back_as_the_guesses(tmp_path: Path) -> None:
    odd = Talk("odd").user("x").call("weird: name # [x]\n", "ok", id="A12").call("123", "ok").done()
    result = scan([*visits(10), odd])
    file = tmp_path / "effects.yaml"
    file.write_text(effects_file(result.tools))
    assert read_effects(file) == {tool.tool: tool.effect for tool in result.tools}


def test_every_fault_of_an_effects_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "effects.yaml"
    file.write_text("effects:\n  a: reads\n  b: write\n  c: 1\n")
    with pytest.raises(BylawError) as fault:
        read_effects(file)
    assert "effects.yaml:2: `" in str(fault.value)
    assert "effects.yaml:4: `" in str(fault.value)
