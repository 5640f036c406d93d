def active_line(call: add_data, facts):
    """Data is added only to an active line."""
    return permit() if facts.Line(call.line_id).status == "active" else deny("the line is not active")


def balance_paid(call: cancel_line, facts):
    """A line with an unpaid balance is not cancelled."""
    return permit() if facts.Line(call.line_id).balance == money("0.00") else deny("the balance is unpaid")
