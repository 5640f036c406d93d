"""User facts by `says`: what is denied, conditional, doubted, asked or taken back states nothing."""

import pytest

from bylaw import Pack, Shield

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
    ],
)
def test_it_is_stated(words: tuple[str, ...]) -> None:
    assert is_stated(*words)
