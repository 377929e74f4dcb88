"""The last word on everything that a reader told of."""

from dataclasses import dataclass

from ledger.events import AgentTold, CompactionMade, RequestMade, TurnReached, TurnStarted


@dataclass
class Told:
    """Events by what they are about; of an event told twice, the last one."""

    events: list

    def last(self, kind, key):
        return {getattr(event, key): event for event in self.events if isinstance(event, kind)}

    @property
    def started(self):
        return self.last(TurnStarted, "turn_id")

    @property
    def reached(self):
        return self.last(TurnReached, "turn_id")

    @property
    def requests(self):
        return self.last(RequestMade, "request_id")

    @property
    def compactions(self):
        return self.last(CompactionMade, "compaction_id")

    @property
    def agents(self):
        return [event for event in self.events if isinstance(event, AgentTold)]

    @property
    def turns(self):
        """``turn_id: (role, status, reason, requests, tool calls)``, the larger of the counts."""
        found = {}
        for turn_id, started in self.started.items():
            reached = self.reached[turn_id]
            own = [made for made in self.requests.values() if made.turn_id == turn_id]
            calls = sum(len(made.tool_calls) + made.unnamed_tool_calls for made in own)
            found[turn_id] = (
                started.role,
                reached.status,
                reached.reason,
                max(len(own), reached.requests or 0),
                max(calls, reached.tool_calls or 0),
            )
        return found

    @property
    def only_turn(self):
        (turn,) = self.turns.values()
        return turn
