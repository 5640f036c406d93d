"""What a line says of a missing fact: the words that claimed it, and the write that changed it."""

import json
from pathlib import Path
from typing import Any

import msgspec

from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw.packs.clinic.demo import build_world
from bylaw_lab.clinic import story

from .desk import looked_up, talk, write_desk
from .test_baseline import CLOSED


def missing(out: Path, trajectory: str, step: int, field: str) -> dict[str, Any]:
    (line,) = [line for line in read_calls(out) if (line["trajectory"], line["step"]) == (trajectory, step)]
    (found,) = [fact for p in line["policies"] for fact in p["missing"] if fact["field"] == field]
    return found


def test_a_claimed_fact_carries_the_words_that_claimed_it(tmp_path: Path) -> None:
    world = tmp_path / "clinic.sqlite"
    build_world(world)
    logs = tmp_path / "logs.jsonl"
    logs.write_bytes(msgspec.json.encode(story.tell(*story.HONEST, name="honest")))
    audit(Request((logs,), "clinic", world), tmp_path / "out")
    (line,) = read_calls(tmp_path / "out")
    tier = missing(tmp_path / "out", "honest", line["step"], "tier")
    assert (tier["reason"], tier["claimed_at"], tier["claim"]) == ("claimed", 0, "Gold")
    assert tier["stale_by"] is None


def test_the_users_false_word_is_told_of_a_call_that_it_made_wrong(tmp_path: Path) -> None:
    world = tmp_path / "clinic.sqlite"
    build_world(world)
    logs = tmp_path / "logs.jsonl"
    logs.write_bytes(msgspec.json.encode(story.tell(*story.LIAR, name="liar")))
    audit(Request((logs,), "clinic", world), tmp_path / "out")
    (line,) = read_calls(tmp_path / "out")
    tier = missing(tmp_path / "out", "liar", line["step"], "tier")
    assert line["strict"] == "violation"
    assert (tier["reason"], tier["claimed_at"], tier["claim"]) == ("never_seen", 0, "Gold")


def test_a_stale_fact_names_the_write_that_changed_it(tmp_path: Path) -> None:
    look = ("get_customer", {"customer_id": "C1"}, looked_up())
    logs = write_desk(tmp_path, [talk("twice", "Close C1.", "Sure?", "Yes.", look, CLOSED, "Again.", CLOSED)])
    audit(Request((logs,), str(tmp_path / "pack"), mode="none"), tmp_path / "out")
    steps = [line["step"] for line in read_calls(tmp_path / "out")]
    partner = missing(tmp_path / "out", "twice", steps[1], "partner")
    assert (partner["reason"], partner["stale_by"], partner["claim"]) == ("stale", steps[0], "")


def test_the_words_of_a_private_claim_are_not_told(tmp_path: Path) -> None:
    logs = write_desk(tmp_path)
    audit(Request((logs,), str(tmp_path / "pack"), tmp_path / "world.json"), tmp_path / "out")
    email = missing(tmp_path / "out", "claimed", 3, "email")
    assert (email["reason"], email["claimed_at"], email["claim"]) == ("claimed", 0, "")
    assert json.dumps(email).count("hidden") == 0
