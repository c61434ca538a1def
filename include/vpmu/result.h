/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Results of a guest's access, and the reason of a refused configuration. */
#ifndef VPMU_RESULT_H
#define VPMU_RESULT_H

#include <vpmu/platform.h>

/* The outcome of a guest's access. Host errors are negative errno values instead. */
enum vpmu_result {
	VPMU_HANDLED,  /* done */
	VPMU_NOT_MINE, /* not a register of this PMU: the embedder's own rule applies */
	VPMU_FAULT,    /* the guest gets #GP(0); nothing has changed */
};

/*
 * The reason why a configuration was refused. The core formats no text: an
 * embedder prints "WHAT: asked ASKED, available AVAILABLE".
 */
struct vpmu_error {
	const char *what;   /* static string: the field and the limiting part, never NULL */
	uint64_t asked;     /* value that was requested */
	uint64_t available; /* largest value, or mask of bits, that is possible */
};

#endif /* VPMU_RESULT_H */
