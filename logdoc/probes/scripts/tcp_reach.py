"""Opens one TCP connection and closes it at once. Usage: python - HOST PORT SECONDS. Prints one line of JSON."""

from __future__ import annotations

import json
import socket
import sys
import time


def main() -> None:
    host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    began = time.monotonic()
    result: dict[str, object] = {"tcp": True, "ok": False, "error": "", "address": ""}
    try:
        with socket.create_connection((host, port), timeout=seconds) as connection:
            result.update(ok=True, address=str(connection.getpeername()[0]))
    except socket.gaierror as error:
        result["error"] = "the name does not resolve: " + str(error.strerror)
    except socket.timeout:  # noqa: UP041 - another class before Python 3.10
        result["error"] = f"no answer within {seconds:g} s: packets are dropped (firewall) or the address is wrong"
    except OSError as error:
        result["error"] = str(error.strerror or error)
    result["seconds"] = round(time.monotonic() - began, 3)
    sys.stdout.write(json.dumps(result) + "\n")


main()
