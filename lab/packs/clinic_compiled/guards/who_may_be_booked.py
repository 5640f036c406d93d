def booking_active_patients_only(call, facts):
    patient = facts.Patient(call.patient_id)
    if patient.status != "active":
        return deny(f"the patient is {patient.status}")
    return permit()


def booking_balance_limit(call, facts):
    patient = facts.Patient(call.patient_id)
    if patient.balance_due <= money("150.00"):
        return permit()
    if patient.payment_plan:
        return permit()
    return deny("the balance is above $150.00 and there is no payment plan")


def booking_minors_guardian(call, facts):
    patient = facts.Patient(call.patient_id)
    if patient.birth_date < date("2010-01-01"):
        return permit()
    if patient.guardian_on_file:
        return permit()
    return deny("a minor without a guardian on file")
