def web_addresses(call: open_page | open_other_page, facts):
    """Only web addresses are opened: no files, scripts or settings of the browser."""
    return permit() if call.scheme in {"http", "https"} else deny(f"{call.scheme} is not an address of the web")


def public_pages(call: open_page | open_other_page | press | choose | follow_link | click_field | fill_in | fill_in_form | fill_in_other, facts):
    """Pages of this machine and of internal networks are not used."""
    return deny("it is not a page of the public web") if get(call, "internal", False) else permit()
