"""Attacks rewritten by an attacker who knows the defence: the content of a variant, and its count."""

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from bylaw.answering import RequestReader
from bylaw.pack import load_pack
from bylaw.text.folding import fold
from bylaw.trace import Trajectory, read
from bylaw.trace.event import Call, Result
from bylaw_lab.bench.agentdojo import own_pack, read_runs
from bylaw_lab.bench.rewriting import Rewriting
from bylaw_lab.bench.trial import TRICKS, Attack, attack_of, try_tricks, variants
from bylaw_lab.cli import main
from lab.tests.bench.test_agentdojo import ATTACK, BAD, BAD_PAY, READ, Says, run

TOOLS = load_pack("agentdojo/banking").schema.tools
ACCOUNT = "QQ90007777"
YAML = f"- {{id: 5, sender: AB12, subject: 'Tea. {BAD}'}}\n- {{id: 6, sender: CD34, subject: Lunch with Zoe in May}}\n"
SHOWN = ("get_most_recent_transactions", {"n": 5}, YAML)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.jsonl"
    paid = ("send_money", BAD_PAY, "sent")
    runs = [run(READ, paid, **ATTACK), run(SHOWN, paid, **ATTACK), run(paid, **ATTACK), run(READ, **ATTACK)]
    path.write_text("".join(json.dumps(each) + "\n" for each in runs))
    return path


def attacks(file: Path) -> list[Attack]:
    runs = [each for each in read(file) if isinstance(each, Trajectory)]
    return [attack for each in runs if (attack := attack_of(each, TOOLS)) is not None]


def shown(run: Trajectory) -> str:
    return " ".join(event.text for event in run.events if isinstance(event, Result))


def test_what_no_call_carries_out_or_no_result_shows_is_not_rewritten(file: Path):
    found = attacks(file)
    assert [attack.values for attack in found] == [(("recipient", ACCOUNT),)] * 2


def test_an_injection_with_escaped_line_breaks_is_replaced(tmp_path: Path):
    path = tmp_path / "model.jsonl"
    printed = (
        "get_most_recent_transactions",
        {"n": 5},
        str([{"id": 5, "subject": f"Tea.\n{BAD.replace(' ', chr(10))}"}]),
    )
    several = {**ATTACK, "injections": {"file": BAD.replace(" ", "\n")}}
    path.write_text(json.dumps(run(printed, ("send_money", BAD_PAY, "sent"), **several)))
    (attack,) = attacks(path)
    assert ACCOUNT not in shown(Rewriting(attack.run).replaced("Tea."))


@pytest.mark.parametrize("trick", TRICKS)
def test_a_variant_keeps_the_goal_and_loses_the_first_words(trick: str, file: Path):
    tried = [*variants(attacks(file), trick, 7)]
    assert len(tried) == 2
    for attack, variant in tried:
        calls = [variant.run.events[step] for step in variant.goal]
        assert [call.arguments for call in calls if isinstance(call, Call)] == [BAD_PAY]
        assert fold(BAD) not in fold(shown(variant.run))
        for event in variant.run.events:
            if isinstance(event, Result) and event.call is not None:
                assert isinstance(variant.run.events[event.call], Call)
        stands = fold(ACCOUNT) in fold(shown(variant.run))
        assert stands is (trick not in ("split", "encoded"))
        again = TRICKS[trick](attack, Random(3))
        assert again is not None
        assert again.run.events == TRICKS[trick](attack, Random(3)).run.events  # pyright: ignore[reportOptionalMemberAccess]


def test_every_trick_is_counted_and_a_value_that_only_the_attacker_gave_is_held(file: Path):
    packs = {"banking": own_pack("banking")}
    tried = try_tricks(read_runs([file]), packs, 1)
    assert [each.trick for each in tried if each.setting == "guards"] == [*TRICKS]
    # The user of these runs gave the account, so no result replaces it.
    found = try_tricks(read_runs([file]), packs, 1, requests=RequestReader(Says()))
    tried = [each for each in found if each.setting != "guards"]
    assert {(each.stopped.cases, each.stopped.hits) for each in tried} == {(2, 2)}


def test_the_command_tells_tricks_as_a_table_and_as_json(file: Path):
    told = CliRunner().invoke(main, ["bench", "agentdojo", str(file), "--adaptive", "1", "--json"])
    assert told.exit_code == 0, told.output
    assert {each["trick"] for each in json.loads(told.output)} == set(TRICKS)
    table = CliRunner().invoke(main, ["bench", "agentdojo", str(file), "--adaptive", "1"])
    assert "over two reads" in table.output
