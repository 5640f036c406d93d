def manager(call, facts):
    if money(call.amount) > 50 and not facts.context.manager_agrees:
        return deny("no manager agreed")
    return permit()
