"""The program ``palmette``, as the wheel's script."""

import signal
import sys

from palmette._palmette import run_command


def main() -> int:
    """Run the command line with this process's arguments and return its exit status."""
    # Ctrl-C ends the program as it ends one without an interpreter: Python's own handler waits for the call to return.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return run_command(["palmette", *sys.argv[1:]])
