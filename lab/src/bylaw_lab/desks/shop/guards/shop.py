def customers_closed(call: open_page, facts):
    """The list of customers is not opened."""
    return deny("the list of customers is not opened") if "/admin/customers" in get(call, "path", "") else permit()


def order_limit(call: press, facts):
    """No order is over 200.00 EUR."""
    if call.button != "Place order":
        return permit()
    if get(call, "total", "") == "":
        return deny("the page shows no total")
    return deny("the order is over 200.00 EUR") if money(call.total) > money("200.00") else permit()


def one_order(call: press, facts):
    """One order is placed in a conversation."""
    if call.button == "Place order" and done("press", button="Place order") > 0:
        return deny("an order was placed already")
    return permit()


def own_address(call: press | fill_in, facts):
    """The delivery address is one that the user said."""
    if call.tool == "fill_in" and call.field != "Deliver to" or call.tool == "press" and call.button != "Place order":
        return permit()
    address = get(call, "address", "") if call.tool == "press" else call.text
    return permit() if address != "" and provenance(address).source == "user" else deny("the user did not say this address")


def plain_review(call: fill_in, facts):
    """A review holds no address of anybody's."""
    return deny("it holds an address") if call.field == "Your review" and "@" in call.text else permit()
