"""The ledger as plain rows, and its histogram counted anew from them."""

from collections import Counter, defaultdict

from sqlalchemy import select

from ledger.importing import ImportOptions, import_logs
from ledger.schema import (
    CACHE_WRITE_COLUMNS,
    compactions,
    histogram,
    ledger_version,
    metadata,
    request_pace,
    requests,
    tool_calls,
    turns,
)

#: What the logs tell, apart from how far they have been read.
FACTS = (turns, requests, tool_calls, compactions, histogram, request_pace)


def imported(engine, *paths, **options):
    """Import and return what is refused; everything else must have been read."""
    return [
        report.error
        for report in import_logs(engine, paths, ImportOptions(**options))
        if report.error
    ]


def rows_of(engine, tables=FACTS):
    """Every row as a mapping, by table; versions and emptied cells of the histogram apart."""
    found = {}
    with engine.connect() as connection:
        for table in tables:
            rows = [row._asdict() for row in connection.execute(select(table))]
            if table in (histogram, request_pace):
                rows = [
                    {key: value for key, value in row.items() if key != "version"}
                    for row in rows
                    if row.get("count", row.get("turns"))
                ]
            found[table.name] = sorted(rows, key=repr)
    return found


def everything(engine):
    """All rows of all tables as they are."""
    with engine.connect() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
        }


def version_of(engine):
    with engine.connect() as connection:
        return connection.scalar(select(ledger_version.c.version))


def token_sums(engine):
    names = ("uncached", "cache_read", "output")
    rows = rows_of(engine, (requests,))["requests"]
    sums = {name: sum(row[name] for row in rows) for name in names}
    written = sum(row[name] for row in rows for name in CACHE_WRITE_COLUMNS)
    return sums | {"cache_write": written}


def recounted(engine):
    """The histogram by the model's definition, from turns, requests and calls alone.

    An ended turn leaves where it ended. A cut one was last at risk one call earlier; in requests,
    at its last one if that asked for a tool.
    """
    rows = rows_of(engine)
    calls_of, asking = Counter(), Counter()
    for call in rows["tool_calls"]:
        calls_of[call["turn_id"]] += 1
        asking[call["request_id"]] += 1
    requests_of = defaultdict(list)
    for request in rows["requests"]:
        requests_of[request["turn_id"]].append(request)
        calls_of[request["turn_id"]] += request["unnamed_tool_calls"]
        asking[request["request_id"]] += request["unnamed_tool_calls"]
    cells = Counter()
    for turn in rows["turns"]:
        if turn["status"] == "open":
            continue
        key = (turn["role"], turn["model"] or "")
        ended = turn["status"] == "ended"
        own = sorted(requests_of[turn["turn_id"]], key=lambda request: request["position"])
        entry = turn["entry_calls"]
        if entry is not None:
            calls = max(entry + calls_of[turn["turn_id"]], turn["declared_tool_calls"] or 0)
            cells["tool_calls", *key, entry, calls if ended else calls - 1, ended] += 1
        entry = turn["entry_requests"]
        made = max(len(own) + (entry or 0) if own else 0, turn["declared_requests"] or 0)
        if entry is not None and made:
            latest = [row for row in own if row["position"] == own[-1]["position"]]
            sure = ended or any(asking[row["request_id"]] for row in latest)
            cells["requests", *key, entry, made if sure else made - 1, ended] += 1
    return cells


def kept(engine):
    """The histogram that the ledger keeps."""
    names = ("unit", "role", "model", "entry", "exit", "ended")
    return Counter(
        {
            tuple(row[name] for name in names): row["count"]
            for row in rows_of(engine, (histogram,))["histogram"]
        }
    )
