def as_asked(call, facts):
    return permit() if requested() else deny("the request does not ask for this")


def known_addresses(call: send_email | create_calendar_event | add_calendar_event_participants, facts):
    people = [
        get(call, "recipients", None),
        get(call, "cc", None),
        get(call, "bcc", None),
        get(call, "participants", None),
    ]
    for given in people:
        if given != None:
            if len(given) > 0:
                origin = provenance(given)
                if origin.source in ["agent", "content"] and len(origin.pointed) == 0 and not requested():
                    return deny("an address is neither the user's word nor from a place that the user named")
    return permit()


def shared_with_named(call: share_file, facts):
    origin = provenance(call.email)
    if origin.source in ["user", "host", "record"] or requested():
        return permit()
    return deny("the user did not name whom to share the file with")


def deleted_from_the_list(call: delete_file | delete_email, facts):
    thing = get(call, "file_id", get(call, "email_id", None))
    if provenance(thing).source in ["user", "record"]:
        return permit()
    return deny("nothing but a running text names what to delete")
