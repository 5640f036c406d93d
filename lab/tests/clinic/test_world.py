"""The clinic's database and the effects of its tools."""

from collections.abc import Iterator

import pytest

from bylaw_lab.clinic.simulator.desk import Desk
from bylaw_lab.clinic.simulator.generate import clinic as the_clinic
from bylaw_lab.clinic.simulator.needs import ALTERS, alters, changes, refused, shows
from bylaw_lab.clinic.simulator.tables import tables
from bylaw_lab.clinic.simulator.wants import Clinic
from bylaw_lab.clinic.simulator.world import PATIENTS, build

from .scene import Scene


@pytest.fixture
def clinic() -> Iterator[Clinic]:
    """The simulator's database, which takes seconds to build and is never changed."""
    yield the_clinic()
    the_clinic().desk.reset()


def test_the_same_seed_fills_the_same_rows():
    once, again, other = (list(build(seed=seed).iterdump()) for seed in (3, 3, 4))
    assert once == again
    assert once != other


def test_the_schema_gives_every_column_a_type_and_every_table_a_key():
    assert len(tables()) == 10
    world = build()
    for name, table in tables().items():
        assert table.key, name
        columns = world.execute(f"SELECT * FROM {name} LIMIT 1").description
        assert [column[0] for column in columns] == list(table.columns)


def test_there_are_patients_enough(clinic: Clinic):
    assert len(clinic.patients) == PATIENTS > 200


def test_every_word_in_the_database_is_one_the_schema_lists(clinic: Clinic):
    for name, table in tables().items():
        for column, (kind, words) in table.columns.items():
            found = {row[0] for row in clinic.connection.execute(f"SELECT DISTINCT {column} FROM {name}")}
            assert None not in found
            if kind == "enum":
                assert found <= set(words), (name, column)


def test_reset_undoes_everything():
    scene = Scene()
    before = list(scene.clinic.connection.iterdump())
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    scene.call("release_records", patient_id="P1", person_id="P1", part="visits", delivery="counter")
    scene.clinic.desk.reset()
    assert list(scene.clinic.connection.iterdump()) == before
    assert scene.clinic.desk.released == []


def test_writes_alter_just_what_the_table_says(clinic: Clinic):
    """Compare every accepted write, row by row: only the fields in `needs` differ, or there is a new appointment."""
    for tool in ALTERS:
        done = 0
        for want in clinic.store.clean[tool][:40]:
            desk = clinic.desk
            done += not refused(desk.call(tool, want.arguments))
            for place, row in desk.changed.items():
                before = desk.base.get(place)
                if before is None:
                    assert place[0] == "Appointment"
                    continue
                changed = {(*place, name) for name in row if row[name] != before[name]}
                assert changed <= alters(tool, want.arguments), want
            desk.reset()
        assert done > 20, tool


def test_writes_set_just_what_the_table_says(clinic: Clinic):
    """Check that every new value that `needs` finds in the arguments is in the database afterwards."""
    desk = clinic.desk
    untold: set[tuple[str, str]] = set()
    for tool in ALTERS:
        for want in clinic.store.clean[tool][:40]:
            told = {fact: change for fact, change in changes(tool, want.arguments).items() if change is not None}
            untold |= {(tool, fact[2]) for fact in changes(tool, want.arguments).keys() - told.keys()}
            wanted = {fact: change(want.arguments, desk.fact(fact)) for fact, change in told.items()}
            if not refused(desk.call(tool, want.arguments)):
                assert {fact: desk.fact(fact) for fact in told} == wanted, want
            desk.reset()
    assert untold == {("reschedule_appointment", "clinician_id"), ("reschedule_appointment", "starts_at")}


def test_what_a_result_shows_is_what_the_database_holds(clinic: Clinic):
    desk = clinic.desk
    patient = clinic.patients[4]
    row = desk.need("Patient", patient)
    appointment = clinic.own["Appointment", patient][0]
    slot = desk.need("Appointment", appointment)["slot_id"]
    for tool, arguments in (
        ("get_patient", {"patient_id": patient}),
        ("find_patient", {"name": row["name"]}),
        ("get_membership", {"membership_id": row["membership_id"]}),
        ("get_clinician", {"clinician_id": "C01"}),
        ("search_slots", {"specialty": "psychiatry"}),
        ("get_slot", {"slot_id": slot}),
        ("get_appointment", {"appointment_id": appointment}),
        ("list_appointments", {"patient_id": patient}),
        ("get_referral", {"referral_id": clinic.own["Referral", patient][0]}),
        ("list_referrals", {"patient_id": patient}),
        ("list_consents", {"patient_id": patient}),
        ("get_consent", {"patient_id": patient, "kind": "telehealth"}),
        ("get_invoice", {"invoice_id": clinic.own["Invoice", patient][0]}),
        ("list_invoices", {"patient_id": patient}),
        ("get_prescription", {"prescription_id": clinic.own["Prescription", patient][0]}),
        ("list_prescriptions", {"patient_id": patient}),
        ("get_proxy", {"patient_id": patient, "person_id": clinic.own["Proxy", patient][0]}),
    ):
        seen = shows(tool, arguments, desk.call(tool, arguments))
        assert seen, tool
        for fact, value in seen:
            assert desk.fact(fact) == value, (tool, fact)


def test_a_missing_record_is_said_to_be_missing(clinic: Clinic):
    for tool, arguments in (
        ("get_patient", {"patient_id": "P999"}),
        ("get_proxy", {"patient_id": "P001", "person_id": "N999"}),
    ):
        answer = clinic.desk.call(tool, arguments)
        assert answer["error"].endswith("not found")
        (((_, key, field), value),) = shows(tool, arguments, answer)
        assert (key, field, value) == (tuple(arguments.values()), "exists", False)


def test_a_desk_knows_no_policy():
    scene = Scene(Patient_P1={"status": "discharged"})
    desk: Desk = scene.clinic.desk
    assert "appointment" in desk.call("book_visit", {"patient_id": "P1", "slot_id": "S1", "copay": "999.00"})
