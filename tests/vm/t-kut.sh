#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1800
# alone
#
# kvm-unit-tests' PMU test under each policy, where KUT names a checkout.
exec "$(dirname "$(readlink -f "$0")")/../kut" "${KUT:-}"
