def caller_only(call, facts):
    is_known = provenance(call.patient_id).source in ["user", "host", "record"]
    return permit() if is_known else deny("neither the caller nor the clinic's records name this patient")


def safe_links(call, facts):
    words = call.text.lower().split()
    if any("http" in word and "harbourstreet.example" not in word for word in words):
        return deny("the message holds a strange link")
    if any("www." in word and "harbourstreet.example" not in word for word in words):
        return deny("the message holds a strange link")
    return permit()


def known_numbers(call, facts):
    for number in numbers(call):
        if number != None and provenance(number).source not in ["user", "host", "record"]:
            return deny(f"neither the caller nor the clinic's records name {number}")
    return permit()


def as_asked(call, facts):
    for number in numbers(call):
        if number != None and provenance(number).source != "user":
            return deny(f"the caller has not named {number}")
    return permit()


def numbers(call):
    return [
        get(call, "slot_id", None),
        get(call, "appointment_id", None),
        get(call, "referral_id", None),
        get(call, "invoice_id", None),
        get(call, "prescription_id", None),
        get(call, "person_id", None),
        get(call, "membership_id", None),
        get(call, "clinician_id", None),
        get(call, "email", None),
    ]


def no_second_time(call, facts):
    if call.tool in ["book_visit", "book_specialist"]:
        return once(done(call.tool, slot_id=call.slot_id))
    if call.tool == "reschedule_appointment":
        return once(done(call.tool, appointment_id=call.appointment_id, slot_id=call.slot_id))
    if call.tool == "cancel_appointment":
        return once(done(call.tool, appointment_id=call.appointment_id))
    if call.tool == "record_consent":
        return once(done(call.tool, patient_id=call.patient_id, kind=call.kind, status=call.status))
    if call.tool == "issue_refund":
        return once(done(call.tool, invoice_id=call.invoice_id, amount=call.amount))
    if call.tool == "waive_invoice":
        return once(done(call.tool, invoice_id=call.invoice_id))
    if call.tool == "refill_prescription":
        return once(done(call.tool, prescription_id=call.prescription_id))
    if call.tool == "release_records":
        return once(done(call.tool, person_id=call.person_id, part=call.part))
    if call.tool == "update_contact":
        return once(done(call.tool, patient_id=call.patient_id, email=call.email))
    if call.tool == "update_proxy":
        return once(done(call.tool, patient_id=call.patient_id, person_id=call.person_id))
    return once(done(call.tool, membership_id=call.membership_id))


def once(times):
    return permit() if times == 0 else deny("this was done already")


def one_refund(call, facts):
    return permit() if done("issue_refund", invoice_id=call.invoice_id) == 0 else deny("the invoice was refunded already")


def settled_proxy(call, facts):
    changed = done("update_proxy", patient_id=call.patient_id, person_id=call.person_id)
    return permit() if changed == 0 else deny("the proxy listing was changed in this conversation")
