# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""QEMU's QMP, over two files: of a socket both are the same."""
import json


class Gone(Exception):
    """QEMU has ended, or closed the monitor."""


class Refused(Exception):
    """QEMU's answer to a command that it refuses."""


def ask(reader, writer, command, arguments):
    """The return value of a command; events are skipped."""
    try:
        writer.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        writer.flush()
        while True:
            line = reader.readline()
            if not line.endswith("\n"):
                raise Gone
            reply = json.loads(line)
            if "error" in reply:
                raise Refused(reply["error"]["desc"])
            if "return" in reply:
                return reply["return"]
    except (BrokenPipeError, ConnectionResetError):
        raise Gone from None
