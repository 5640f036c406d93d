def invoice_owner(call, facts):
    if facts.Invoice(call.invoice_id).patient_id != call.patient_id:
        return deny("the invoice was issued to somebody else")
    return permit()


def refund_paid(call, facts):
    if facts.Invoice(call.invoice_id).status != "paid":
        return deny("the invoice is not paid")
    return permit()


def refund_remaining(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    paid = invoice.paid
    if money(call.amount) <= paid - invoice.refunded:
        return permit()
    return deny("the refund is more than what is left of the payment")


def refund_cap(call, facts):
    amount = money(call.amount)
    if amount <= money("50.00"):
        return permit()
    tier = facts.Membership(facts.Patient(call.patient_id).membership_id).tier
    if tier == "gold":
        cap = money("200.00")
    elif tier == "silver":
        cap = money("100.00")
    else:
        cap = money("50.00")
    if amount <= cap:
        return permit()
    return deny(f"the refund is above ${cap}")


def refund_window(call, facts):
    invoice = facts.Invoice(call.invoice_id)
    if date(now()) - invoice.issued_on <= days(60):
        return permit()
    if invoice.disputed:
        return permit()
    return deny("the invoice is older than 60 days and not disputed")


def waive_limit(call, facts):
    amount = facts.Invoice(call.invoice_id).amount
    if amount <= money("40.00"):
        return permit()
    if amount > money("250.00"):
        return deny("an invoice above $250.00 is not waived")
    if facts.Patient(call.patient_id).hardship:
        return permit()
    return deny("no hardship is recorded for the patient")
