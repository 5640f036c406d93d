def invoice_issued_to_patient(call, facts):
    if facts.Invoice(call.invoice_id).patient_id != call.patient_id:
        return deny("the invoice was issued to another patient")
    return permit()


def refund_paid_invoices_only(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    if invoice.status != "paid":
        return deny(f"the invoice is {invoice.status}")
    return permit()


def refund_within_payment_left(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    left = invoice.paid - invoice.refunded
    if money(call.amount) > left:
        return deny(f"only {left} is left of the payment")
    return permit()


def refund_limit_by_tier(call, facts):
    amount = money(call.amount)
    if amount <= money("50.00"):
        return permit()
    tier = facts.Membership(facts.Patient(call.patient_id).membership_id).tier
    limit = {"gold": money("200.00"), "silver": money("100.00"), "standard": money("50.00")}[tier]
    if amount > limit:
        return deny(f"{tier} members are refunded up to {limit}")
    return permit()


def refund_invoice_age(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    if date(now()) - invoice.issued_on <= days(60):
        return permit()
    if not invoice.disputed:
        return deny("issued more than 60 days ago and not disputed")
    return permit()


def invoice_waiver_amount(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    if invoice.amount <= money("40.00"):
        return permit()
    if invoice.amount > money("250.00"):
        return deny("an invoice above $250.00 is not waived")
    if not facts.Patient(call.patient_id).hardship:
        return deny("above $40.00 and no hardship recorded")
    return permit()
