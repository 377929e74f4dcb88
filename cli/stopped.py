"""A command that was stopped, and what it leaves behind."""

__all__ = ["Stopped"]


class Stopped(Exception):  # noqa: N818 - no error: somebody pressed Ctrl-C
    """Ctrl-C stopped a command that has something to say about what it had done.

    Parameters
    ----------
    kept : str
        What is kept, as a clause.
    """
