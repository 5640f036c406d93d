"""The worked guard of a new pack stands on a sentence that speaks of it, or is switched off."""

from pathlib import Path

import pytest

from bylaw.pack import load_pack
from bylaw.policy.document import Document
from bylaw.policy.statement import Policy
from bylaw.scan.skeleton import skeleton
from bylaw.trace import Trajectory

from .library import Talk
from .test_init import sound


def clinic(count: int = 6) -> list[Trajectory]:
    """A dental desk: visits are scheduled, moved and dropped, under names that its policy does not use."""
    talks: list[Trajectory] = []
    for number in range(count):
        patient, visit = f"PT-{number}", f"V20{number}"
        talk = Talk(f"t{number}").user(f"{patient}, {visit}")
        talk.call(
            "lookup_patient", {"patient_id": patient, "insurance": ("delta", "none")[number % 2]}, patient_id=patient
        )
        talk.call("schedule_visit", {"ok": True}, patient_id=patient, procedure="cleaning")
        talk.call("fetch_visit", {"visit_id": visit, "status": "confirmed", "note": f"n{number}"}, visit_id=visit)
        talk.call("move_visit", {"ok": True}, visit_id=visit, day="mon")
        talks.append(talk.call("drop_visit", {"ok": True}, visit_id=visit).done())
    return talks


DENTAL = """# Front desk

Look up the patient's record before you book a visit for them.
Patients who owe more than $100 may book only a checkup until they have paid.
Only a confirmed visit can be moved or cancelled.
Cancelling less than 24 hours before the start costs $35, unless the patient is insured with Delta.
A patient may move a visit at most twice.
Be kind, and keep it short.
"""


def listed(files: dict[str, str], root: Path) -> dict[str, Policy]:
    """The policies that init wrote, by the sentence each quotes."""
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    policies = load_pack(root).policies.values()
    return {str(cited.text): policy for policy in policies for cited in policy.citations}


def test_the_worked_guard_stands_on_the_sentence_that_asks_for_its_look_up(tmp_path: Path) -> None:
    made = skeleton(clinic(), Document(DENTAL), name="x")
    assert made.example == "example-schedule-visit"
    policy = listed(made.files, tmp_path)["Look up the patient's record before you book a visit for them."]
    assert (policy.id, policy.tools) == ("example-schedule-visit", ("schedule_visit",))
    assert policy.definition.startswith("(example written by init) Before schedule_visit, the patient has been")


@pytest.mark.parametrize(
    ("document", "example", "on"),
    [
        ("A patient may be booked only once. Verify the visit before you cancel it.", "drop-visit", "Verify"),
        ("Be brief. Patients with a debt may not reserve a visit.", "schedule-visit", "Patients"),
        ("Check the visit's status first when rescheduling. Patients book freely.", "move-visit", "Check"),
        ("Read the record before booking.", "schedule-visit", "Read"),
    ],
)
def test_the_sentence_is_chosen_by_deed_thing_and_look_up(document: str, example: str, on: str, tmp_path: Path) -> None:
    made = skeleton(clinic(), Document(document), name="x")
    assert made.example == f"example-{example}"
    (sentence,) = (quote for quote, policy in listed(made.files, tmp_path).items() if policy.id == made.example)
    assert sentence.startswith(on)


@pytest.mark.parametrize("document", ["Be kind.", "A checkup is free.", "Never share another patient's details."])
def test_where_no_sentence_speaks_of_it_the_worked_guard_is_switched_off(document: str, tmp_path: Path) -> None:
    made = skeleton(clinic(), Document(document), name="x")
    assert made.example == ""
    (tool,) = (
        name
        for name in ("schedule_visit", "move_visit", "drop_visit")
        if made.files.keys() & {f"guards/example_{name}.py"}
    )
    assert made.switched_off == f"example-{tool.replace('_', '-')}"
    for path, text in made.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert sound(tmp_path).guards == {}
    # Switched on as its own first lines say.
    for path in (f"guards/example_{tool}.py", f"cases/{made.switched_off}.yaml"):
        body = (tmp_path / path).read_text().partition("\n\n")[2]
        text = "".join(line[2:] for line in body.splitlines(keepends=True))
        (tmp_path / path).write_text(text.replace("the sentence", document))
    assert list(sound(tmp_path).guards) == [made.switched_off]


def test_behind_a_sentence_stands_every_tool_it_speaks_of_in_whatever_words() -> None:
    policies = skeleton(clinic(), Document(DENTAL), name="x").files["policies.yaml"]
    lines = policies.partition("    spans:\n")[2].splitlines()
    spoken_of = [set(line.partition("   # ")[2].split(", ")) - {""} for line in lines if line.startswith("      - ")]
    assert spoken_of == [
        {"schedule_visit"},
        {"move_visit", "drop_visit"},
        {"drop_visit"},
        {"move_visit"},
        set(),
    ]


def test_the_few_words_of_a_field_stand_beside_it() -> None:
    entities = skeleton(clinic(), Document("Be kind."), name="x").files["entities.yaml"]
    assert "      insurance: string  # seen: delta, none\n" in entities
    assert "      status: string  # seen: confirmed\n" in entities
    assert "      note: string\n" in entities
