"""On real logs a scan says something true: the numbers that lab/results/pages/scan.md promises."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from bylaw.cli.init import init_pack
from bylaw.cli.logs import trajectories
from bylaw.scan import Scan, scan
from bylaw.trace import Call

from .test_init import sound

ROOT = Path(__file__).parents[2]
DATA = ROOT / ".." / "shared" / "data"
if not DATA.is_dir():
    pytest.skip("no recorded conversations here", allow_module_level=True)
pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def airline() -> Scan:
    return scan(trajectories([DATA / "tau-airline" / "tau1" / "runs", DATA / "tau-airline" / "tau2" / "runs"]))


@pytest.fixture(scope="module")
def dojo() -> Scan:
    """Of the conversations that the tests below look at: those with one of these writes."""
    runs = trajectories([DATA / "agentdojo" / "runs"])
    return scan(
        run for run in runs if any(isinstance(e, Call) and e.tool in ("send_money", "send_email") for e in run.events)
    )


def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("scan_airline", ROOT / "lab" / "benchmarks" / "scan_airline.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_proposed_lookups_are_those_the_airline_needs(airline: Scan) -> None:
    right, proposed, found, needed = benchmark().score_lookups(airline, benchmark().AIRLINE)
    assert right >= 0.9 * proposed
    assert found >= 0.8 * needed


def test_the_airlines_effects_are_guessed_right(airline: Scan) -> None:
    writes = {guess.tool for guess in airline.tools if guess.effect == "write"}
    assert writes == {*benchmark().AIRLINE, "update_reservation_insurance"}  # the last is one that a model made up
    none = {guess.tool for guess in airline.tools if guess.effect == "none"}
    assert none == {"think", "calculate", "transfer_to_human_agents"}


def test_the_attackers_account_is_seen_to_come_from_free_text(dojo: Scan) -> None:
    (send,) = [write for write in dojo.writes if write.tool == "send_money"]
    (recipient,) = [argument for argument in send.arguments if argument.name == "recipient"]
    bill, attacker = "UK12345678901234567890", "US133000000121212121212"
    assert {each.value for each in recipient.from_text} == {bill, attacker}
    assert recipient.text > 100


def test_made_up_addresses_are_seen_to_come_from_nowhere(dojo: Scan) -> None:
    (send,) = [write for write in dojo.writes if write.tool == "send_email"]
    (recipients,) = [argument for argument in send.arguments if argument.name == "recipients[]"]
    assert any(each.value.endswith("@example.com") for each in recipients.strange)


def test_a_pack_started_from_the_airline_is_sound(tmp_path: Path) -> None:
    data = DATA / "tau-airline" / "tau2"
    init_pack([data / "runs" / "gpt-4.1.json.gz"], data / "policy.md", tmp_path / "airline")
    pack = sound(tmp_path / "airline")
    assert pack.schema.entities["Reservation"].key == ("reservation_id",)
    assert pack.schema.entities["User"].key == ("user_id",)
