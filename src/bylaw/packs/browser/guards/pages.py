def web_addresses(call: open_page, facts):
    """Only web addresses are opened: no files, scripts or settings of the browser."""
    return permit() if call.scheme in {"http", "https"} else deny(f"{call.scheme} is not an address of the web")


def public_pages(call: open_page | press | choose | follow_link | follow_other_link | focus | fill_in | fill_in_form, facts):
    """Pages of this machine and of internal networks are not used."""
    return deny("it is not a page of the public web") if get(call, "internal", False) else permit()


def acting_addresses(call: open_page | follow_link | follow_other_link, facts):
    """An address that pays, confirms, deletes or signs out is not opened directly."""
    for part in lower(get(call, "path", "")).split("/"):
        if part in {"pay", "buy", "purchase", "delete", "remove", "confirm", "unsubscribe", "cancel", "approve", "transfer", "logout", "signout", "log-out", "sign-out"}:
            return deny(f"/{part} may act when it is opened; open the page before it, and press its button")
    return permit()
