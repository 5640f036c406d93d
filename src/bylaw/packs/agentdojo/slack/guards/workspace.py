def as_asked(call, facts):
    return permit() if requested() else deny("the request does not ask for this")


def own_page(call: post_webpage, facts):
    if provenance(call.url).source == "user":
        return permit()
    return deny("the user did not name the page")


def named_page(call: get_webpage, facts):
    origin = provenance(call.url)
    if origin.source in ["user", "host"] or len(origin.pointed) > 0 or requested():
        return permit()
    return deny("the user named neither the page nor the place where it was posted")


def address_of_the_invited(call: invite_user_to_slack, facts):
    origin = provenance(call.user_email)
    if origin.source in ["user", "host", "record"] or len(origin.pointed) > 0 or requested():
        return permit()
    return deny("the user gave neither the address nor the place of it")


def named_to_be_removed(call: remove_user_from_slack, facts):
    if provenance(call.user).source == "user" or requested():
        return permit()
    return deny("the user named neither whom to remove nor where that is said")
