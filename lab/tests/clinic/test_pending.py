"""Facts that a call may rely on while earlier writes of its turn have no result yet: verdicts worked out by hand."""

from typing import Any

from .scene import Scene
from .test_truth import BLIND, BLIND_AND_WRONG, FINE

DECIDED = ("near_miss", "near_miss", "uninformed", "compliant", "compliant", "compliant")
"""One of several values, all of which permit the call: strict requires the true one, determined does not."""
DECIDED_AGAINST = ("violation", "violation", "uninformed", "violation", "violation", "violation")
SETTLED_LATER = ("near_miss", "near_miss", "uninformed") * 2
"""The values lead to different answers, and a later result shows which one was right."""
CHANGE = ("change_membership", {"patient_id": "P1", "membership_id": "M1", "new_tier": "silver"})
MOVE = ("reschedule_appointment", {"patient_id": "P1", "appointment_id": "A1", "slot_id": "S1"})


def book(slot: str = "S1", copay: str = "0.00") -> tuple[str, dict[str, Any]]:
    return "book_visit", {"patient_id": "P1", "slot_id": slot, "copay": copay}


def refund(amount: str) -> tuple[str, dict[str, Any]]:
    return "issue_refund", {"patient_id": "P1", "invoice_id": "I1", "amount": amount}


def member(**changes: dict[str, Any]) -> Scene:
    """The patient and the membership are read."""
    return Scene(None, **changes).call("get_patient", patient_id="P1").call("get_membership", membership_id="M1")


def test_a_field_has_its_old_value_or_the_new_one_and_is_known_where_they_are_the_same():
    """Gold becomes silver, active stays active: $0.00 or $15.00."""
    scene = member()
    scene.act([CHANGE, book(copay="15.00")])
    assert scene.lacks("visit-copay") == ["Membership.tier: pending"]
    assert scene.verdicts("visit-copay") == BLIND


def test_a_write_that_changes_nothing_leaves_everything_known():
    scene = member(Membership_M1={"tier": "silver"})
    scene.act([CHANGE, book(copay="15.00")])
    assert scene.lacks("visit-copay") == []
    assert scene.verdicts("visit-copay") == FINE


def test_a_third_value_is_not_possible():
    """Gold or silver, never standard: $30.00 is wrong either way."""
    scene = member()
    scene.act([CHANGE, book(copay="30.00")])
    assert scene.verdicts("visit-copay") == DECIDED_AGAINST


def test_two_fields_of_one_write_are_each_old_or_new():
    """Paused and gold, or active and silver, but also active and gold: $30.00, $15.00 or $0.00."""
    scene = member(Membership_M1={"status": "paused"})
    scene.act([CHANGE, book(copay="15.00")])
    assert scene.lacks("visit-copay") == ["Membership.status: pending", "Membership.tier: pending"]
    assert scene.verdicts("visit-copay") == BLIND


def test_both_values_may_permit():
    """Booked once or not at all this week: fewer than three."""
    scene = member()
    scene.act([book("S1"), book("S2")])
    assert scene.lacks("booking-weekly-cap") == ["Patient.booked_this_week: pending"]
    assert scene.verdicts("booking-weekly-cap") == DECIDED


def test_both_values_may_deny():
    """Unpaid or waived: not paid."""
    scene = Scene(Invoice_I1={"status": "unpaid"}).call("get_invoice", invoice_id="I1")
    scene.act([("waive_invoice", {"patient_id": "P1", "invoice_id": "I1"}), refund("20.00")])
    assert scene.lacks("refund-paid") == ["Invoice.status: pending"]
    assert scene.verdicts("refund-paid") == DECIDED_AGAINST


def test_each_of_several_writes_may_have_taken_effect():
    """Silver, two bookings pending: 0, 1 or 2 before this one is in order, 3 is not."""
    for booked, wanted in ((0, DECIDED), (1, BLIND_AND_WRONG)):
        scene = member(Membership_M1={"tier": "silver"}, Patient_P1={"booked_this_week": booked})
        scene.act([book("S1"), book("S2"), book("S3")])
        assert scene.verdicts("booking-weekly-cap") == wanted, booked


def test_a_later_write_may_bring_the_old_value_back():
    """Given, withdrawn, given: given or withdrawn, and not known. Given twice: known."""
    for first, wanted in (("withdrawn", BLIND), ("given", FINE)):
        scene = Scene().call("get_consent", patient_id="P1", kind="telehealth").call("get_slot", slot_id="S2")
        consent = {"patient_id": "P1", "kind": "telehealth"}
        scene.act(
            [
                ("record_consent", {**consent, "status": first}),
                ("record_consent", {**consent, "status": "given"}),
                book("S2"),
            ]
        )
        assert scene.verdicts("telehealth-consent") == wanted, first


def test_an_amount_grows_by_the_argument():
    """Of $120.00 either nothing or $60.00 was paid back: $60.00 is left in any case, $70.00 may be too much."""
    for amount, wanted in (("60.00", DECIDED), ("70.00", BLIND_AND_WRONG)):
        scene = Scene().call("get_invoice", invoice_id="I1")
        scene.act([refund("60.00"), refund(amount)])
        assert scene.verdicts("refund-remaining") == wanted, amount


def test_a_new_value_that_the_arguments_do_not_tell_may_be_anything():
    """Moved to a slot nobody read: the start may be late, and a standard member then pays $40.00."""
    scene = member(Membership_M1={"tier": "standard"}, Appointment_A1={"starts_at": "2025-03-21T09:00:00"}).call(
        "get_appointment", appointment_id="A1"
    )
    cancel = {"patient_id": "P1", "appointment_id": "A1", "late_fee": "0.00", "reason": "other"}
    scene.act([MOVE, ("cancel_appointment", cancel)])
    assert scene.lacks("late-cancel-fee") == ["Appointment.starts_at: pending"]
    assert scene.verdicts("late-cancel-fee") == BLIND


def test_the_count_of_moves_is_told_by_the_write():
    """Moved never or once: fewer than twice."""
    scene = Scene().call("get_appointment", appointment_id="A1")
    scene.act([MOVE, ("reschedule_appointment", {**MOVE[1], "slot_id": "S2"})])
    assert scene.verdicts("reschedule-limit") == DECIDED


def test_what_was_not_known_before_is_not_known_now():
    scene = Scene().call("get_patient", patient_id="P1")
    scene.act([CHANGE, book(copay="15.00")])
    assert scene.lacks("visit-copay") == ["Membership.status: never_seen", "Membership.tier: never_seen"]


def test_what_was_stale_before_the_turn_may_be_anything_and_the_last_write_gives_the_reason():
    """Silver by both writes, but the first one's effect was not shown."""
    scene = member()
    scene.act([CHANGE])
    scene.act([CHANGE, book(copay="15.00")])
    assert scene.lacks("visit-copay") == ["Membership.status: pending", "Membership.tier: pending"]
    assert scene.verdicts("visit-copay") == BLIND


def test_a_write_is_pending_in_its_own_turn_only():
    scene = member()
    scene.act([CHANGE])
    scene.act([book(copay="15.00")])
    assert scene.lacks("visit-copay") == ["Membership.status: stale", "Membership.tier: stale"]


def test_a_write_that_is_refused_in_the_end_was_pending_all_the_same():
    """A paid invoice cannot be waived, but when the refund is asked for only hindsight knows that."""
    scene = Scene().call("get_invoice", invoice_id="I1")
    scene.act([("waive_invoice", {"patient_id": "P1", "invoice_id": "I1"}), refund("20.00")])
    assert scene.lacks("refund-paid") == ["Invoice.status: pending"]
    assert scene.verdicts("refund-paid") == SETTLED_LATER


def test_a_later_write_of_the_turn_is_not_pending_yet():
    scene = member()
    scene.act([book(), CHANGE])
    first = next(policy for policy in scene.truth()[0].policies if policy.id == "visit-copay")
    assert (*first.strict.values(), *first.determined.values()) == FINE


def test_a_later_reading_tells_hindsight_which_of_the_two_it_was():
    scene = Scene(Consent_P1_telehealth={"status": "missing"})
    scene.call("get_consent", patient_id="P1", kind="telehealth").call("get_slot", slot_id="S2")
    scene.act([("record_consent", {"patient_id": "P1", "kind": "telehealth", "status": "given"}), book("S2")])
    assert scene.verdicts("telehealth-consent") == BLIND
    scene.call("get_consent", patient_id="P1", kind="telehealth")
    assert scene.verdicts("telehealth-consent") == SETTLED_LATER


def test_a_reading_beside_a_write_shows_the_old_value_or_the_new_one():
    """The contact is changed and read again in one turn: unconfirmed before and after. So for the tier."""
    scene = Scene(Patient_P1={"contact_confirmed": False})
    change = ("update_contact", {"patient_id": "P1", "email": "new@example.org"})
    scene.act([change, ("get_patient", {"patient_id": "P1"})])
    release = {"patient_id": "P1", "person_id": "P1", "part": "visits", "delivery": "email"}
    scene.act([("release_records", release)])
    assert scene.lacks("records-contact") == []
    assert scene.verdicts("records-contact") == ("violation",) * 6
    scene = member()
    scene.act([CHANGE, ("get_membership", {"membership_id": "M1"})])
    scene.act([book(copay="15.00")])
    assert scene.lacks("visit-copay") == []
    assert scene.verdicts("visit-copay") == FINE


def test_a_pending_write_to_another_thing_leaves_this_one_known():
    scene = member()
    scene.act([("change_membership", {**CHANGE[1], "patient_id": "P2", "membership_id": "M2"}), book()])
    assert scene.verdicts("visit-copay") == FINE


def test_a_list_is_the_old_one_or_the_new_one():
    """Visits, or visits and billing: visits are in both, billing may not be, medication is in neither."""
    for part, wanted in (("visits", DECIDED), ("billing", BLIND), ("medication", DECIDED_AGAINST)):
        scene = Scene().call("get_proxy", patient_id="P1", person_id="N1")
        listing = {"patient_id": "P1", "person_id": "N1"}
        scene.act(
            [
                ("update_proxy", {**listing, "scopes": ["visits", "billing"], "valid_until": "2025-12-31"}),
                ("release_records", {**listing, "part": part, "delivery": "counter"}),
            ]
        )
        assert scene.lacks("records-recipient") == ["Proxy.scopes: pending"]
        assert scene.verdicts("records-recipient") == wanted, part
