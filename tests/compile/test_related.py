"""What a question about a guard shows beside its policy: others that bear on it."""

from bylaw.compile.bench import Bench
from bylaw.compile.guards import PolicyBrief
from bylaw.compile.related import related
from bylaw.compile.sort import Sorted
from bylaw.compile.span import Draft
from bylaw.compile.things import Things
from bylaw.policy.document import Document
from bylaw.policy.yaml import read_yaml
from tests.compile.shop import CARDS, THINGS

POLICY = """# Shop

## Refunds

A refund is made within 30 days after delivery and up to the price paid.
The limit does not apply to gold customers.
Refunds go to the card that was charged.

## Parcels

Unless it is insured, a parcel is sent once.
"""
DRAFTS = [
    Draft("window", "A refund is made within 30 days.", quotes=("A refund is made within 30 days",)),
    Draft("limit", "A refund is at most the price paid.", quotes=("up to the price paid",)),
    Draft("gold", "The limit does not apply to gold customers.", quotes=("The limit does not apply to gold",)),
    Draft("card", "Refunds go to the card.", quotes=("Refunds go to the card",)),
    Draft("parcel", "A parcel is sent once unless insured.", quotes=("Unless it is insured",)),
]


def kinds(**tools: tuple[str, ...]) -> dict[str, Sorted]:
    bound = {each.id: ("refund",) for each in DRAFTS} | tools
    return {name: Sorted(name, "guard", named) for name, named in bound.items()}


def test_policies_on_one_sentence_and_exceptions_under_one_heading_are_shown_beside_each_other() -> None:
    found = related(DRAFTS, kinds(), Document(POLICY))
    assert {name: [each.id for each in others] for name, others in found.items()} == {
        "window": ["limit", "gold"],
        "limit": ["window", "gold"],
        "gold": ["window", "limit", "card"],
        "card": ["gold"],
    }


def test_a_policy_that_binds_other_tools_bears_on_none() -> None:
    found = related(DRAFTS, kinds(gold=("send",)), Document(POLICY))
    assert [each.id for each in found["window"]] == ["limit"]
    assert "gold" not in found


def test_a_question_shows_what_bears_on_its_policies_and_not_what_it_asks_about_itself() -> None:
    bench = Bench(CARDS, read_things(), {}, "2025-01-15T10:00:00")
    beside = related(DRAFTS, kinds(), Document(POLICY))["limit"]
    brief = PolicyBrief(bench, DRAFTS[1], ("refund",), "none", beside)
    assert brief.text().endswith("""
  Beside it stand, each with a check of its own:
    window: A refund is made within 30 days.
    gold: The limit does not apply to gold customers.""")
    assert brief.text(["limit", "window"]).endswith(
        "of its own:\n    gold: The limit does not apply to gold customers."
    )
    assert "Beside it stand" not in brief.text(["window", "gold"])
    assert brief.digest == PolicyBrief(bench, DRAFTS[1], ("refund",), "none", ()).digest, (
        "the check itself has not changed"
    )


def read_things() -> Things:
    record = read_yaml(THINGS, file="things.yaml").data
    return Things(record["entities"], record["observations"], record["tools"])
