"""Who may settle an open consent: live only the user, unless the pack lets a model; audited a model may."""

from pathlib import Path

import pytest

from bylaw.engine.conversation import Conversation, OpenAnswers
from bylaw.engine.predicate_values import Answered
from bylaw.engine.session import Session
from bylaw.pack import Pack, load_pack
from bylaw.rule.act import Act
from bylaw.shield import Shield
from bylaw.trace.event import Call, Message
from tests.consent.test_in_a_rule import ASKED, FILES

UNCLEAR = "Yes, go ahead. I don't want to go ahead if there is no refund."
ORDER = {"order_id": "R-1001"}


def pack_with(folder: Path, agreed: str) -> Pack:
    for name, text in FILES.items():
        (folder / name).write_text(text.replace("{consented: told}", agreed), encoding="utf-8")
    return load_pack(folder)


def says_yes(asked: list[str]) -> OpenAnswers:
    def answer(name: str, _act: Act) -> bool:
        asked.append(name)
        return True

    return lambda _pack, _events: answer


@pytest.mark.parametrize(
    ("agreed", "settles"),
    [
        ("{consented: told}", False),
        ("{consented: told, model: may settle}", True),
        ("{consented: requested}", False),
        ("{consented: card}", False),
    ],
)
def test_live_a_model_settles_consent_only_where_the_pack_lets_it(tmp_path: Path, agreed: str, settles: bool) -> None:
    asked: list[str] = []
    with Shield(pack_with(tmp_path, agreed), answers=says_yes(asked)).session() as session:
        session.agent(ASKED)
        session.user(UNCLEAR)
        decision = session.decide("cancel_order", ORDER)
    assert (decision.allowed, decision.answer) == ((True, "allow") if settles else (False, "ask"))
    assert asked == (["agreed"] if settles else [])


@pytest.mark.parametrize(
    ("agreed", "times"),
    [
        ("{consented: told}", 1),
        ("{consented: told, model: may settle}", 0),
        ("{consented: told, model: never}", 0),
        ("{consented: card}", 0),
    ],
)
def test_a_pack_of_before_is_told_once_what_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, agreed: str, times: int
) -> None:
    pack = pack_with(tmp_path, f"{agreed[:-1]}, description: {tmp_path.name}}}")
    for _ in range(3):
        Shield(pack, answers=says_yes([]))
    Shield(pack)
    told = [each.getMessage() for each in caplog.records if "since 0.2" in each.getMessage()]
    assert len(told) == times
    assert all("write `model: may settle` beside `consented: told`" in each for each in told)


@pytest.mark.parametrize("agreed", ["{consented: told}", "{consented: card}"])
def test_an_answer_from_before_settles_nothing_that_it_could_not_settle_now(tmp_path: Path, agreed: str) -> None:
    live = Conversation(pack_with(tmp_path, agreed), known=[Answered("agreed", 2, True)])
    live.agent(ASKED)
    live.user(UNCLEAR)
    assert [each.rule.name for each in live.call("cancel_order", ORDER).open_rules] == ["ask"]


@pytest.mark.parametrize(("agreed", "settles"), [("{consented: told}", True), ("{consented: card}", False)])
def test_audited_a_model_settles_what_was_told_and_never_a_card(tmp_path: Path, agreed: str, settles: bool) -> None:
    asked: list[str] = []
    pack = pack_with(tmp_path, agreed)
    session = Session(pack, answer=says_yes(asked)(pack, list))
    session.observe_all([Message("agent", ASKED, 1), Message("user", UNCLEAR, 2)])
    judged = session.judge(Call("cancel_order", ORDER, turn=3))
    assert [each.rule.name for each in judged.open_rules] == ([] if settles else ["ask"])
    assert asked == (["agreed"] if settles else [])
