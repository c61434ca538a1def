#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A saved guest whose PMU's state is cut off, or damaged: QEMU refuses it, and says so.

spoiled.py FILE QEMU OPTION...   FILE is what QEMU's migration wrote. Each spoilt copy is
given to a QEMU of its own, which lives on whatever is in it.
"""
import random, subprocess, sys, tempfile

import qmp


def case(name, why):
    print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)


def load(args, path):
    """The outcome of loading: "completed" or "failed"; what QEMU says, which from 10.2 on is in
    the answer alone where the stream ends; its status."""
    qemu = subprocess.Popen(args + ["-incoming", "defer", "-qmp", "stdio"], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(command, **arguments):
        try:
            return qmp.ask(qemu.stdout, qemu.stdin, command, arguments)
        except qmp.Gone:
            raise SystemExit(f"{command}: QEMU has ended: {qemu.stderr.read().strip()}") from None
        except qmp.Refused as e:
            raise SystemExit(f"{command}: {e}") from None

    ask("qmp_capabilities")
    ask("migrate-incoming", uri=f"file:{path}", **{"exit-on-error": False})
    while True:
        answer = ask("query-migrate")
        found = answer.get("status")
        if found in ("completed", "failed"):
            break
    ask("x-query-vpmu")
    ask("quit")
    said = qemu.stderr.read() + answer.get("error-desc", "")
    return found, said, qemu.wait(60)


def main():
    args, chance = sys.argv[2:], random.Random(1)
    with open(sys.argv[1], "rb") as f:
        whole = f.read()
    at = whole.find(b"VPMU\1\0\0\0")
    total = int.from_bytes(whole[at + 8:at + 12], "little")
    wrong = ""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/spoilt"

        def spoilt(data):
            with open(path, "wb") as f:
                f.write(data)
            return load(args, path)

        found, said, status = spoilt(whole)
        case("spoilt/as it was", "" if at > 0 and (found, said, status) == ("completed", "", 0)
             else f"{found}, {said}, status {status}")
        # The stream ends there: its source was killed, or a disk was full.
        for end in [at - 1, at, at + 1, at + 15, at + 16] + [chance.randrange(at, at + total)
                                                            for _ in range(5)]:
            found, said, status = spoilt(whole[:end])
            if found != "failed" or status != 0 or not said:
                wrong = f"{end - at} bytes of it: {found}, {said}, status {status}"
        case("spoilt/cut off", wrong)
        # Its header, and that of its first section, which is mandatory.
        wrong = ""
        for where, value in ((0, 0), (4, 2), (8, 1), (12, 99), (16, 200), (20, 99), (24, 0xff)):
            data = bytearray(whole)
            data[at + where] = value
            found, said, status = spoilt(data)
            if found != "failed" or status != 0 or "vpmu: " not in said:
                wrong = f"byte {where} is {value}: {found}, {said}, status {status}"
        case("spoilt/header", wrong)
        # Anywhere: what is loaded nevertheless is what a guest could have had.
        wrong, failed = "", 0
        for _ in range(20):
            data = bytearray(whole)
            for _ in range(4):
                data[at + chance.randrange(32, total)] = chance.randrange(256)
            found, said, status = spoilt(data)
            failed += found == "failed"
            if status != 0 or (found == "failed") != ("vpmu: " in said):
                wrong = f"{found}, {said}, status {status}"
        case("spoilt/anywhere", wrong or ("" if failed > 3 else f"{failed} of 20 are refused"))


main()
