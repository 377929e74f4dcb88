"""Modes: for which roles answers are enforced, only shadowed, or off."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast, get_args

from compactuary.errors import InputError
from policy.answer import Mode

__all__ = ["MODES_VARIABLE", "Modes", "modes_of"]

MODES_VARIABLE = "COMPACTUARY_MODES"


@dataclass(frozen=True, slots=True)
class Modes:
    """The mode of every role.

    Parameters
    ----------
    default : {'enforce', 'shadow', 'off'}
        Of roles that are not named.
    roles : mapping of str to {'enforce', 'shadow', 'off'}
        Of those that are.
    """

    default: Mode = "enforce"
    roles: Mapping[str, Mode] = field(default_factory=dict)

    def of(self, role: str) -> Mode:
        """Return the mode of a role."""
        return self.roles.get(role, self.default)


def modes_of(given: str | None, where: str = MODES_VARIABLE) -> Modes:
    """Read modes like ``shadow,main=enforce,Explore=off``: a default, and roles that differ.

    Raises
    ------
    InputError
        Naming `where`, if a mode is unknown, a role is empty or the default comes twice.
    """
    default: Mode | None = None
    roles: dict[str, Mode] = {}
    for part in (given or "").split(","):
        role, equals, mode = part.strip().rpartition("=")
        if not (equals or mode):
            continue
        if mode not in get_args(Mode) or (equals and not role) or (not equals and default):
            raise InputError(
                "is not a mode, or ROLE=MODE",
                where=where,
                value=part,
                remedy=f"Write it like shadow,main=enforce; modes: {', '.join(get_args(Mode))}.",
            )
        if equals:
            roles[role] = cast(Mode, mode)
        else:
            default = cast(Mode, mode)
    return Modes(default or "enforce", roles)
