// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu check: what works here, and what would make the rest work. */
#include "vpmu.h"

int verb_check(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}
