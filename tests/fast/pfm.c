// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Prints libpfm4's tables of a core PMU's events, for tests/fast/models.py --update-pfm:
 * PMU, event, unit mask's name or "-", event select, unit mask, counters or "-" where
 * they are not in the tables. Needs libpfm4's source: its library does not report the
 * counters. Compiled once for each vendor, since macros of one header spoil the other.
 */
#include <stdio.h>

#include "pfmlib_priv.h"
#ifdef INTEL
#include "pfmlib_intel_x86_priv.h"
#include "events/intel_atom_events.h"
#include "events/intel_bdw_events.h"
#include "events/intel_core_events.h"
#include "events/intel_coreduo_events.h"
#include "events/intel_glm_events.h"
#include "events/intel_hsw_events.h"
#include "events/intel_icl_events.h"
#include "events/intel_ivb_events.h"
#include "events/intel_knl_events.h"
#include "events/intel_nhm_events.h"
#include "events/intel_skl_events.h"
#include "events/intel_snb_events.h"
#include "events/intel_spr_events.h"
#include "events/intel_tmt_events.h"
#include "events/intel_wsm_events.h"

static void print(const char *pmu, const intel_x86_entry_t *e, size_t n)
{
	for (; n--; e++) {
		if (!e->numasks)
			printf("%s\t%s\t-\t%02x\t%02x\t%02x\n", pmu, e->name, e->code & 0xff,
			       e->code >> 8 & 0xff, (unsigned int)e->cntmsk & 0xff);
		for (unsigned int i = 0; i < e->numasks; i++) {
			const intel_x86_umask_t *u = &e->umasks[i];

			printf("%s\t%s\t%s\t%02x\t%02x\t%02x\n", pmu, e->name, u->uname,
			       (unsigned int)(u->uflags & INTEL_X86_CODE_OVERRIDE ? u->ucode
										 : e->code) & 0xff,
			       (unsigned int)((e->code | u->ucode) >> 8) & 0xff,
			       (unsigned int)(u->ucntmsk ? u->ucntmsk : e->cntmsk) & 0xff);
		}
	}
}

#define TABLE(pmu)	print(#pmu, intel_##pmu##_pe, LIBPFM_ARRAY_SIZE(intel_##pmu##_pe))

int main(void)
{
	TABLE(atom);
	TABLE(bdw);
	TABLE(core);
	TABLE(coreduo);
	TABLE(glm);
	TABLE(hsw);
	TABLE(icl);
	TABLE(ivb);
	TABLE(knl);
	TABLE(nhm);
	TABLE(skl);
	TABLE(snb);
	TABLE(spr);
	TABLE(tmt);
	TABLE(wsm);
	return 0;
}
#else
#include "pfmlib_amd64_priv.h"
#include "events/amd64_events_fam17h_zen2.h"
#include "events/amd64_events_fam19h_zen3.h"
#include "events/amd64_events_fam19h_zen4.h"

static void print(const char *pmu, const amd64_entry_t *e, size_t n)
{
	for (; n--; e++) {
		if (!e->numasks)
			printf("%s\t%s\t-\t%03x\t00\t-\n", pmu, e->name, e->code);
		for (unsigned int i = 0; i < e->numasks; i++)
			printf("%s\t%s\t%s\t%03x\t%02x\t-\n", pmu, e->name, e->umasks[i].uname,
			       e->code, e->umasks[i].ucode);
	}
}

#define TABLE(pmu)	print(#pmu, amd64_##pmu##_pe, LIBPFM_ARRAY_SIZE(amd64_##pmu##_pe))

int main(void)
{
	TABLE(fam17h_zen2);
	TABLE(fam19h_zen3);
	TABLE(fam19h_zen4);
	return 0;
}
#endif
