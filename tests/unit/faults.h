/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An embedder and a provider of which one call fails: each hook and each function that
 * can fail is counted, and the one with the number wanted does nothing but fail.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <vpmu/ops.h>
#include <vpmu/provider.h>

struct faults {
	uint32_t at;     /* number of the call that fails, from 1; 0: none */
	bool on;         /* each later call fails too */
	int code;        /* result of create, a negative errno */
	uint32_t n;      /* calls so far */
	const char *hit[16]; /* those that failed, by name, the first first */
};

extern struct faults faults;

/* Has a call of that name failed? Has any other than that? */
bool faults_hit(const char *name);
bool faults_hit_other(const char *name);

/* Every event that there is stops counting, goes into ERROR and says so. */
void faults_die(void);

/* From now on; what is there is kept and called. All of a test have the same hooks. */
void faults_ops(struct vpmu_ops *ops);
void faults_provider(struct vpmu_provider *p);

#endif /* FAULTS_H */
