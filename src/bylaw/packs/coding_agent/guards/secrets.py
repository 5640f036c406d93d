def untold(call: tell_secret | write_secret | change_files | change_files_otherwise | build | run_otherwise | git | git_otherwise | use_network | write_path, facts):
    """No password, key or token is written in a command, nor in a file that is written whole."""
    if call.tool in {"tell_secret", "write_secret"}:
        return deny("it holds a password, key or token")
    return permit()


def secret_variables(call: use_secret_variable | look | leave_by_command, facts):
    """Variables that hold secrets are not printed or passed on."""
    if call.tool == "use_secret_variable":
        return deny("it uses a variable that holds a secret")
    if call.program in {"env", "printenv", "export", "set"}:
        return deny("it prints all variables; print the one you need")
    return permit()


def secret_files(call: look | leave_by_command | read_elsewhere | read_several_elsewhere | change_files | change_files_otherwise | git | git_otherwise | build | run_otherwise | use_network | delete | read_path | read_paths | write_path | move_from | move_to, facts):
    """Files that hold secrets are not read, copied or changed: environment files, private keys, credentials."""
    named = [get(call, "path", "")]
    for path in get(call, "paths", named):
        if holds_secrets(lower(path).split("@")[-1].split(":")[-1]):
            return deny(f"{path} may hold secrets")
    return permit()


def named_files(call: look | change_files | search | search_by_rg, facts):
    """A search through a folder, and a pattern of names, say which kind of source files they read."""
    if call.tool in {"search", "search_by_rg"}:
        if any(says_kind(word) for word in call.words) and all(is_source(word) and "=*." in word for word in call.words if says_kind(word)):
            return permit()
        return deny("it reads all files of a folder; say which kind by `--include='*.py'`, with `rg` by `--glob='*.py'`")
    if call.program in {"ls", "find", "du", "stat", "wc", "test", "["}:
        return permit()
    for name in call.globs:
        if not is_source(name):
            return deny(f"{name} may be files with secrets; end it with the kind of files, such as `*.py`")
    return permit()


def says_kind(word):
    return word.startswith("--include") or word.startswith("--glob")


def is_source(name):
    return any(name.endswith(kind) for kind in [".py", ".pyi", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cc", ".cpp", ".hpp", ".rb", ".php", ".sh", ".md", ".rst", ".txt", ".html", ".css", ".scss", ".sql", ".log", ".csv", ".lock", ".o"])


def holds_secrets(path):
    name = path.split("/")[-1]
    if any(part in {".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker"} for part in path.split("/")):
        return True
    if name in {".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd", ".envrc", "service-account.json", "kubeconfig", "shadow", "environ"}:
        return True
    if (name.endswith(".env") or ".env." in name) and not name in {".env.example", ".env.sample", ".env.template", ".env.test"}:
        return True
    if name.startswith("id_") and (name.startswith("id_rsa") or name.startswith("id_ed25519") or name.startswith("id_ecdsa")):
        return True
    if name.endswith(".pem") or name.endswith(".key") or name.endswith(".p12") or name.endswith(".pfx") or name.endswith(".jks") or name.endswith(".keystore"):
        return True
    if any(part in name for part in ["credential", "secret", "password", "private_key", "api_key", "apikey"]) and not is_source(name):
        return len(name.split(" ")) == 1
    return name.startswith(".") and ("*" in name or "?" in name or "[" in name)
