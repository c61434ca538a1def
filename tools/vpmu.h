/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The vpmu command: declarations that its files share. */
#ifndef VPMU_TOOLS_VPMU_H
#define VPMU_TOOLS_VPMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "channel.h"

/*
 * Exit statuses of vpmu's own, those of env(1) and timeout(1). The verbs that run a user's
 * command never end with 77, which may be the command's.
 */
enum vpmu_exit {
	EXIT_SKIP = 77,		/* check, kvm, lost: cannot run on this machine */
	EXIT_VPMU = 125,	/* vpmu itself failed */
	EXIT_NOEXEC = 126,	/* the command cannot be executed */
	EXIT_NOTFOUND = 127,	/* the command does not exist */
};

/* ---- verbs; each returns the exit status */
int verb_run(int argc, char **argv);
/* Does vpmu run take the option that @text ("--uarch on") begins with? */
bool run_has_option(const char *text);
/* Translate --uarch on|user|off, with parameters, for QEMU; NULL: off. */
char *uarch_option(const char *text);
int verb_qemu(int argc, char **argv);
int verb_check(int argc, char **argv);
int verb_list(int argc, char **argv);
int verb_contention(int argc, char **argv);
int verb_timeline(int argc, char **argv);
int verb_flame(int argc, char **argv);
int verb_decode(int argc, char **argv);
int verb_bench(int argc, char **argv);
int verb_compare(int argc, char **argv);
int verb_lost(int argc, char **argv);
int verb_kvm(int argc, char **argv);

/* ---- say.c: messages, on standard error or in the file of -o */
extern FILE *say_to;
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
int say_open(const char *path);

/* ---- buffer.c: a growing array of bytes; out of memory ends the program */
struct buffer {
	char *data;
	size_t len, cap;
};
void buffer_add(struct buffer *b, const void *data, size_t len);
void buffer_string(struct buffer *b, const char *text);
void buffer_print(struct buffer *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void buffer_drop(struct buffer *b, size_t len);	/* from the front */
void buffer_free(struct buffer *b);
void *xalloc(size_t size);
char *xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- options.c: long and short options from a table */
struct option_def {
	const char *name;	/* without the dashes; NULL ends the table */
	char letter;		/* 0: none */
	/*
	 * Placeholder of the argument in the help; NULL: none; a trailing "..." means
	 * repeatable; "[=PORT]" may be left out, which stores "".
	 */
	const char *arg;
	const char *help;
	void *to;		/* bool *, without arg; const char **, with;
				 * struct strings *, repeated */
};
struct strings {
	const char **list;
	size_t n;
};
/*
 * Store the options' values and return the index of the first other argument. --help
 * prints @usage and the table and exits; an unknown option names the nearest one and
 * exits with 125.
 */
int options_parse(int argc, char **argv, const struct option_def *defs,
		  const char *usage);
long option_number(const char *name, const char *text, long min, long max);
/* A number of bytes, with a suffix K, M, G or T; M without one. */
uint64_t option_size(const char *name, const char *text);
/* The candidate that @word is most like, or NULL. @next yields or NULL. */
const char *nearest(const char *word, const char *const *candidates);

/* ---- paths.c: paths of files */
const char *cache_dir(void);		/* fails with the cure */
void cache_make(void);		/* create it, with the directories above */
struct stat;
/* True if it belongs to the caller or root, and only its owner can write it. */
bool only_ours(const struct stat *s);
char *installed_beside(const char *name);	/* in the prefix of this program */
const char *source_file(const char *name, char **out);
/*
 * True if @text, from a file, can be a component of a path; like check_name in cache.sh.
 */
bool is_name(const char *text);
bool runs(const char *path);		/* an executable file */
/* A running program whose output is read. */
struct script {
	pid_t pid;		/* 0: none */
	int out;		/* its standard output */
};
void script_start(struct script *script, char *const *argv);
/*
 * Wait for it. Returns its status, and its standard output in @out without the last
 * newline.
 */
int script_end(struct script *script, struct buffer *out);
int run_script(char *const *argv, struct buffer *out); /* script_start() and script_end() in one */

/* ---- kernel.c */
struct kernel {
	char *dir;		/* in the cache */
	char *vmlinux;
	char *release;
	bool bundled;		/* @dir is in a bundle, and nothing makes it again */
};
/*
 * @which: NULL, a suite with or without a flavour, a release, or a file; may fetch.
 * Fails with the cure.
 */
void kernel_find(struct kernel *kernel, const char *which, const char *modules);
/* As above, but only what is cached; returns false when nothing is. */
bool kernel_cached(struct kernel *kernel, const char *which);
/*
 * As kernel_find(), but fetches nothing. What is not cached has no @release, and its @dir
 * and @vmlinux are where they would be.
 */
void kernel_find_dry(struct kernel *kernel, const char *which, const char *modules);
/*
 * vpmu_guest.ko for this kernel, a new string; may fetch headers and build. Fails
 * with the cure; with @cached, which does neither, it returns NULL.
 */
char *kernel_driver(const struct kernel *kernel, bool cached);
/*
 * Create a file with the guest's initramfs; returns its descriptor. @driver may be NULL.
 */
int kernel_initramfs(const struct kernel *kernel, const char *driver);
/* Keep it in a file, unless the kernel is not there yet. Returns the file's path, a new string. */
char *kernel_initramfs_file(const struct kernel *kernel, const char *driver);

/* ---- perf.c */
struct perf {
	char *path;		/* the one that works, or NULL */
	char *over;		/* perf that would be found first and does not work, or NULL */
	bool first;		/* its directory is to be the first of PATH, not the last */
};
void perf_find(struct perf *perf);
#define PERF_CURE	"apt-get install linux-perf (on Ubuntu linux-tools-generic)"

/* ---- qemu.c */
struct qemu {
	char *binary;
	char *firmware;		/* for -L, or NULL */
	bool patched;		/* ours, so it has a PMU */
	bool sandbox;		/* it can confine itself by seccomp */
	struct script look;	/* a running script that finds it; see qemu_look() */
};
/*
 * Find our QEMU. May build it, unless @cached; returns false if @cached and there is
 * none.
 */
bool qemu_find(struct qemu *qemu, bool cached);
/* qemu_find() in two halves: the script runs in between. */
void qemu_look(struct qemu *qemu);
bool qemu_found(struct qemu *qemu, bool cached);
/* Fails with the cure where @qemu cannot run a guest on /dev/kvm. */
void qemu_need_kvm(const struct qemu *qemu);

/* ---- kvm.c */

/* Is the host's module there, for this user? */
bool kvm_module_there(void);
/*
 * Have it give the stopped guest of process @pid an architectural PMU. Returns which one
 * as a new string, or NULL with the reason in @error as a new string.
 */
char *kvm_give_arch(pid_t pid, char **error);

/* lend.c */

/* The vCPUs of QEMU's process whose threads can be lent events, or NULL; to be freed. */
struct vcpus *lend_find(pid_t pid);

/* Lends each of them what counts topdown metrics; says so when that fails. */
void lend_all(struct vcpus *v, int device, int vm);

/* ---- memory.c */
/* Bytes that a guest may take before the kernel kills, and in @whose what bounds them. */
uint64_t memory_there(const char **whose);
uint64_t memory_kills(void);	/* processes that the kernel has killed for memory */

/* ---- metrics.c */

/*
 * Print the module's statistics, or replace the file @output by them; @from: a copy of its
 * debugfs file, or NULL. Returns the exit status.
 */
int kvm_metrics(const char *from, const char *output);

/* ---- shares.c: directories of this machine that the guest may write */
struct share {
	const char *path;	/* its place in the guest */
	const char *from;	/* its place on this machine */
	int fd;			/* the directory; negative: QEMU opens @from */
};
struct shares {
	const char *cwd;	/* directory of the command in the guest */
	/* None is in another one. The current directory is the first, if it is shared itself. */
	struct share list[CHANNEL_SHARES];
	size_t n;
};
/*
 * Choose the current directory, at @as in the guest unless that is NULL, and @dirs. Says so
 * if the former cannot be shared; fails with the cure if another one cannot.
 */
void shares_choose(struct shares *shares, const struct strings *dirs, const char *as);
/* Is @path in one of them, by its name or by where links lead it? */
bool shares_hold(const struct shares *shares, const char *path);
/* The guest has trees of its own in place of these. */
bool of_kernel(const char *path);

struct machine {
	bool kvm;		/* runs on /dev/kvm, with the PMU that KVM gives */
	const char *cpu;	/* name that the user typed */
	const char *pmu;	/* the user's choice: arch, pv, both or none */
	bool arch;		/* has the architectural PMU */
	bool asks;		/* asks the host's module for the architectural PMU */
	const char *pv;		/* versions of the paravirtual PMU, in QEMU's form; NULL: none */
	const char *append;	/* for the kernel, or NULL */
	struct shares shares;	/* directories that it may write */
	const char *policy;	/* direct, shared or mediated; NULL: QEMU's default */
	const char *filter;	/* events that count, or NULL */
	/*
	 * Parameters of the micro-architectural model in QEMU's form, or ""; NULL: no
	 * model.
	 */
	const char *uarch;
	const char *console;	/* file for the kernel's log, or NULL */
	const char *qmp;	/* path of a Unix socket for the user's monitor, or NULL */
	unsigned int gdb;	/* port on which the guest waits for a debugger; 0: none */
	struct strings qemu_args;	/* the user's own, after ours */
	unsigned int smp;
	uint64_t memory_bytes;
	bool trace;
	bool nested;		/* runs guests of its own */
	bool network;		/* reaches what its user reaches */
	bool repeat;		/* its runs repeat */
	unsigned int seed;	/* selects what is random in a run that repeats */
	bool paused;		/* waits for the monitor's cont, or for a debugger's */
	bool verbose;
};

/* The ends that QEMU gets. */
enum port {
	PORT_CONTROL, PORT_STDIN, PORT_STDOUT, PORT_STDERR,
	PORT_QMP, PORT_CONSOLE,
	PORTS,
};
struct qemu_fds {
	int port[PORTS];
	int initrd, trace;
	int job;		/* with machine.repeat: the job, in a file */
	/*
	 * The initramfs of a guest that vpmu does not serve, or NULL. Such a guest takes its job
	 * from standard input, its command's exit status goes to descriptor 6, and the kernel's
	 * log to standard error, too.
	 */
	const char *alone;
};

/* A NULL-ended argument vector. @snapshot: the one to start from, or NULL. */
char **qemu_command(const struct qemu *qemu, const struct kernel *kernel,
		    const struct machine *machine, const struct qemu_fds *fds,
		    const char *snapshot);
const char *qemu_cpu(const char *name);	/* the model behind an alias */

struct qmp;

/* ---- guest.c: a guest that waits for a job */
struct guest {
	pid_t pid;		/* process of QEMU */
	int port[PORTS];	/* our ends */
	int errors;		/* QEMU's standard error */
	uint64_t started_ns;
	struct qmp *qmp;
	const char *keep;	/* path to save the booted guest at, or NULL */
	bool restored;		/* restored from a snapshot, and waits */
	char *from;		/* the snapshot that it was restored from, or NULL */
	bool debugged;		/* a debugger may stop it for any time */
	bool repeats;		/* it has its job, and gets no message of ours */
};
void guest_start(struct guest *guest, char **argv, const struct qemu_fds *fds,
		 const struct shares *shares);
void guest_stop(struct guest *guest);
/* Let QEMU end by itself, for up to @ms. */
void guest_wait(struct guest *guest, int ms);
void guest_ports(struct guest *guest, struct qemu_fds *fds);

/* ---- job.c: the caller's own state as a message */
struct job_extra {
	const struct shares *shares;
	const struct perf *perf;
	const struct kernel *kernel;
	bool root, nested, network;
	bool repeat;		/* the run repeats: it takes little of the caller's state */
	bool alone;		/* its guest is not served, and may run later */
	const struct strings *env;	/* NAME or NAME=VALUE: its environment, too */
	uint32_t tty;		/* enum channel_tty_flags */
};
void job_message(struct buffer *out, char **command, const struct job_extra *extra);
/*
 * Add what is known only when the job is sent: the time, and the identity and randomness
 * by which guests of one snapshot differ.
 */
void job_moment(struct buffer *out);
/*
 * A run that repeats gets standard input to its end, and a fixed date and seed, in its place;
 * @alone: no input.
 */
void job_same_moment(struct buffer *out, unsigned int seed, bool alone);
/* A guest that may run later gets no input, and has a date and randomness of its own. */
void job_alone(struct buffer *out);
/* A file with @job for struct qemu_fds; returns its descriptor. */
int job_file(const struct buffer *job);
/* The guest's date at the start, in QEMU's form: a file's time is not later. */
#define REPEAT_DATE	"2030-01-01T00:00:00"
#define REPEAT_TIME	1893456000

/* ---- dry.c */
/*
 * Print a command for sh that boots such a guest, without vpmu, and has it do @job; NULL: it is
 * not known. @without: options of vpmu run that it does not have, or "". Returns the exit status.
 */
int dry_print(const struct qemu *qemu, const struct kernel *kernel, const struct machine *machine,
	      const char *driver, const struct buffer *job, const char *without);

/* ---- qmp.c */
struct qmp {
	int fd;
	struct buffer in;
	int64_t calls;		/* made so far; the last call's id */
};
/* A loaded machine may leave QEMU without a CPU for seconds. */
#define QMP_PATIENCE_MS	30000
void qmp_start(struct qmp *qmp, int fd);
/*
 * Returns the reply's "return" as a new reference; or NULL, with the reason in @error as
 * a new string. Takes the reference to @arguments, which may be NULL.
 */
struct json_t *qmp_call(struct qmp *qmp, const char *command, struct json_t *arguments,
			int timeout_ms, char **error);
/* A call without arguments, for questions that may remain without an answer. */
struct json_t *qmp_ask(struct qmp *qmp, const char *command, int timeout_ms);
enum qmp_stop {
	QMP_RUNS,
	QMP_KVM_FAILED,		/* KVM could not execute an instruction of the guest */
	QMP_STOPPED_ITSELF,	/* the guest has written to CHANNEL_STOP_PORT */
};
/* Take the events that have arrived, without waiting; has the guest stopped for good? */
enum qmp_stop qmp_stopped(struct qmp *qmp);

/* ---- snapshot.c: guests that have booted */
/*
 * Path of the snapshot of such a guest, whether it exists or not; @initrd: its initramfs.
 * A new string.
 */
char *snapshot_path(const struct qemu *qemu, const struct kernel *kernel,
		    const struct machine *machine, int initrd);
/*
 * Save a guest that waits for its first job, and continue it. A failure to save is no
 * error. Returns false if the guest does not continue.
 */
bool snapshot_save(struct qmp *qmp, const char *path);
/*
 * Wait until a guest has stopped itself, and save it. Returns false if either fails; it is
 * not continued.
 */
bool snapshot_take(struct qmp *qmp, const char *path);
/* Wait until a guest has stopped itself; false: it does not. */
bool snapshot_stopped(struct qmp *qmp);
bool snapshot_go_on(struct qmp *qmp);	/* continue it */
/* True if there is a snapshot that only the caller or root can have written. */
bool snapshot_there(const char *path);
/*
 * Wait until a guest that was started from a snapshot continues; false: it does not.
 * @repeats: it had stopped itself.
 */
bool snapshot_loaded(struct qmp *qmp, bool repeats);

/* ---- models.c */
struct vpmu_model;
struct vpmu_event_def;
const struct vpmu_model *model_named(const char *name);	/* or NULL */
/* The event as its register has it, and as perf's rNNN takes it. */
uint64_t event_select(const struct vpmu_event_def *def);
/* The word for an event's quality where the engine supplies these signals. */
const char *event_quality(const struct vpmu_model *model, const struct vpmu_event_def *def,
			  uint64_t supplied);
char *mask_text(unsigned int mask);	/* "0-7", "0,2": the bits of a mask */
/* The signals that QEMU's TCG supplies: all but those of a modelled CPU. */
#define TCG_SUPPLIED	(VPMU_SIGNALS_ALL & ~VPMU_SIGNALS_UARCH)

/* ---- events.c: the host's events and the filter of a run */
struct host_event {
	const char *spec;
	uint64_t id;		/* id that QEMU gave it */
};
struct host_events {
	struct host_event *list;
	size_t n;
};
/* The model whose events @cpu has, as in vpmu run --cpu; the generic one if unknown. */
const struct vpmu_model *events_model(const char *cpu);
/* Both end the program on an error, after showing its place. */
void events_parse(struct host_events *events, const struct strings *specs,
		  const struct machine *machine);
void events_check_filter(const char *filter, const char *cpu);
/*
 * Add them to a guest that waits, and let it continue if @go_on; returns false after
 * the reason.
 */
bool events_add(struct host_events *events, struct qmp *qmp, bool go_on);
void events_tell(struct json_t *list);		/* prints x-query-vpmu-host-events */
/*
 * Print the losses in x-query-vpmu; @hosts, @filtered: there are host events, a filter.
 */
void events_tell_losses(struct json_t *query, bool hosts, bool filtered);

/* ---- trace.c */
/* Convert QEMU's trace in @in to a file that Perfetto opens. Returns 0, or -errno. */
int trace_convert(FILE *in, FILE *out, const struct vpmu_model *model,
		  const struct host_events *events);

/* ---- session.c: a job in a guest, from boot to exit */
struct outcome {
	bool exited;		/* false: the guest died or vpmu gave up */
	bool spoilt;		/* it came from a snapshot, and its command did not start */
	int status;		/* status that waitpid(2) returned */
	int noexec;		/* errno of exec, or 0 */
	uint32_t flags;		/* enum channel_exit_flags */
	int own_failure;	/* exit status of vpmu's own, or 0 */
	/*
	 * The command ended, but its files, its statistics or the list of uncounted
	 * events are incomplete.
	 */
	bool incomplete;
	int killed_by;		/* signal on which vpmu gave up, or 0 */
	int qemu_killed_by;	/* signal that ended QEMU, or 0 */
	uint64_t boot_ns;	/* from QEMU's start until the guest is ready */
	uint64_t start_ns;	/* until the command runs */
	uint64_t end_ns;	/* until its exit and all of its output have arrived */
	uint64_t wall_ns;	/* duration of the command, on the guest's clock */
	uint64_t out_bytes, err_bytes;
};
void session_run(struct guest *guest, const struct buffer *job,
		 uint32_t tty, bool verbose, struct outcome *outcome);

/* ---- child.c */
/*
 * Call @run in a child, with standard input from @input, unless that is NULL, and standard
 * output to @output. Returns its exit status; a signal that ends it ends the caller, too, and
 * those that are to end the caller are passed on.
 */
int in_child(int (*run)(void *ctx), void *ctx, FILE *input, FILE *output);

/* ---- twice.c */
char **twice_command(char **command); /* a script that records @command and prints the log */
/*
 * Call @run, which executes such a command, two times and say where the logs part. Returns
 * the command's exit status, or 125 where they do.
 */
int twice(int (*run)(void *ctx), void *ctx);

/* ---- terminal.c */
uint32_t terminal_streams(void);	/* which streams are to be a terminal */
void terminal_raw(void);		/* nothing happens without a terminal */
void terminal_restore(void);
bool terminal_is_raw(void);
bool terminal_foreground(int fd);
bool terminal_cooked(int fd);

uint64_t now_ns(void);

#endif
