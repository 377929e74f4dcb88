"""Names that are too long for their column."""

__all__ = ["short_name"]


def short_name(name: str, widest: int) -> str:
    """Return a name, cut in its middle where it is too long: plugins' roles differ in their ends.

    Parameters
    ----------
    name : str
    widest : int
        Characters there is room for, 3 at least.

    Examples
    --------
    >>> short_name("superpowers:code-reviewer", 12)
    'supe…eviewer'
    """
    if len(name) <= widest:
        return name
    ahead = (widest - 1) * 2 // 5
    return f"{name[:ahead]}…{name[len(name) - (widest - 1 - ahead) :]}"
