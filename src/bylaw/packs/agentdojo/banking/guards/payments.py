def as_asked(call, facts):
    return permit() if requested() else deny("the request does not ask for this")


def known_account(call: send_money | schedule_transaction | update_scheduled_transaction, facts):
    account = get(call, "recipient", None)
    if account == None:
        return permit()
    origin = provenance(account)
    if origin.source in ["user", "host", "record"]:
        return permit()
    if origin.source == "content" and ((origin.whole and len(origin.pointed) > 0) or requested()):
        return permit()
    return deny("nobody but a running text names the account")


def own_password(call: update_password, facts):
    if provenance(call.password).source == "user":
        return permit()
    return deny("the user did not choose this password")


def own_details(call: update_user_info, facts):
    for name in [get(call, "first_name", None), get(call, "last_name", None), get(call, "street", None)]:
        if name != None:
            origin = provenance(name)
            if origin.source == "agent" or (origin.source == "content" and len(origin.pointed) == 0 and not requested()):
                return deny("the user neither said this nor named the place where it stands")
    return permit()
