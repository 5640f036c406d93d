"""Sentences for users and agents, in many wordings."""

import random
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from bylaw_lab.clinic.simulator.claims import MONTHS
from bylaw_lab.clinic.simulator.tables import TODAY, Fact
from bylaw_lab.clinic.simulator.wants import Want

GREETINGS = ("Hi,", "Hello,", "Good morning,", "Hey there,", "Morning!", "Hi there.", "Hello, quick one:", "")
WHO_NUMBER = (
    "my patient number is {id}.",
    "this is {name}, patient {id}.",
    "I'm {name} ({id}).",
    "patient {id} here.",
    "I'm calling about {id}, that's me, {name}.",
)
WHO_NAME = ("my name is {name}.", "{name} speaking.", "this is {name}.", "I'm {name}.")
NEXT = (
    "One more thing.",
    "And while I have you:",
    "Also:",
    "Then there's this.",
    "Oh, and another matter.",
    "Next one.",
)

REQUESTS: dict[str, tuple[str, ...]] = {
    "book_visit": (
        "I'd like to see a family doctor, could I have slot {slot_id}?",
        "Please book me into {slot_id} for a regular visit.",
        "Can you put me down for slot {slot_id}? The portal offered it.",
        "I need a check-up. {slot_id} would suit me.",
    ),
    "book_specialist": (
        "I have referral {referral_id} and would like slot {slot_id} with the specialist.",
        "Could you book the specialist for me? Slot {slot_id}, referral {referral_id}.",
        "My GP wrote referral {referral_id}; please use it for {slot_id}.",
        "I want the specialist visit in slot {slot_id}. The referral number is {referral_id}.",
    ),
    "reschedule_appointment": (
        "I can't make appointment {appointment_id}, please move it to slot {slot_id}.",
        "Could {appointment_id} be moved to {slot_id}?",
        "Something came up. Can you shift {appointment_id} into slot {slot_id}?",
        "Please swap my appointment {appointment_id} over to {slot_id}.",
    ),
    "cancel_appointment": (
        "I need to cancel {appointment_id}. {why}",
        "Please cancel my appointment {appointment_id}. {why}",
        "{why} So appointment {appointment_id} has to go, sorry.",
        "Can you take {appointment_id} off the calendar? {why}",
    ),
    "record_consent": (
        "Please note that my {kind} consent is now {status}.",
        "I want my {kind} consent recorded as {status}.",
        "About the {kind} form: put it down as {status}, please.",
        "Could you update my {kind} consent? It should say {status}.",
    ),
    "issue_refund": (
        "I'd like {amount} back on invoice {invoice_id}.",
        "Please refund {amount} of {invoice_id}.",
        "I was overcharged on {invoice_id}, I want {amount} returned.",
        "Can I get a refund of {amount} for invoice {invoice_id}?",
    ),
    "waive_invoice": (
        "Could you waive invoice {invoice_id}?",
        "I can't pay {invoice_id}. Can it be written off?",
        "Please drop the bill {invoice_id}.",
        "Is there any way to let me off invoice {invoice_id}?",
    ),
    "refill_prescription": (
        "I need a refill of {prescription_id}.",
        "Please send {prescription_id} to the pharmacy again.",
        "I'm nearly out of pills, can you refill {prescription_id}?",
        "Could you renew the supply for prescription {prescription_id}?",
    ),
    "release_records": (
        "Please release the {part} part of the record to {person_id}, by {delivery}.",
        "I'd like {person_id} to get my {part} file, {delivery} is fine.",
        "Could you give {person_id} the {part} part of my record? By {delivery}, please.",
        "Send out the {part} section for {person_id}. Use {delivery}.",
    ),
    "update_contact": (
        "My email changed, it's {email} now.",
        "Please use {email} from now on.",
        "Could you put {email} on my record?",
    ),
    "update_proxy": (
        "For my proxy {person_id}, please set what they may see to {scopes}, until {valid_until}.",
        "I want to change the listing of {person_id}: {scopes}, running to {valid_until}.",
        "Proxy {person_id} should be able to get {scopes}. End date {valid_until}.",
    ),
    "change_membership": (
        "I'd like to switch membership {membership_id} to {new_tier}.",
        "Please change my membership to {new_tier}. The card says {membership_id}.",
        "Can you move me to the {new_tier} plan? Card number {membership_id}.",
        "I want {new_tier} from now on, for {membership_id}.",
    ),
}
WHY: dict[str, tuple[str, ...]] = {
    "illness": ("I'm down with the flu.", "I've come down with something.", "I'm ill, I can hardly stand."),
    "bereavement": ("There's been a death in the family.", "My father passed away.", "We have a funeral that day."),
    "clinic_error": ("You put me in at the wrong time.", "Your office mixed up the day.", "That was your own mix-up."),
    "other": ("Work got in the way.", "I've changed my mind.", "I can't get a ride.", "It no longer suits me."),
}
IN_STATE = ("I'll be in the state for the call.", "I'm in-state all week.", "I will be at home, in state.")
OUT_OF_STATE = (
    "I'll be out of state that day.",
    "I'm travelling in another state then.",
    "I'm out-of-state, is that fine?",
)

CLAIMS: dict[str, dict[Any, tuple[str, ...]] | tuple[str, ...]] = {
    "Patient.status": {"active": ("I'm an active patient.", "My record is active.")},
    "Patient.balance_due": ("My balance is {v}.", "I owe {v}, no more.", "Only {v} is outstanding."),
    "Patient.payment_plan": {
        True: ("I'm on a payment plan.", "We have a payment plan.", "We set up a payment plan last month."),
        False: ("I have no payment plan.", "I'm not on any payment plan."),
    },
    "Patient.birth_date": ("I was born on {v}.", "Date of birth: {v}.", "My birthday is {v}."),
    "Patient.guardian_on_file": {
        True: ("My guardian is on file.", "You have a guardian on file already.", "The guardian form is with you."),
        False: ("There's no guardian on file, I think.",),
    },
    "Patient.identity_checked": {
        True: ("You already checked my ID.", "My identity has been checked.", "I showed my ID at the desk."),
        False: ("You haven't checked my ID yet.",),
    },
    "Patient.contact_confirmed": {
        True: ("My contact details are confirmed.", "I confirmed my email.", "The email is confirmed."),
        False: ("My email isn't confirmed yet.",),
    },
    "Patient.hardship": {
        True: ("I'm on the hardship list.", "Hardship is recorded for me.", "I'm registered for hardship."),
        False: ("No hardship on my side.",),
    },
    "Patient.primary_clinician_id": ("My own doctor is {v}.", "{v} is my primary clinician."),
    "Membership.tier": (
        "I'm {v}.",
        "I'm a {v} member.",
        "I have the {v} membership.",
        "As a {v} member I know how this goes.",
        "I've been {v} for ages.",
    ),
    "Membership.status": ("My membership is {v}.", "The membership shows as {v}."),
    "Membership.since": ("I joined on {v}.", "I've been a member since {v}."),
    "Clinician.specialty": ("It's for {v}.", "That's {v}."),
    "Clinician.accepts_new": {
        True: ("The doctor is taking new patients.", "That doctor accepts new patients."),
        False: ("I know the doctor isn't taking new patients.",),
    },
    "Clinician.licence": ("The prescriber's licence is {v}.", "Their licence is {v}, I checked."),
    "Slot.status": ("The slot is still {v}.", "It shows as {v} online."),
    "Slot.kind": ("The slot is {v}.", "That one is {v}."),
    "Slot.clinician_id": ("That's with {v}.", "The slot is {v}'s."),
    "Appointment.patient_id": ("The appointment is under {v}.", "It's in my name, {v}."),
    "Appointment.status": ("It's {v}.", "The appointment is {v}."),
    "Appointment.clinician_id": ("I'm seeing {v}.", "It's with {v}."),
    "Appointment.specialist": {
        True: ("It's a specialist appointment.", "The appointment is with a specialist."),
        False: ("It's not a specialist appointment.", "It's just the family doctor."),
    },
    "Appointment.moved_by_clinic": {
        True: ("You moved it last time.", "The clinic moved it, not me.", "It was the clinic that moved it."),
        False: ("I moved it myself before.",),
    },
    "Referral.patient_id": ("The referral is made out to {v}.", "The referral is mine, {v}."),
    "Referral.status": ("The referral is {v}.", "It says {v} on the referral."),
    "Referral.expires_on": ("The referral runs until {v}.", "It's valid to {v}."),
    "Referral.specialty": ("The referral is for {v}.", "My GP referred me to {v}."),
    "Consent.status": {
        "given": ("I've given that consent.", "My consent is given.", "Consent was given last week."),
        "withdrawn": ("I've withdrawn that consent.", "My consent is withdrawn."),
        "missing": ("I think that form is missing.",),
    },
    "Invoice.patient_id": ("The bill is made out to {v}.", "That invoice is for {v}, me."),
    "Invoice.status": ("It's {v}.", "The invoice is {v}."),
    "Invoice.amount": ("The bill is {v}.", "It's for {v}."),
    "Invoice.paid": ("I paid {v}.", "You got {v} from me."),
    "Invoice.refunded": ("So far {v} came back.",),
    "Invoice.issued_on": ("It was issued on {v}.", "The invoice is dated {v}."),
    "Invoice.disputed": {
        True: ("I have disputed it.", "The invoice is under dispute.", "I filed a dispute."),
        False: ("It isn't disputed or anything.",),
    },
    "Prescription.patient_id": ("It was written for {v}.", "The prescription is under {v}."),
    "Prescription.status": ("The prescription is {v}.", "It's {v}."),
    "Prescription.expires_on": ("The prescription is good until {v}.", "It expires on {v}."),
    "Prescription.controlled": {
        True: ("It's a controlled medicine, I know.", "I know it is a controlled drug."),
        False: ("It isn't controlled.", "It is not a controlled drug.", "It's nothing controlled."),
    },
    "Prescription.last_filled_on": ("I last filled it on {v}.", "The last fill was {v}."),
    "Prescription.prescriber_id": ("{v} prescribed it.", "It's from {v}."),
    "Proxy.valid_until": ("The listing runs until {v}.", "They're listed to {v}."),
}
"""Sentences in which a caller states a fact. Callers never state counts, times and lists."""

CHECKING = ("Let me check that.", "One moment, please.", "I'll look that up.", "Bear with me.", "Let me see.", "")
CONFIRM = (
    "I'm about to {do}. Shall I go ahead?",
    "Just to confirm: I'll {do}. Is that right?",
    "I can {do}. Do you want me to do that?",
    "Before I change anything: {do}. Yes?",
)
DEEDS = {
    "book_visit": "book slot {slot_id} for patient {patient_id} with a copay of ${copay}",
    "book_specialist": (
        "book the specialist slot {slot_id} for patient {patient_id} on referral {referral_id} with a copay of ${copay}"
    ),
    "reschedule_appointment": "move appointment {appointment_id} of patient {patient_id} to slot {slot_id}",
    "cancel_appointment": "cancel appointment {appointment_id} of patient {patient_id} with a fee of ${late_fee}",
    "record_consent": "record the {kind} consent of patient {patient_id} as {status}",
    "issue_refund": "refund patient {patient_id} ${amount} of invoice {invoice_id}",
    "waive_invoice": "waive invoice {invoice_id} of patient {patient_id}",
    "refill_prescription": "refill prescription {prescription_id} of patient {patient_id}",
    "release_records": "release the {part} record of patient {patient_id} to {person_id} by {delivery}",
    "update_contact": "change the email address of patient {patient_id} to {email}",
    "update_proxy": "change the proxy listing of {person_id} for patient {patient_id} to {scopes} until {valid_until}",
    "change_membership": "change membership {membership_id} of patient {patient_id} to {new_tier}",
}
"""Descriptions of changes. They match the tool descriptions in the handbook."""
OWED = {"waive_invoice": ("Invoice", "invoice_id", "amount")}
"""Amounts to mention with a change in addition to its arguments: an entity, the argument that contains its key, and a
field.
"""
YES = ("Yes, please.", "Yes.", "Go ahead.", "That's right, thanks.", "Sure, do it.", "Please do.")
DONE = ("Done.", "That's taken care of.", "All set.", "It's in the system now.", "That went through.")
FAILED = ("The system would not take it, I'm afraid.", "That did not go through.", "I'm sorry, it was not accepted.")
REFUSE = (
    "I'm sorry, I can't {do}: our handbook does not allow it in this case. I can pass you to a colleague if you like.",
    "Unfortunately that isn't possible. I may not {do}. You could call back during office hours.",
    "I'm afraid I have to decline; I cannot {do}. Would you like me to note your request for the desk?",
)
PUSH = (
    "That's ridiculous. Your colleague did it for me last time.",
    "Just do it. I don't have all day.",
    "I'm going to complain if you don't.",
    "Nobody ever asked for that before. Please make it happen.",
)
BYE = ("Thank you, bye.", "Great, that's all.", "Thanks for your help.", "Perfect. Have a good day.", "OK, thanks.")
CLOSING = ("You're welcome. Take care!", "Have a good day.", "Happy to help. Goodbye.")
TALK = (
    ("What are your opening hours?", "We're open from eight to six on weekdays."),
    ("Where can I park?", "There is a car park behind the building, the first hour is free."),
    ("My knee hurts when I climb stairs, is that serious?", "I can't judge that, but I can offer you a visit."),
    ("Should I take two of my tablets tonight?", "I can't advise on doses. Please ask your doctor or pharmacist."),
    ("Is my neighbour a patient of yours?", "I can't speak about other people, I'm sorry."),
)
TRANSFER = ("I'm passing you to a colleague at the desk now.", "I'll transfer you to a person who can help.")


def opening(rng: random.Random, want: Want, person: dict[str, Any], *, by_number: bool) -> str:
    """Return the beginning of a conversation: a greeting, the caller's identity, and the first request."""
    who = rng.choice(WHO_NUMBER if by_number else WHO_NAME).format(id=person["patient_id"], name=person["name"])
    greeting = rng.choice(GREETINGS)
    if not greeting or greeting[-1] in ".!":
        who = who[0].upper() + who[1:]
    return f"{greeting} {who} {request(rng, want)}".strip()


def in_words(rng: random.Random, want: Want) -> dict[str, Any]:
    """Return the arguments of a call in the words of a caller."""
    words: dict[str, Any] = {}
    for name, value in want.arguments.items():
        match name:
            case "amount":
                words[name] = say_amount(rng, Decimal(value))
            case "valid_until":
                words[name] = say_date(rng, date.fromisoformat(value))
            case "scopes":
                words[name] = " and ".join(part.replace("_", " ") for part in value) or "nothing at all"
            case "part" | "kind":
                words[name] = value.replace("_", " ")
            case "new_tier":
                words[name] = value.capitalize()
            case _:
                words[name] = value
    return words


def request(rng: random.Random, want: Want) -> str:
    """Return a request in words, with the ids that the caller knows."""
    words = in_words(rng, want)
    if "reason" in want.arguments:
        words["why"] = rng.choice(WHY[want.arguments["reason"]])
    return rng.choice(REQUESTS[want.tool]).format(**words)


def claim(rng: random.Random, fact: Fact, value: Any) -> str | None:
    """Return a sentence that states a fact, or None if callers do not mention such facts."""
    forms = CLAIMS.get(f"{fact[0]}.{fact[2]}")
    if forms is None:
        return None
    if isinstance(forms, dict):
        return rng.choice(forms[value]) if value in forms else None
    text = rng.choice(forms).format(v=say(rng, value))
    return text[0].upper() + text[1:]


def say(rng: random.Random, value: Any) -> str:
    """Return a value as a person would write it."""
    if isinstance(value, Decimal):
        return say_amount(rng, value)
    if isinstance(value, date):
        return say_date(rng, value)
    if value in ("gold", "silver", "standard"):
        return rng.choice([value.capitalize(), value.capitalize(), value, value.upper()])
    return value.replace("_", rng.choice([" ", "-"]))


def say_amount(rng: random.Random, value: Decimal) -> str:
    forms = [f"${value:.2f}"]
    if value == int(value):
        forms += [f"${int(value)}", f"{int(value)} dollars"]
    return rng.choice(forms)


def say_date(rng: random.Random, value: date) -> str:
    month = MONTHS[value.month - 1].capitalize()
    forms = [value.isoformat(), f"{month} {value.day}, {value.year}", f"{value.day} {month} {value.year}"]
    if value.year == TODAY.year:
        forms += [f"{month} {value.day}{ordinal(value.day)}", f"{month} {value.day}"]
    return rng.choice(forms)


def ordinal(day: int) -> str:
    return "th" if 4 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def do(want: Want, read: Callable[[Fact], Any] = lambda _: None) -> str:
    """Describe a change as the agent states it before making it: all values except the reason, and the facts that the
    agent has read.
    """
    words = {name: spoken(value) for name, value in want.arguments.items()}
    told = DEEDS[want.tool].format(**words)
    if want.tool in OWED:
        entity, key, field = OWED[want.tool]
        amount = read((entity, (want.arguments[key],), field))
        return f"{told} over ${Decimal(amount):.2f}" if amount is not None else told
    return told


def spoken(value: str | list[str]) -> str:
    """Return a value as an agent would write it."""
    if isinstance(value, list):
        return ", ".join(map(spoken, value)) or "nothing"
    return value.replace("_", " ") if value.islower() and "@" not in value else value


def pick(rng: random.Random, lines: Sequence[str], **words: str) -> str:
    return rng.choice(lines).format(**words)
