def secret_variables(call: use_secret_variable | look | look_at_others | leave_by_command | run_unknown, facts):
    """A command with a variable that is named a secret is refused, and so are `env` and `printenv`."""
    if call.tool == "use_secret_variable":
        return deny("it uses a variable that holds a secret")
    if call.program in {"env", "printenv"}:
        return deny("it prints all variables; print the one you need")
    return permit()


def secret_files(call: look | look_at_others | leave_by_command | read_elsewhere | read_several_elsewhere | read_path | read_paths | read_other_path | read_other_paths | change_files | change_files_otherwise | git | git_otherwise | run_listed | run_otherwise | use_network | delete | write_path | write_other_path | move_from | move_other_from | move_to | move_to_other, facts):
    """A call that names an environment file, a private key or a file of credentials to read, copy or change it is refused."""
    named = [get(call, "path", "")]
    has_names = call.tool in {"git", "git_otherwise"} and call.words[0] in {"branch", "checkout", "commit", "fetch", "merge", "pull", "push", "rebase", "switch", "tag"}
    for path in get(call, "paths", named):
        if not (has_names and ":" not in path) and holds_secrets(lower(path).split("@")[-1].split(":")[-1]):
            return deny(f"{path} may hold secrets")
    return permit()


def holds_secrets(path):
    name = path.split("/")[-1]
    if any(part in {".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker"} for part in path.split("/")):
        return True
    if name in {".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd", ".envrc", "kubeconfig", "shadow", "environ"}:
        return True
    if any(name.endswith(each) for each in [".example", ".sample", ".template"]):
        return False
    if name.startswith(".env") or name.endswith(".env") or ".env." in name:
        return True
    kinds = [".py", ".pyi", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".vue", ".go", ".rs", ".java", ".kt", ".swift", ".cs", ".c", ".h", ".cc", ".cpp", ".hpp", ".rb", ".php", ".html", ".css", ".scss", ".md", ".rst"]
    if any(name.endswith(each) for each in kinds):
        return False
    if name.startswith("id_") or any(name.endswith(each) for each in [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore"]):
        return True
    return any(part in name for part in ["credential", "secret", "password", "service-account"]) and len(name.split(" ")) == 1
