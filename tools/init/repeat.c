// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A guest whose runs repeat. All that comes from outside comes at an instruction that it
 * chooses itself: it stops its virtual machine, which is saved or continued meanwhile, and
 * then reads its job, instruction by instruction.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

#include "init.h"

/* QEMU's docs/specs/fw_cfg.rst */
#define FW_CFG_SELECT	0x510
#define FW_CFG_DATA	0x511
#define FW_CFG_DIR	0x19

struct fw_cfg_file {
	uint32_t size;		/* this and the next one are big-endian */
	uint16_t select;
	uint16_t reserved;
	char name[56];
};

static void select_item(uint16_t item)
{
	outw(item, FW_CFG_SELECT);
}

/* As insb(), which does not tell the compiler that it writes to memory. */
static void read_bytes(void *to, size_t len)
{
	__asm__ volatile("cld; rep insb" : "+D"(to), "+c"(len)
			 : "d"((uint16_t)FW_CFG_DATA) : "memory");
}

/* Select the job's file. Returns its size in bytes, or 0. */
static size_t select_job(void)
{
	struct fw_cfg_file file = { 0 };
	uint32_t count = 0;

	select_item(FW_CFG_DIR);
	read_bytes(&count, sizeof(count));
	for (count = be32toh(count); count; count--) {
		read_bytes(&file, sizeof(file));
		if (strncmp(file.name, CHANNEL_JOB_FILE, sizeof(file.name)))
			continue;
		select_item(be16toh(file.select));
		return be32toh(file.size);
	}
	return 0;
}

void *repeat_job(size_t *len)
{
	void *job;

	if (ioperm(CHANNEL_STOP_PORT, 1, 1) || ioperm(FW_CFG_SELECT, 2, 1))
		die("this kernel lets no program reach I/O ports, by which the job comes: %m");
	outb(CHANNEL_STOP, CHANNEL_STOP_PORT);
	*len = select_job();
	/* It is read in as many instructions, wherever it lies in memory. */
	job = *len ? aligned_alloc(4096, (*len + 8 + 4095) & ~4095ul) : NULL;
	if (!job)
		die("no job in " CHANNEL_JOB_FILE);
	read_bytes(job, *len);
	ioperm(CHANNEL_STOP_PORT, 1, 0);
	ioperm(FW_CFG_SELECT, 2, 0);
	return job;
}
