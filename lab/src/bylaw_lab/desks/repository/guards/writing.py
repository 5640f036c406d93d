def read_first(call: write_path, facts):
    """A file is written whole only after it was read in this conversation."""
    return permit() if done("read_path", path=call.path) > 0 else deny("read the file before you write it")


def written_once(call: change_files, facts):
    """The same command does not write the same text twice."""
    if call.program in {"echo", "printf", "cat", "tee"} and done("change_files", command=call.command) > 0:
        return deny("this command was run already")
    return permit()
