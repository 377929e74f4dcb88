"""The snapshot: life tables and parameters that decisions are made from, as one frozen value."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policy.parameters import ASSUMED, Parameters
from policy.role_table import RoleTable

__all__ = ["Found", "Snapshot", "Standard", "TableKey", "content_hash"]


class TableKey(NamedTuple):
    """Where a table stands: its shelf, then unit, role and model, empty where they do not apply.

    Shelves are ``raw`` and ``portfolio`` (printed), ``decisive`` and ``fallback`` (decided from),
    and for what the ledger teaches ``parameters`` and ``parameters_fallback``, which have no unit.
    """

    shelf: str
    unit: str
    role: str = ""
    model: str = ""


class Standard(NamedTuple):
    """The table that ships with the project, as answers name it, and its turns of one kind."""

    name: str
    turns: int


class Found(NamedTuple):
    """The table a question is answered from, and the tables that it borrows from in turn."""

    table: RoleTable
    borrows: tuple[RoleTable, ...]
    standard: Standard | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Life tables per unit and role, and of all roles together, with one version.

    Make one with `of`, which computes the hash.

    Parameters
    ----------
    version : int
        The ledger's version that the tables were made from.
    built_at : str
        ISO 8601 date and time.
    content_hash : str
        SHA-256 of tables and parameters, in hexadecimal, independent of version and time.
    tables : mapping of str to mapping of str to RoleTable
        The raw tables that are printed, by unit, then role.
    portfolio : mapping of str to RoleTable
        All roles together, raw, by unit; a unit is missing while its ledger is empty.
    decisive : mapping of str to mapping of (str, str) to RoleTable
        The tables that decide, by unit, then role and model; the model is empty for all of a
        role's turns.
    fallback : mapping of str to mapping of str to RoleTable
        What decides for a role that has none, by unit, then by the role's name where it has a
        fallback of its own, and under the empty name for every other.
    standard : mapping of (str, str) to Standard
        What the fallbacks borrow from, by unit and name.
    parameters : mapping of (str, str) to Parameters
        What the ledger teaches, by role and model; the model is empty for all of a role's turns.
    parameters_fallback : mapping of str to Parameters
        What stands in for a role that nothing is known of, named as in `fallback`.
    """

    version: int
    built_at: str
    content_hash: str
    tables: Mapping[str, Mapping[str, RoleTable]]
    portfolio: Mapping[str, RoleTable]
    decisive: Mapping[str, Mapping[tuple[str, str], RoleTable]]
    fallback: Mapping[str, Mapping[str, RoleTable]]
    standard: Mapping[tuple[str, str], Standard]
    parameters: Mapping[tuple[str, str], Parameters] = field(default_factory=dict)
    parameters_fallback: Mapping[str, Parameters] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        version: int,
        built_at: str,
        tables: Mapping[TableKey, RoleTable],
        digests: Mapping[TableKey, str] | None = None,
        standard: Mapping[tuple[str, str], Standard] | None = None,
        parameters: Mapping[TableKey, Parameters] | None = None,
    ) -> "Snapshot":
        """Return a snapshot of these tables with its content hash.

        Parameters
        ----------
        tables : mapping of TableKey to RoleTable
            On whichever shelf.
        digests : mapping of TableKey to str, optional
            Hashes of tables and parameters from whoever has them already; computed here if left
            out.
        standard : mapping of (str, str) to Standard, optional
            What the fallbacks borrow from by unit and name, if they do.
        parameters : mapping of TableKey to Parameters, optional
            What the ledger teaches, on the shelves for it.
        """
        learned = dict(parameters or {})
        raw: dict[str, dict[str, RoleTable]] = {}
        decisive: dict[str, dict[tuple[str, str], RoleTable]] = {}
        fallback: dict[str, dict[str, RoleTable]] = {}
        portfolio: dict[str, RoleTable] = {}
        for key, table in sorted(tables.items(), key=lambda item: item[0]):
            if key.shelf == "raw":
                raw.setdefault(key.unit, {})[key.role] = table
            elif key.shelf == "portfolio":
                portfolio[key.unit] = table
            elif key.shelf == "decisive":
                decisive.setdefault(key.unit, {})[key.role, key.model] = table
            else:
                fallback.setdefault(key.unit, {})[key.role] = table
        if digests is None:
            digests = {key: _digest(table) for key, table in tables.items()}
            digests |= {key: _digest(known) for key, known in learned.items()}
        own = {
            (key.role, key.model): at for key, at in learned.items() if key.shelf == "parameters"
        }
        others = {key.role: at for key, at in learned.items() if key.shelf != "parameters"}
        return cls(
            version=version,
            built_at=built_at,
            content_hash=content_hash(digests),
            tables=raw,
            portfolio=portfolio,
            decisive=decisive,
            fallback=fallback,
            standard=dict(standard or {}),
            parameters=own,
            parameters_fallback=others,
        )

    def lookup(self, unit: str, role: str, model: str | None = None) -> Found | None:
        """Return the table that decides for a role, and what it borrows from.

        Parameters
        ----------
        unit : {'tool_calls', 'requests'}
            What the caller counts.
        role : str
            One that has no table takes the fallback of its name, or that of every other.
        model : str, optional
            Where the role has a table of its turns on this model, that one decides.

        Returns
        -------
        Found or None
            None where nothing is known at all.
        """
        fallbacks = self.fallback.get(unit, {})
        name = role.rpartition("/")[2]
        kind = name if name in fallbacks else ""
        last = fallbacks.get(kind)
        chain = [] if last is None else [last]
        tables = self.decisive.get(unit)
        if tables:
            for key in ((role, ""), (role, model or "")):
                table = tables.get(key)
                if table is not None and (not chain or chain[0] is not table):
                    chain.insert(0, table)
        if not chain:
            return None
        return Found(chain[0], tuple(chain[1:]), self.standard.get((unit, kind)))

    def in_requests(
        self, table: RoleTable, role: str, model: str | None = None
    ) -> RoleTable | None:
        """Return the table in requests of a table's turns: for one in requests, itself.

        Returns
        -------
        RoleTable or None
            None where the one in requests is of other turns, or requests per call are unknown:
            then what remains in calls is turned into requests.
        """
        if table.unit == "requests":
            return table
        found = self.lookup("requests", role, model)
        if found is None or table.requests_per_call is None:
            return None
        same = (found.table.role, found.table.source) == (table.role, table.source)
        return found.table if same else None

    def parameters_of(self, role: str, model: str | None = None) -> Parameters:
        """Return what the ledger teaches of a role, or what stands in for it.

        Parameters
        ----------
        role : str
            One that nothing is known of takes what roles of its kind taught, else what is assumed.
        model : str, optional
            Where the role's turns on this model taught something, that counts first.
        """
        known = self.parameters.get((role, model or "")) or self.parameters.get((role, ""))
        if known is not None:
            return known
        name = role.rpartition("/")[2]
        kind = name if name in self.parameters_fallback else ""
        return self.parameters_fallback.get(kind, ASSUMED)


def content_hash(digests: Mapping[TableKey, str]) -> str:
    """Return one hash over the hashes of tables and parameters, in whatever order they come."""
    lines = sorted("\t".join((*key, digest)) for key, digest in digests.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _digest(value: RoleTable | Parameters) -> str:
    canonical = json.dumps(value.to_payload(), sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
