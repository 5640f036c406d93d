def invoice_owner(call: issue_refund | waive_invoice, facts):
    is_own = facts.Invoice(call.invoice_id).patient_id == call.patient_id
    return permit() if is_own else deny("the invoice was issued to somebody else")


def refund_paid(call: issue_refund, facts):
    return permit() if facts.Invoice(call.invoice_id).status == "paid" else deny("the invoice is not paid")


def refund_remaining(call: issue_refund, facts):
    invoice = facts.Invoice(call.invoice_id)
    left = invoice.paid - invoice.refunded
    return permit() if money(call.amount) <= left else deny("the refund is more than what is left of the payment")


def refund_cap(call: issue_refund, facts):
    amount = money(call.amount)
    if amount <= money("50.00"):
        return permit()
    tier = facts.Membership(facts.Patient(call.patient_id).membership_id).tier
    cap = {"gold": money("200.00"), "silver": money("100.00"), "standard": money("50.00")}[tier]
    return permit() if amount <= cap else deny(f"the refund is above ${cap}")


def refund_window(call: issue_refund, facts):
    invoice = facts.Invoice(call.invoice_id)
    is_open = date(now()) - invoice.issued_on <= days(60) or invoice.disputed
    return permit() if is_open else deny("the invoice is older than 60 days and not disputed")


def waive_limit(call: waive_invoice, facts):
    amount = facts.Invoice(call.invoice_id).amount
    if amount > money("250.00"):
        return deny("an invoice above $250.00 is not waived")
    is_small = amount <= money("40.00") or facts.Patient(call.patient_id).hardship
    return permit() if is_small else deny("no hardship is recorded for the patient")
