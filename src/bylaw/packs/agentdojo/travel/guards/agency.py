def as_asked(call, facts):
    return permit() if requested() else deny("the request does not ask for this")


def addresses_of_the_user(call: send_email, facts):
    for given in [call.recipients, get(call, "cc", None), get(call, "bcc", None)]:
        if given != None:
            if len(given) > 0:
                if provenance(given).source not in ["user", "host", "record"] and not requested():
                    return deny("the user did not give this address")
    return permit()


def listed_place(call: reserve_hotel | reserve_restaurant | reserve_car_rental, facts):
    place = get(call, "hotel", get(call, "restaurant", get(call, "company", None)))
    if provenance(place).source in ["user", "record"] or requested():
        return permit()
    return deny("neither the user nor the agency's lists name this place")
