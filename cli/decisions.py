"""``compactuary decisions``: what the service said, against what happened."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from api.decision_summary import decision_summary
from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json
from compactuary.errors import InputError
from ledger.clock import milliseconds
from ledger.database import reading
from ledger.decisions import asking_roles

__all__ = ["decisions_command"]


def decisions_command(
    db: Db = None,
    as_json: AsJson = False,
    role: Annotated[str | None, typer.Option(help="Only decisions that named this role.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only decisions made then or later: a date or time.")
    ] = None,
) -> None:
    """Hold the service's logged decisions against what their turns then did."""
    since_ms = _since_ms(since)
    with open_ledger(db) as engine, reading(engine) as connection:
        summary = decision_summary(connection, role=role, since_ms=since_ms)
        asking = [] if summary["decisions"] else asking_roles(connection)
    if as_json:
        print_json(summary)
    elif not summary["decisions"]:
        sys.stdout.write(f"{_none(role, since, asking)}\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(summary)))


def _since_ms(since: str | None) -> int | None:
    try:
        return milliseconds(since)
    except InputError as error:
        raise InputError(
            error.problem, where="--since", value=error.value, remedy=error.remedy
        ) from error


def _none(role: str | None, since: str | None, asking: Sequence[str]) -> str:
    """Say that there is no decision, or none of those asked for."""
    if not asking:
        return "No decision was logged. The service logs what it is asked: compactuary serve."
    of = "" if role is None else f" for role {role}"
    later = "" if since is None else f" since {since}"
    return f"No decision{of}{later}; known roles: {', '.join(asking)}."


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    latest = "the latest " if summary["truncated"] else ""
    yield f"{latest}{_many(summary['decisions'], 'decision')}, {summary['from']} to {summary['to']}"
    yield (
        f"{summary['judged']:,} are judged, {summary['ended']:,} by a turn that has ended"
        f"{_left_out(summary['not_judged'])}"
    )
    yield from _worth(summary)
    yield ""
    yield f"{'m(i)':24} {'unit':10} {'judged':>7} {'said':>7} {'was':>7} {'ratio':>6}"
    for row in summary["by_role"]:
        yield _remaining(row)
    yield ""
    yield f"{'P(pays)':10} {'said':>6} {'was':>6} {'90% interval':>14} {'decisions':>10} {'cut':>6}"
    for tenth in summary["probability_deciles"]:
        paid = tenth["paid"]
        span = f"{tenth['lowest']:.1f}–{tenth['highest']:.1f}"
        interval = "" if paid["lower"] is None else f"{paid['lower']:.0%}–{paid['upper']:.0%}"
        yield (
            f"{span:10} {tenth['probability']:>6.0%} {_percent(paid['share']):>6} {interval:>14} "
            f"{paid['decisions']:>10,} {paid['undecided']:>6,}"
        )


_WHY = {
    "no_turn_id": "without a turn id",
    "unknown_turn": "of turns that are not in the ledger",
    "between_turns": "between turns",
    "contradicted": "that the turn contradicts",
    "asked_again": "asked again",
}


def _left_out(counts: Mapping[str, int]) -> str:
    told = [f"{count:,} {_WHY[why]}" for why, count in counts.items() if count]
    return f"; not judged: {', '.join(told)}" if told else ""


def _worth(summary: Mapping[str, Any]) -> Iterator[str]:
    advice, wait = summary["compact"], summary["wait"]
    forced = f" ({advice['forced']:,} more by the hard limit)" if advice["forced"] else ""
    told = (
        f"; paid in {_share(advice['paid'])}; net {advice['net_tokens']:+,.0f} base tokens over "
        f"{advice['ended']:,} that ended"
    )
    yield f"compact: {_many(advice['turns'], 'turn')}{forced}{told if advice['turns'] else ''}"
    would = _share(wait["would_have_paid"])
    told = f"; compacting would have paid in {would}" if wait["decisions"] else ""
    yield f"wait: {_many(wait['decisions'], 'decision')}{told}"


def _share(paid: Mapping[str, Any]) -> str:
    if paid["share"] is None:
        return "an unknown share"
    return f"{paid['share']:.0%} [{paid['lower']:.0%}, {paid['upper']:.0%}]"


def _remaining(row: Mapping[str, Any]) -> str:
    head = f"{row['role']:24} {row['unit']:10} {row['judged']:>7,}"
    told = row["remaining"]
    if told is None:
        return f"{head} {'–':>7} {'–':>7} {'–':>6}"
    ratio = _number(told["ratio"], ".2f")
    interval = "" if told["ratio"] is None else f" [{told['lower']:.2f}, {told['upper']:.2f}]"
    said, was = _number(told["expected"], ".1f"), _number(told["observed"], ".1f")
    return f"{head} {said:>7} {was:>7} {ratio:>6}{interval}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _percent(share: float | None) -> str:
    return _number(share, ".0%")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
