def invoice_issued_to_patient(call, facts):
    if facts.Invoice(call.invoice_id).patient_id != call.patient_id:
        return deny("the invoice was issued to another patient")
    return permit()


def refund_paid_invoices_only(call, facts):
    status = facts.Invoice(call.invoice_id).status
    if status != "paid":
        return deny(f"the invoice is {status}")
    return permit()


def refund_within_payment_left(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    left = invoice.paid - invoice.refunded
    if money(call.amount) > left:
        return deny(f"more than the {left} left of the payment")
    return permit()


def refund_limit_by_tier(call, facts):
    amount = money(call.amount)
    if amount <= money("50.00"):
        return permit()
    membership_id = facts.Patient(call.patient_id).membership_id
    tier = facts.Membership(membership_id).tier
    limits = {"gold": money("200.00"), "silver": money("100.00"), "standard": money("50.00")}
    if amount > limits[tier]:
        return deny(f"more than a {tier} member may be refunded")
    return permit()


def refund_invoice_age(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    if date(now()) - invoice.issued_on <= days(60):
        return permit()
    if invoice.disputed:
        return permit()
    return deny(f"issued on {invoice.issued_on}, more than 60 days ago, and not disputed")


def invoice_waiver_amount(call, facts):
    amount = facts.Invoice(call.invoice_id).amount
    if amount <= money("40.00"):
        return permit()
    if amount > money("250.00"):
        return deny("an invoice above 250.00 is not waived")
    if facts.Patient(call.patient_id).hardship:
        return permit()
    return deny("above 40.00 and no hardship recorded for the patient")
