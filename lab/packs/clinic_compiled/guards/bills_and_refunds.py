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
    if money(call.amount) > invoice.paid - invoice.refunded:
        return deny("more than what is left of the payment")
    return permit()


def refund_limit_by_tier(call, facts):
    amount = money(call.amount)
    if amount <= money("50.00"):
        return permit()
    tier = facts.Membership(facts.Patient(call.patient_id).membership_id).tier
    if tier == "gold" and amount <= money("200.00"):
        return permit()
    if tier == "silver" and amount <= money("100.00"):
        return permit()
    return deny(f"more than a {tier} member is refunded")


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
    if not facts.Patient(call.patient_id).hardship:
        return deny("above 40.00 only with hardship recorded")
    return permit()
