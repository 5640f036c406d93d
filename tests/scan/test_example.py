"""The worked guard of a new pack stands on a sentence that speaks of it, or is switched off."""

from pathlib import Path

from bylaw.policy.document import Document
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


def test_the_worked_guard_binds_the_write_most_surely_preceded_by_its_look_up(tmp_path: Path) -> None:
    made = skeleton(clinic(), Document("Look up the visit first."), name="x")
    assert made.example == "example-drop-visit"
    for path, text in made.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    policy = sound(tmp_path).policies[made.example]
    assert policy.tools == ("drop_visit",)
    assert policy.definition.startswith("(example written by init) Before drop_visit, the visit has been")
    assert policy.unenforced, "it stops no call until somebody takes it up"


def test_the_few_words_of_a_field_stand_beside_it() -> None:
    entities = skeleton(clinic(), Document("Be kind."), name="x").files["entities.yaml"]
    assert "      insurance: string  # seen: delta, none\n" in entities
    assert "      status: string  # seen: confirmed\n" in entities
    assert "      note: string\n" in entities
