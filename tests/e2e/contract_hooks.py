"""What schemathesis can't know by itself: how a stream of events is sent."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
