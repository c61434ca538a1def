/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The guest's first process: declarations that its files share. */
#ifndef VPMU_INIT_H
#define VPMU_INIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../channel.h"

/* A received job, parsed. Pointers are into the message. */
struct job {
	char **argv, **envp;
	const char *cwd;
	const uint32_t *ids;		/* uid, gid, groups */
	size_t n_ids;			/* at least 2 */
	const struct channel_tty *tty;	/* NULL: pipes only */
	const void *items;		/* all items, for those that occur repeatedly */
	size_t len;
};

/* The command and the ends of its streams that we hold; -1 is closed. */
struct task {
	pid_t leader;		/* leads the session, waits for the command */
	pid_t pgid;		/* the command's process group */
	int in, out, err;	/* in may be the same terminal as out */
	int terminal;		/* master of the pseudo-terminal, or -1 */
	int slave;		/* keeps the terminal from hanging up, or -1 */
	int report;		/* struct task_report from the leader */
};

struct task_report {
	int32_t kind;		/* enum task_report_kind */
	int32_t value;
};

enum task_report_kind {
	TASK_STARTED,		/* value: the command's pid and group */
	TASK_NOEXEC,		/* value: errno */
	TASK_STATUS,		/* value: as waitpid(2) reports it */
};

/* say.c */
void say_on(int port);	/* messages go there; before that to the kernel's log */
void wait_fd(int fd, short events);
void send_message(uint32_t type, const void *payload, size_t len);
void die(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
int write_file(const char *path, const char *text);

/* job.c */
int job_parse(struct job *job, void *payload, size_t len);
/* The next item with @tag after @item (NULL: the first), or NULL. */
const struct channel_item *job_item(const struct job *job, uint32_t tag,
				    const struct channel_item *item);

/* repeat.c */
/*
 * Stop the virtual machine here, if its run repeats, and read the job when it goes on. Returns
 * its payload, to be freed, and its length in @len.
 */
void *repeat_job(size_t *len);

/* boot.c: the part of the boot that is the same for every job */
void boot_mount(void);
void boot_modules(void);
/*
 * Load the paravirtual PMU's driver, if there is one; report the failure if it does not
 * load.
 */
void boot_driver(void);
int boot_port(const char *name);
/* Does the kernel's command line have this word? */
bool boot_option(const char *option);
/* Load the kernel's KVM for this CPU; any user may open /dev/kvm. */
void boot_kvm(void);
/* Configure the network card for QEMU's network of the user. */
void boot_network(void);
bool boot_missed_network(void);	/* a program has asked for an address elsewhere */

/* fs.c */
void fs_prepare(void);
void fs_enter(const struct job *job);
bool fs_overlay_full(void);
bool fs_out_of_memory(void);
/*
 * Write the shares out. They have no users left, so unmounting them later writes nothing
 * more. Returns false if that failed.
 */
bool fs_leave(void);

/* task.c */
void task_start(struct task *task, const struct job *job);

#endif
