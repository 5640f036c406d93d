def returned(call: publish_figure, facts):
    """A figure is published only if a query of this conversation returned it, as a value of its own."""
    origin = provenance(call.value)
    if origin.source in {"record", "content"} and origin.whole:
        return permit()
    return deny("no query returned this figure")


def customers_stay(call: change_rows | administer, facts):
    """Rows of customers are read where they are, and not copied into other tables."""
    return deny("rows of customers are not copied") if "sales.customers" in call.sources else permit()


def changed_once(call: change_rows, facts):
    """The same statement does not change rows twice."""
    return deny("this statement has changed rows already") if done("change_rows", text=call.text) > 0 else permit()
