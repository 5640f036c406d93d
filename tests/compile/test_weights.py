"""Weights learned in a compile: used only if they help, recorded, shown if they disarm a rule, signed with it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bylaw.compile.assemble import assemble
from bylaw.compile.card import Card
from bylaw.compile.lesson import Label
from bylaw.compile.pipeline import Source, compile_pack
from bylaw.compile.update import place
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.pack.review import standings
from bylaw.policy.yaml import read_yaml
from bylaw.trace import Call, Message, Result, Trajectory
from tests.command import bylaw
from tests.compile.shop import CARD, POLICY, RULES, Scripted, source

CALL = Call("refund", {"order_id": "A1", "customer_id": "C1", "amount": "20.00"}, id="1")


def talk(name: str, *, asked: bool) -> Trajectory:
    said = [Message("user", "Hello.", turn=0)]
    if asked:
        said.append(Message("agent", CARD, turn=1))
        said.append(Message("user", "Yes, please.", turn=2))
    return Trajectory(name, [*said, replace(CALL, turn=len(said)), Result(len(said), '{"ok": true}')])


def labelled(*, unasked_is_safe: bool) -> Source:
    talks = [talk(f"t{number}", asked=bool(number % 2)) for number in range(20)]
    labels = {
        each.id: [Label(each.id, bool(number % 2) or unasked_is_safe, 3 if number % 2 else 1)]
        for number, each in enumerate(talks)
    }
    return replace(source(), trajectories=talks, labels=labels)


def soft() -> Scripted:
    """A yes is a word here: rules about consent are hard, and have no weight."""
    return Scripted(rules=RULES.replace("{consented: told}", "{said: Yes}"))


def files(shop: Source, asked: Scripted | None = None) -> dict[str, str]:
    return assemble(shop, compile_pack(shop, asked or soft())[0], name="shop")


def test_weights_that_do_not_help_are_not_used() -> None:
    made = files(labelled(unasked_is_safe=False))
    assert "weights.yaml" not in made
    record = read_yaml(made["compiled.yaml"], file="compiled.yaml").data["weights"]
    assert (record["examples"], record["kept_back"]) == (16, 4)
    assert record["not_used"] == "accuracy on the 4 held-back examples does not rise (100.0% to 100.0%)"


def test_a_rule_about_consent_has_no_weight() -> None:
    made = files(labelled(unasked_is_safe=True), Scripted())
    assert "weights.yaml" not in made
    (rule,) = Pack.from_files(made).book.rules
    assert rule.hard


def test_a_rule_that_safe_calls_break_is_disarmed_and_the_reviewer_is_asked() -> None:
    made = files(labelled(unasked_is_safe=True))
    record = read_yaml(made["compiled.yaml"], file="compiled.yaml").data
    (question,) = record["policies"]["confirm-refunds"]["questions"]
    assert question["about"] == "a rule that no longer denies on its own"
    assert "of 8 labelled calls that break it, 8 are labelled safe" in question["text"]
    assert record["weights"]["kept_back_right_without_weights"] == 0.5
    assert record["weights"]["kept_back_right_with_weights"] == 1.0
    (rule,) = Pack.from_files(made).book.disarmed
    learned = read_yaml(made["weights.yaml"], file="weights.yaml").data
    assert rule.weight == learned["weights"]["confirm-refunds"]


def test_without_labels_there_are_no_weights() -> None:
    assert "weights.yaml" not in files(replace(labelled(unasked_is_safe=True), labels=None))


def test_a_label_of_a_conversation_that_is_not_in_the_logs_is_said() -> None:
    shop = replace(labelled(unasked_is_safe=True), labels={"elsewhere": [Label("elsewhere", True)]})
    with pytest.raises(UsageError, match="no conversation `elsewhere`"):
        files(shop)


def test_what_was_signed_lapses_when_the_learned_weight_changes(tmp_path: Path) -> None:
    place(tmp_path, files(labelled(unasked_is_safe=False)))
    bylaw(tmp_path, "review", tmp_path, "--accept", "confirm-refunds", "--accept", "refund-limit", "--by", "Ines")
    assert standings(tmp_path)["confirm-refunds"] == "accepted"
    place(tmp_path, files(labelled(unasked_is_safe=True)))
    assert (standings(tmp_path)["confirm-refunds"], standings(tmp_path)["refund-limit"]) == ("lapsed", "accepted")


def test_learned_weights_stand_on_the_review_page_and_in_the_terminal(tmp_path: Path) -> None:
    made = files(labelled(unasked_is_safe=True))
    place(tmp_path / "shop", made)
    weight = read_yaml(made["weights.yaml"], file="weights.yaml").data["weights"]["confirm-refunds"]
    line = f"weight {weight:.2f}, learned from labelled calls"
    shares = "on the 4 held back, the rules are correct for 100.0% with the weights and 50.0% without"
    shown = bylaw(tmp_path, "review", "shop", "--page", "review.html").stdout
    page = (tmp_path / "review.html").read_text()
    assert shares in page
    assert shares in " ".join(shown.split())
    assert line in page
    assert line in " ".join(bylaw(tmp_path, "review", "shop", "confirm-refunds").stdout.split())
    (tmp_path / "shop" / "weights.yaml").unlink()
    bylaw(tmp_path, "review", "shop", "--page", "review.html")
    page = (tmp_path / "review.html").read_text()
    assert line not in page
    assert shares not in page


def test_the_command_learns_from_labels_and_an_update_learns_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bylaw.llm.source.open_chat", _scripted)
    shop = labelled(unasked_is_safe=False)
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "tools.json").write_text(json.dumps([definition(card) for card in shop.cards.values()]))
    (tmp_path / "logs.jsonl").write_text("".join(f"{json.dumps(chat(each))}\n" for each in shop.trajectories))
    write_labels(tmp_path, shop)
    arguments = ("--document", "policy.md", "--tools", "tools.json", "--logs", "logs.jsonl", "--labels", "labels.jsonl")
    done = bylaw(tmp_path, "compile", *arguments, "--out", "pack")
    assert "weights: not used: accuracy on the 4 held-back examples does not rise" in done.stdout, done.stderr
    write_labels(tmp_path, labelled(unasked_is_safe=True))
    again = bylaw(tmp_path, "compile", "--update", "pack")
    assert "the rules are correct for 100.0% with the weights and 50.0% without" in again.stdout, again.stderr
    assert "confirm-refunds has a new check" in again.stdout


def _scripted(*_: object, **__: object) -> Scripted:
    return soft()


def write_labels(root: Path, shop: Source) -> None:
    assert shop.labels is not None
    lines = [msgspec.json.encode(label) for own in shop.labels.values() for label in own]
    (root / "labels.jsonl").write_bytes(b"\n".join(lines))


def definition(card: Card) -> dict[str, Any]:
    parameters = {"type": "object", "properties": card.parameters, "required": list(card.required)}
    return {"type": "function", "function": {"name": card.name, "description": "", "parameters": parameters}}


def chat(trajectory: Trajectory) -> dict[str, Any]:
    """A conversation as an OpenAI log holds it."""
    said = [event for event in trajectory.events if isinstance(event, Message)]
    function = {"name": CALL.tool, "arguments": json.dumps(CALL.arguments)}
    return {
        "id": trajectory.id,
        "messages": [
            *({"role": "user" if each.by == "user" else "assistant", "content": each.text} for each in said),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "1", "content": '{"ok": true}'},
        ],
    }
