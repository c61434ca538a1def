#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# A server and its client, which talk over the loopback of the guest that both run in:
#
#   vpmu run --repeat -- perf stat -e instructions:u,instructions:k examples/server.sh
python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &
server=$!
python3 - "$0" <<'PROGRAM'
import sys, time, urllib.parse, urllib.request

for tries_left in range(300, -1, -1):
    try:
        got = urllib.request.urlopen("http://127.0.0.1:8000/" + urllib.parse.quote(sys.argv[1])).read()
        break
    except OSError:
        if not tries_left:
            raise
        time.sleep(0.1)
print(len(got), "bytes served" if got == open(sys.argv[1], "rb").read() else "wrong bytes served")
PROGRAM
status=$?
kill $server
wait $server 2>/dev/null
exit $status
