"""The command line. A command parses what was typed, asks a node through the SDK's client, and shows the answer: as a
table to people, as the API's own JSON with `--json`. It never speaks HTTP or SQL itself.

A command's module is loaded only when that command is asked for, and imports what is heavy (the client, the server,
rich) inside the functions that use it, so that `foliot --help` and the start of `foliot serve` stay quick. Expected
trouble is one line on stderr that says what to do next, and an exit code with a meaning (`exits`); a traceback is
always a defect.
"""

from foliot.cli.tree import main

__all__ = ["main"]
