"""A proxy before the service that does wrong on demand: ``python fault_proxy.py PORT MODE_FILE``.

It runs in a process of its own, so that it takes no time from the client whose time is measured.
The first line of the mode file says what becomes of a request:

- ``pass``: it is passed on, and its answer back;
- ``swallow``: it is passed on, and the connection closes instead of an answer;
- ``slow``: passed on after five seconds, and its answer back; ``drip``: a byte every 20 ms;
- ``silent``: nothing ever comes;
- ``garbage``, ``html``, ``half``, ``close``, ``500``, ``503``, ``endless``: at once, as they say.
"""

import asyncio
import sys
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 23\r\n\r\n"
BODY = b'{"decision": "compact"}'
FAILED = b"HTTP/1.1 %s Failed\r\nContent-Length: 2\r\n\r\n{}"
AT_ONCE = {
    "garbage": b"\x16\x03\x01 this is some other protocol\r\n\r\n",
    "html": b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>",
    "half": ANSWER + BODY[:10],
    "close": b"",
    "500": FAILED % b"500",
    "503": FAILED % b"503",
}


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """Return a whole request or answer; its length is told, or it comes in chunks."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line.split(b":")[1]))
        if line == b"transfer-encoding: chunked":
            return head + await reader.readuntil(b"\r\n0\r\n\r\n")
    return head


async def serve(reader, writer, port: int, mode_file: Path) -> None:
    try:
        while True:
            request = await read_message(reader)
            mode = mode_file.read_text().strip()
            if not await answer(request, writer, mode, port):
                return
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def answer(request: bytes, writer, mode: str, port: int) -> bool:
    """Answer by the mode; return whether the connection goes on."""
    if mode == "slow":
        await asyncio.sleep(5)
    if mode in ("pass", "slow", "swallow"):
        upstream, to_upstream = await asyncio.open_connection("127.0.0.1", port)
        to_upstream.write(request)
        reply = await read_message(upstream)
        to_upstream.close()
        if mode != "swallow":
            writer.write(reply)
        return mode != "swallow"
    if mode == "silent":
        await asyncio.sleep(3600)
    while mode == "endless":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        await writer.drain()
        await asyncio.sleep(0.005)
    if mode == "drip":
        for byte in ANSWER + BODY:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)
        return True
    writer.write(AT_ONCE[mode])
    await writer.drain()
    return mode in ("html", "500", "503")


async def main(port: int, mode_file: Path) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: serve(reader, writer, port, mode_file), "127.0.0.1", 0
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
