#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
#
# How far our patches are from the next release of QEMU, if Debian's archive has it. It fails only
# when it cannot tell.
set -uo pipefail
root=${VPMU_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
exec "$root/tests/upstream" --next
