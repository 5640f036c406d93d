"""A refusal says one thing to do next: no advice that another line of it makes pointless."""

from hypothesis import given
from hypothesis import strategies as st

from bylaw.shield.decision import Answer, Ground, LookUp, Question, gravest
from bylaw.shield.feedback import SHOW, feedback
from tests.shield.scenes import shop

REFUSING: tuple[Answer, ...] = ("deny", "look_up", "ask")
CARD = "Please confirm: refund\nShall I do this? Please answer yes or no."
PACK = shop()
LOOK = (LookUp("get_order", {"order_id": "7"}, ("Order[7].returned",)),)


@st.composite
def grounds(draw: st.DrawFn) -> Ground:
    answer = draw(st.sampled_from(REFUSING))
    whom = draw(st.sampled_from(("user", "person", None)))
    questions = (Question("fact", f"Is it so, {whom}?", whom),) if whom and answer != "look_up" else ()
    return Ground(
        "",
        draw(st.sampled_from(("guard", "rule"))),
        answer,
        "enforce",
        "because",
        look_ups=LOOK if answer == "look_up" else (),
        questions=questions,
        retries=LOOK if answer == "ask" and whom == "person" and draw(st.booleans()) else (),
        is_unheard=answer == "ask" and whom == "user" and draw(st.booleans()),
        puts_card=(answer == "deny" or (answer == "ask" and whom == "user")) and draw(st.booleans()),
    )


@given(st.lists(grounds(), min_size=1, max_size=4), st.sampled_from(("", "c/1")), st.sampled_from(("", CARD)))
def test_no_line_of_a_refusal_makes_another_pointless(found: list[Ground], approval: str, card: str) -> None:
    answer = gravest([each.answer for each in found])
    text = feedback(PACK, "refund", answer, found, runs=False, approval=approval if answer == "ask" else "", card=card)
    again = "make the call again" in text.lower() or SHOW in text
    asks = "Ask the user:" in text
    if "do not try again:" in text or text.endswith("do not try again."):
        assert not again, text
        assert not asks, text
        assert "Look up" not in text, text
    if "do not try again until somebody has" in text:
        assert not again, text
    if answer == "deny" and SHOW in text:
        assert all(each.puts_card for each in found if each.answer == "deny"), text
        assert not text.startswith("Not allowed"), "a card would be for nothing"
    elif answer == "deny":
        assert not again, text
        of_denials = {q.text for each in found if each.answer == "deny" for q in each.questions if q.whom == "user"}
        assert asks <= bool(of_denials), text
    if answer == "look_up":
        assert SHOW not in text, text
    if SHOW in text:
        assert text.endswith(CARD), "nothing stands after the card"
