/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* For C++: every public header, with C's linkage. */
#ifndef VPMU_VPMU_HPP
#define VPMU_VPMU_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {
#include <vpmu/arch.h>
#include <vpmu/direct.h>
#include <vpmu/perf.h>
#include <vpmu/pv.h>
#include <vpmu/spec.h>
#include <vpmu/state.h>
#include <vpmu/uarch.h>
#include <vpmu/vcpu.h>
}

#endif /* VPMU_VPMU_HPP */
