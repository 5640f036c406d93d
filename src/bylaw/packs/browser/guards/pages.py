def web_addresses(call: open_page, facts):
    """Only web addresses are opened: no files, scripts or settings of the browser."""
    return permit() if call.scheme in {"http", "https"} else deny(f"{call.scheme} is not an address of the web")


def opened_pages(call: open_page, facts):
    """Pages of this machine and of internal networks are not used."""
    return outside(get(call, "host", ""))


def used_pages(call: press | follow_link | choose | fill_in | fill_in_form, facts):
    """Pages of this machine and of internal networks are not used."""
    return outside(call.page.split("://")[-1].split("/")[0].split("@")[-1].split(":")[0])


def outside(host):
    parts = lower(host).split(".")
    if parts[-1] in {"localhost", "local", "internal", "intranet", "lan", "home", "corp"} or len(parts) == 1:
        return deny(f"{host} is not a site of the public web")
    if parts[-1].isdigit():
        return deny("an address in numbers may be of an internal network")
    return permit()


def acting_addresses(call: open_page, facts):
    """An address that pays, confirms, deletes or signs out is not opened directly."""
    for part in lower(get(call, "path", "")).split("/"):
        if part in {"pay", "buy", "purchase", "delete", "remove", "confirm", "unsubscribe", "cancel", "approve", "transfer", "logout", "signout", "log-out", "sign-out"}:
            return deny(f"/{part} may act when it is opened; open the page before it, and press its button")
    return permit()


def acting_links(call: follow_acting_link | follow_link, facts):
    """Links may be followed, unless their words or their address say that they buy, confirm or delete something; then the user decides."""
    if call.tool == "follow_acting_link":
        return deny("the address of the link says that it acts when it is opened; ask the user to open it")
    return permit()
