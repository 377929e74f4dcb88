"""What Ctrl-C does to the command: one line and exit code 130, whatever it was in the middle of."""

import atexit
import os
import signal
import threading

__all__ = ["CODE", "leave_at_once", "raise_as_usual"]

CODE = 130
"""Exit code of a command that was stopped: 128 and the number of the signal."""


def leave_at_once() -> None:
    """Let Ctrl-C end this process on the spot, while packages load and after all is printed.

    Raised in there, it would come out of a half-loaded package as another error, or from the
    interpreter's own shutdown. A process that was told to ignore it goes on ignoring it.
    """
    if _handled_by(signal.default_int_handler):
        signal.signal(signal.SIGINT, _leave)
        # In its last steps the interpreter gives every handler's signal its default back: death.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def raise_as_usual() -> bool:
    """Let Ctrl-C raise KeyboardInterrupt again, so that what is begun is put away first.

    Returns
    -------
    bool
        Whether it ended the process until now.
    """
    if not _handled_by(_leave):
        return False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return True


def _handled_by(handler: object) -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is handler


def _leave(_number: int, _frame: object) -> None:
    os.write(2, b"stopped\n")
    os._exit(CODE)
