def people_fit(call: create_booking | update_party, facts):
    """
    Adults and children together may not exceed the unit's max_people
    The party (people, pets, vehicles, caravan) may be changed on either rate
    """
    most = unit_of(call, facts).max_people
    if call.adults + call.children > most:
        return deny(f"{call.adults} adults and {call.children} children, and at most {most} people")
    return permit()


def big_tent_party(call: create_booking | update_party, facts):
    """
    A party of more than 6 adults with no children is not taken on a tent pitch.
    The party (people, pets, vehicles, caravan) may be changed on either rate
    """
    if call.adults <= 6 or call.children > 0:
        return permit()
    return deny(f"{call.adults} adults on a tent pitch") if unit_of(call, facts).kind == "tent_pitch" else permit()


def holder_old_enough(call: create_booking, facts):
    """The guest who holds the booking must be 18 or older on the arrival date"""
    arrive = date(call.arrive)
    born = facts.Guest(call.guest_id).birth_date
    birthday_to_come = arrive.month < born.month or (arrive.month == born.month and arrive.day < born.day)
    age = arrive.year - born.year - (1 if birthday_to_come else 0)
    if age >= 21:
        return permit()
    least = 21 if facts.Unit(call.unit_id).kind in {"cabin", "lodge"} else 18
    return permit() if age >= least else deny(f"the holder is not {least} on arrival")


def pets_welcome(call: create_booking | update_party, facts):
    """
    Pets are taken only on units whose record says pets_allowed
    Where the record of the guest who holds the booking shows an assistance dog
    The party (people, pets, vehicles, caravan) may be changed on either rate
    """
    if call.pets == 0:
        return permit()
    pets = pets_that_count(call.pets, holder_of(call, facts))
    if pets == 0:
        return permit()
    unit = unit_of(call, facts)
    if not unit.pets_allowed:
        return deny("the unit takes no pets")
    most = {"tent_pitch": 2, "touring_pitch": 2, "cabin": 1, "lodge": 0}[unit.kind]
    return permit() if pets <= most else deny(f"{pets} pets, and at most {most}")


def vehicles_fit(call: create_booking | update_party, facts):
    """
    One vehicle is included in every booking
    The party (people, pets, vehicles, caravan) may be changed on either rate
    """
    most = unit_of(call, facts).max_vehicles
    return permit() if call.vehicles <= most else deny(f"{call.vehicles} vehicles, and at most {most}")


def caravan_fits(call: create_booking | update_party, facts):
    """
    Caravans and motorhomes (any caravan_length_m above 0) stay on touring pitches only
    The party (people, pets, vehicles, caravan) may be changed on either rate
    """
    if call.caravan_length_m == 0:
        return permit()
    unit = unit_of(call, facts)
    if unit.kind != "touring_pitch":
        return deny("caravans stay on touring pitches only")
    if call.caravan_length_m > unit.max_length_m:
        return deny(f"{call.caravan_length_m} m, and the pitch takes {unit.max_length_m} m")
    return permit()


def pets_that_count(pets, guest):
    if pets > 0 and guest.assistance_dog:
        return pets - 1
    return pets


def holder_of(call, facts):
    if call.tool == "create_booking":
        return facts.Guest(call.guest_id)
    return facts.Guest(facts.Booking(call.booking_id).guest_id)
