def typed_money(call: fill_in | fill_in_form, facts):
    """Card numbers, security codes and bank accounts are typed by the user."""
    words = lower(call.field).split()
    if any(word in {"cvv", "cvc", "csc", "iban", "bic", "pan"} for word in words):
        return deny("the user types this")
    if "card" in words and not any(word in {"gift", "search", "name"} for word in words):
        return deny("the user types this")
    if ("security" in words or "routing" in words or "account" in words) and ("code" in words or "number" in words):
        return deny("the user types this")
    return permit()


def typed_secrets(call: fill_in | fill_in_form, facts):
    """Passwords, PINs and one-time codes are typed by the user."""
    words = lower(call.field).split()
    if any(word in {"password", "passwort", "passcode", "passphrase", "pin", "otp", "secret", "token"} for word in words):
        return deny("the user types this")
    if "code" in words and any(word in {"verification", "authentication", "one-time", "login", "sms", "recovery"} for word in words):
        return deny("the user types this")
    return permit()
