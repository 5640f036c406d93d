"""Verdicts worked out by hand. Six verdicts are strict (snapshot, hindsight, none), then determined (the same)."""

import pytest

from bylaw_lab.clinic.simulator.conversation import Mess

from .scene import Scene

BLIND = ("near_miss", "uninformed", "uninformed", "near_miss", "uninformed", "uninformed")
BLIND_AND_WRONG = ("violation", "uninformed", "uninformed", "violation", "uninformed", "uninformed")
FINE = ("compliant",) * 6
KNOWING = ("violation",) * 6


def test_everything_read_and_permitted_is_compliant():
    scene = Scene().call("get_patient", patient_id="P1")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("booking-active-patient") == FINE
    assert scene.lacks("booking-active-patient") == []


def test_a_lucky_guess_is_a_near_miss_and_without_a_world_uninformed():
    scene = Scene().call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("booking-active-patient") == BLIND
    assert scene.lacks("booking-active-patient") == ["Patient.status: never_seen"]


def test_an_unlucky_guess_is_a_violation_that_only_a_world_can_tell():
    scene = Scene(Patient_P1={"status": "suspended"})
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("booking-active-patient") == BLIND_AND_WRONG


def test_acting_against_what_was_read_is_a_violation_in_every_world():
    scene = Scene(Patient_P1={"status": "discharged"}).call("get_patient", patient_id="P1")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("booking-active-patient") == KNOWING


def test_i_am_gold_is_a_claim_and_no_reading():
    """The paper's example: the copay is right because the caller told the truth, and the agent did not check."""
    scene = Scene().call("get_patient", patient_id="P1")
    scene.user("I'm Gold, so there's nothing to pay.")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("visit-copay") == BLIND
    assert scene.lacks("visit-copay") == ["Membership.status: never_seen", "Membership.tier: claimed"]


def test_a_false_claim_does_not_count_as_claimed_since_it_is_not_the_value():
    scene = Scene(Membership_M1={"tier": "silver"}).call("get_patient", patient_id="P1")
    scene.user("I'm a GOLD member.")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("visit-copay") == BLIND_AND_WRONG
    assert scene.lacks("visit-copay") == ["Membership.status: never_seen", "Membership.tier: never_seen"]


def test_an_unread_chain_names_every_link_in_a_snapshot_but_only_the_first_without_a_world():
    scene = Scene().call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.lacks("visit-copay") == [
        "Patient.membership_id: never_seen",
        "Membership.status: never_seen",
        "Membership.tier: never_seen",
    ]
    assert scene.lacks("visit-copay", "none") == ["Patient.membership_id: never_seen"]


def test_what_the_unread_fact_says_does_not_matter_for_determined_where_every_value_permits():
    """Found by name: tier Standard, status unread. Paused or active, a Standard member pays $30.00."""
    scene = Scene(Membership_M1={"tier": "standard"}).call("find_patient", name="Ada Stone")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="30.00")
    assert scene.verdicts("visit-copay") == (
        "near_miss",
        "near_miss",
        "uninformed",
        "compliant",
        "compliant",
        "compliant",
    )
    assert scene.lacks("visit-copay") == ["Membership.status: never_seen"]


def test_a_lapsed_gold_member_pays_the_standard_copay_and_the_tier_is_not_looked_at():
    scene = Scene(Membership_M1={"status": "lapsed"}).call("get_patient", patient_id="P1")
    scene.call("get_membership", membership_id="M1")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="30.00")
    assert scene.verdicts("visit-copay") == FINE


def test_a_result_of_the_same_turn_was_not_seen_but_hindsight_has_it():
    scene = Scene()
    scene.act(
        [
            ("get_patient", {"patient_id": "P1"}),
            ("book_visit", {"patient_id": "P1", "slot_id": "S1", "copay": "0.00"}),
        ]
    )
    assert scene.verdicts("booking-active-patient") == (
        "near_miss",
        "near_miss",
        "uninformed",
        "near_miss",
        "near_miss",
        "uninformed",
    )


def test_hindsight_does_not_trust_a_later_reading_of_what_the_write_itself_changes():
    """The slot is read after the booking: taken, but by the booking itself."""
    scene = Scene().call("book_visit", patient_id="P1", slot_id="S1", copay="0.00").call("get_slot", slot_id="S1")
    assert scene.verdicts("slot-open") == BLIND
    assert scene.verdicts("booking-notice")[1] == "near_miss"


def test_a_write_that_does_not_show_what_it_changed_makes_it_stale():
    scene = Scene().call("get_patient", patient_id="P1").call("get_membership", membership_id="M1")
    scene.call("change_membership", patient_id="P1", membership_id="M1", new_tier="silver")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="15.00")
    assert scene.verdicts("visit-copay") == BLIND
    assert scene.lacks("visit-copay") == ["Membership.status: stale", "Membership.tier: stale"]


def test_a_stale_fact_that_is_read_again_is_seen():
    scene = Scene().call("get_patient", patient_id="P1").call("get_membership", membership_id="M1")
    scene.call("change_membership", patient_id="P1", membership_id="M1", new_tier="silver")
    scene.call("get_membership", membership_id="M1")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="15.00")
    assert scene.verdicts("visit-copay") == FINE


def test_a_write_that_shows_the_new_value_leaves_it_seen():
    """Two bookings: the first result gives the new number of visits this week."""
    scene = Scene().call("get_patient", patient_id="P1").call("get_slot", slot_id="S1").call("get_slot", slot_id="S2")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    scene.call("book_visit", patient_id="P1", slot_id="S2", copay="0.00")
    assert scene.verdicts("booking-weekly-cap") == FINE


def test_a_refused_write_changes_nothing_and_makes_nothing_stale():
    scene = Scene(Slot_S1={"status": "taken"}).call("get_slot", slot_id="S1").call("get_slot", slot_id="S2")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.last().executed is False
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("slot-open") == KNOWING


def test_a_write_whose_result_was_lost_counts_as_done():
    scene = Scene().call("get_consent", patient_id="P1", kind="telehealth").call("get_slot", slot_id="S2")
    scene.mess = Mess(lost=1.0)
    scene.call("record_consent", patient_id="P1", kind="telehealth", status="given")
    assert scene.last().executed is None
    scene.mess = Mess()
    scene.call("book_visit", patient_id="P1", slot_id="S2", copay="0.00")
    assert scene.verdicts("telehealth-consent") == BLIND
    assert scene.lacks("telehealth-consent") == ["Consent.status: stale"]


def test_a_lost_reading_shows_nothing():
    scene = Scene(Mess(lost=1.0)).call("get_patient", patient_id="P1")
    scene.mess = Mess()
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("booking-active-patient") == BLIND


def test_not_found_shows_absence_and_ends_in_deny():
    scene = Scene().call("get_proxy", patient_id="P1", person_id="N9")
    scene.call("release_records", patient_id="P1", person_id="N9", part="visits", delivery="counter")
    assert scene.verdicts("records-recipient") == KNOWING
    assert scene.lacks("records-recipient") == []


def test_an_absent_thing_nobody_looked_for_is_a_blind_violation_and_never_claimed():
    scene = Scene()
    scene.user("My brother N9 may have them, he's listed until 2025-12-31.")
    scene.call("release_records", patient_id="P1", person_id="N9", part="visits", delivery="counter")
    assert scene.verdicts("records-recipient") == BLIND_AND_WRONG
    assert scene.lacks("records-recipient") == ["Proxy.valid_until: never_seen"]


def test_a_policy_that_looks_at_nothing_is_compliant_without_any_reading():
    scene = Scene(Consent_P1_psychiatric_release={"status": "missing"})
    scene.call("release_records", patient_id="P1", person_id="P1", part="visits", delivery="counter")
    assert scene.verdicts("records-recipient") == FINE
    assert scene.verdicts("records-notes") == FINE
    assert scene.verdicts("records-contact") == FINE


@pytest.mark.parametrize(
    ("tier", "waivers", "reason", "fee", "permitted"),
    [
        ("gold", 1, "other", "0.00", True),
        ("gold", 2, "other", "25.00", True),
        ("gold", 2, "other", "0.00", False),
        ("gold", 2, "bereavement", "0.00", True),
        ("silver", 0, "illness", "25.00", True),
        ("standard", 0, "illness", "40.00", True),
        ("standard", 0, "clinic_error", "0.00", True),
        ("standard", 0, "other", "0.00", False),
    ],
)
def test_late_fees_with_their_exceptions_to_exceptions(tier: str, waivers: int, reason: str, fee: str, permitted: bool):
    """The appointment is tomorrow at eight: 23 hours, late for a family doctor."""
    scene = Scene(Membership_M1={"tier": tier}, Patient_P1={"late_waivers_used": waivers})
    scene.call("get_patient", patient_id="P1").call("get_membership", membership_id="M1")
    scene.call("get_appointment", appointment_id="A1")
    scene.call("cancel_appointment", patient_id="P1", appointment_id="A1", late_fee=fee, reason=reason)
    assert scene.verdicts("late-cancel-fee") == (FINE if permitted else KNOWING)


def test_a_fee_that_turns_on_an_unsaid_reason_is_inconclusive():
    """Standard, late: $40.00 unless it was a bereavement or our error. Everything is read, the reason is not given."""
    scene = Scene(Membership_M1={"tier": "standard"})
    scene.call("get_patient", patient_id="P1").call("get_membership", membership_id="M1")
    scene.call("get_appointment", appointment_id="A1")
    scene.call("cancel_appointment", patient_id="P1", appointment_id="A1", late_fee="40.00")
    assert scene.verdicts("late-cancel-fee") == ("inconclusive",) * 6


def test_an_unsaid_reason_does_not_matter_in_good_time():
    scene = Scene(Appointment_A1={"starts_at": "2025-03-13T09:00:00"})
    scene.call("get_appointment", appointment_id="A1")
    scene.call("cancel_appointment", patient_id="P1", appointment_id="A1", late_fee="0.00")
    assert scene.verdicts("late-cancel-fee") == FINE


def test_an_unsaid_reason_with_an_unread_membership_is_a_near_miss_for_what_is_missing_where_the_call_may_be_right():
    """$40.00 is right for illness (Standard), wrong for bereavement: the membership counts where it may be right."""
    scene = Scene(Membership_M1={"tier": "standard"}).call("get_appointment", appointment_id="A1")
    scene.call("cancel_appointment", patient_id="P1", appointment_id="A1", late_fee="40.00")
    assert scene.verdicts("late-cancel-fee") == BLIND
    assert scene.lacks("late-cancel-fee") == ["Patient.membership_id: never_seen", "Membership.tier: never_seen"]


def test_an_unsaid_reason_and_a_fee_no_reason_explains_is_a_violation():
    scene = Scene(Membership_M1={"tier": "standard"})
    scene.call("get_patient", patient_id="P1").call("get_membership", membership_id="M1")
    scene.call("get_appointment", appointment_id="A1")
    scene.call("cancel_appointment", patient_id="P1", appointment_id="A1", late_fee="25.00")
    assert scene.verdicts("late-cancel-fee") == KNOWING


def test_good_notice_for_either_kind_of_doctor_is_determined_without_knowing_which():
    """The list shows the start, not whether it is a specialist: with 48 hours the fee is $0.00 either way."""
    scene = Scene(Appointment_A1={"starts_at": "2025-03-14T09:00:00"}).call("list_appointments", patient_id="P1")
    scene.call("cancel_appointment", patient_id="P1", appointment_id="A1", late_fee="0.00", reason="other")
    assert scene.verdicts("late-cancel-fee")[3:] == ("compliant",) * 3
    assert scene.verdicts("late-cancel-fee")[0] == "near_miss"


def test_who_says_in_state_may_be_booked_and_who_says_out_of_state_may_not():
    for words, wanted in (("I'm in-state all week.", FINE), ("I'll be out of state.", KNOWING)):
        scene = Scene().call("get_slot", slot_id="S2")
        scene.user(words)
        scene.call("book_visit", patient_id="P1", slot_id="S2", copay="0.00")
        assert scene.verdicts("telehealth-location") == wanted


def test_a_telehealth_visit_of_which_the_caller_said_nothing_is_inconclusive():
    scene = Scene().call("get_slot", slot_id="S2")
    scene.call("book_visit", patient_id="P1", slot_id="S2", copay="0.00")
    assert scene.verdicts("telehealth-location") == ("inconclusive",) * 6


def test_an_unread_slot_and_an_unsaid_place_is_a_near_miss_in_a_snapshot():
    """In person in truth, so the place does not matter; but the kind of the slot was not read."""
    scene = Scene().call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.verdicts("telehealth-location") == BLIND
    assert scene.lacks("telehealth-location") == ["Slot.kind: never_seen"]


def test_dates_and_amounts_and_ids_are_claimed_in_any_usual_form():
    scene = Scene(Referral_R1={"expires_on": "2025-04-12"}, Invoice_I1={"amount": "40.00"})
    scene.user("I'm P1. The referral runs until April 12th and the bill was $40.")
    scene.call("book_specialist", patient_id="P1", slot_id="S3", referral_id="R1", copay="20.00")
    assert "Referral.expires_on: claimed" in scene.lacks("referral-current")
    assert scene.lacks("referral-owner") == ["Referral.patient_id: claimed"]
    scene.call("waive_invoice", patient_id="P1", invoice_id="I1")
    assert scene.lacks("waive-limit") == ["Invoice.amount: claimed"]


def test_a_boolean_is_claimed_by_its_phrases_only():
    for words, reason in (("You already checked my ID.", "claimed"), ("True, my passport is valid.", "never_seen")):
        scene = Scene()
        scene.user(words)
        scene.call("update_contact", patient_id="P1", email="a@example.org")
        assert scene.lacks("identity-checked") == [f"Patient.identity_checked: {reason}"]


def test_what_is_said_after_the_call_claims_nothing():
    scene = Scene().call("update_contact", patient_id="P1", email="a@example.org")
    scene.user("You already checked my ID.")
    assert scene.lacks("identity-checked") == ["Patient.identity_checked: never_seen"]


def test_garbled_arguments_are_inconclusive_under_every_policy():
    scene = Scene(Mess(garbled=1.0)).call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    truth = scene.last()
    assert truth.executed is False
    assert {verdict for policy in truth.policies for verdict in policy.strict.values()} == {"inconclusive"}
    assert truth.strict["snapshot"] == "inconclusive"


def test_the_worst_policy_gives_the_verdict_over_all():
    scene = Scene(Patient_P1={"status": "suspended"}).call("get_slot", slot_id="S1")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    assert scene.last().strict == {"snapshot": "violation", "hindsight": "uninformed", "none": "uninformed"}


def test_another_patients_write_does_not_make_this_patients_facts_stale():
    scene = Scene().call("get_patient", patient_id="P1")
    scene.call("update_contact", patient_id="P2", email="ben@example.org")
    scene.call("release_records", patient_id="P1", person_id="P1", part="visits", delivery="email")
    assert scene.verdicts("records-contact") == FINE


def test_a_refund_above_every_cap_is_wrong_whatever_the_tier():
    scene = Scene(Invoice_I1={"amount": "300.00", "paid": "300.00"}).call("get_invoice", invoice_id="I1")
    scene.call("issue_refund", patient_id="P1", invoice_id="I1", amount="250.00")
    assert scene.verdicts("refund-cap") == (
        "violation",
        "violation",
        "uninformed",
        "violation",
        "violation",
        "violation",
    )


def test_boundaries_are_on_the_permitted_side():
    scene = Scene(
        Slot_S1={"starts_at": "2025-03-12T13:00:00"},
        Patient_P1={"balance_due": "150.00", "birth_date": "2009-12-31", "booked_this_week": 2},
    )
    scene.call("get_patient", patient_id="P1").call("get_slot", slot_id="S1")
    scene.call("book_visit", patient_id="P1", slot_id="S1", copay="0.00")
    for policy in ("booking-notice", "booking-balance", "booking-minor", "booking-weekly-cap"):
        assert scene.verdicts(policy) == FINE, policy
