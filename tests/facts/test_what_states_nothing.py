"""User facts by `says`: what is denied, conditional, doubted, asked or taken back states nothing."""

from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.facts.entity import UNSEEN, Field, Saying
from tests.facts.test_testimony import read

PACK = Pack.from_files(
    {
        "pack.yaml": "{format: 1, name: x, document: policy.md}",
        "policy.md": "Money back only for faulty goods.\n",
        "tools.yaml": "tools: {refund: {effect: write, parameters: {order_id: string}, changes: []}}",
        "entities.yaml": """
entities:
  Request:
    key: []
    fields:
      reason:
        type: enum
        values: [faulty, changed_mind]
        origin: user
        from: [{says: "broken|faulty|does not work", value: faulty}, {says: changed my mind, value: changed_mind}]
""",
        "guards/g.py": (
            "def why(call: refund, facts):\n"
            '    """Money back only for faulty goods."""\n'
            '    return permit() if facts.Request.reason == "faulty" else deny("no")\n'
        ),
    }
)


def is_stated(*words: str) -> bool:
    with Shield(PACK).session() as session:
        for each in words:
            session.user(each)
        return session.decide("refund", {"order_id": "7"}).allowed


@pytest.mark.parametrize(
    "words",
    [
        ("Nothing is broken.",),
        ("None of it is faulty.",),
        ("Nobody said it is faulty.",),
        ("It isn\u2019t faulty.",),
        ("In case it is faulty, can I send it back?",),
        ("In the event that it is broken I want my money.",),
        ("Is it faulty?",),
        ("Could it be broken?",),
        ("I doubt it is faulty.",),
        ("I wonder whether it is faulty.",),
        ("Suppose it is broken.",),
        ("It is faulty.", "No, it is not."),
        ("It is faulty.", "Sorry, that isn\u2019t true."),
        ("It is broken.", "No, it isn't."),
        ("It is broken.", "Sorry, I was wrong."),
        ("It is broken. No, it is not.",),
        ("It is broken.\nNo.",),
        ("Broken? No.",),
        ("Faulty?? Hardly.",),
        ("It is broken, isn't it?",),
        ("It is faulty, right?",),
        ("broken: no",),
        ("Broken: nein",),
        ("Item is faulty : false",),
        ("faulty = 0",),
        ("| faulty | no |",),
        ("broken\tno",),
        ("broken - no",),
        ("broken (no)",),
        ("broken, it is not",),
        ("faulty it is not",),
        ("[ ] broken\n[x] changed my mind",),
        ("\u2610 broken\n\u2611 changed my mind",),
        ("( ) broken (x) changed my mind",),
        ("(a) broken (b) changed my mind",),
        ("- broken\n- changed my mind",),
        ("It is broken, and I changed my mind.",),
        ("faulty \u274c",),
        ("aint broken",),
        ("It shant be called faulty.",),
        ("I am not sure it is broken.",),
        ("I thought it was broken, I was wrong",),
        ("I thought the lamp was broken.",),
        ("He says it is faulty.",),
        ('They wrote "it is broken" in the mail.',),
        ("> it is broken",),
    ],
)
def test_it_is_not_stated(words: tuple[str, ...]) -> None:
    assert not is_stated(*words)


@pytest.mark.parametrize(
    "words",
    [
        ("It is faulty.",),
        ("It does not work.",),
        ("It is broken, could you refund it?",),
        ("I can't use it because it is faulty.",),
        ("It is faulty.", "No, thanks, that's all."),
        ("broken",),
        ("Reason: broken",),
        ("Yes, it's faulty \u2013 the blue one.",),
        ("The order (A1, the blue one) came broken.",),
        ("The \u20ac20 lamp is broken. I do not have the receipt.",),
        ("I want to send it back as it is faulty.",),
        ("It is broken, it is faulty, it does not work!",),
    ],
)
def test_it_is_stated(words: tuple[str, ...]) -> None:
    assert is_stated(*words)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Hello.", False),
        ("With a battery.", True),
        ("Battery: yes", UNSEEN),
        ("[x] battery", UNSEEN),
        ("A battery?", UNSEEN),
    ],
)
def test_what_is_said_without_being_clear_is_not_what_nobody_said(said: str, value: Any) -> None:
    field = Field("battery", "boolean", origin="user", sayings=(Saying(says="battery", value=True),), default=False)
    assert read(field, said) == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Cancel everything.", "all"),
        ("Cancel one.", "one"),
        ("Cancel everything. Well, cancel one.", UNSEEN),
    ],
)
def test_what_one_pattern_has_read_is_not_read_as_another_value(said: str, value: Any) -> None:
    sayings = (Saying(says="cancel everything", value="all"), Saying(says="cancel", value="one"))
    assert read(Field("much", "enum", ("all", "one"), "user", sayings=sayings), said) == value


@pytest.mark.parametrize(
    "words",
    [
        "Maybe it is broken.",
        "It might be broken.",
        "It is unbroken.",
        "The lamp is far from broken.",
        "The lamp is anything but broken.",
        "It was almost broken.",
        "It is broken, just kidding.",
        "It is broken - false.",
        "Say it is broken.",
        "It was broken. I fixed it.",
        "The lamp was broken and has been repaired.",
    ],
)
def test_what_is_unsure_in_jest_or_over_is_not_stated(words: str) -> None:
    assert not is_stated(words)
    assert is_stated("It is broken.")
