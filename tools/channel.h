/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The protocol between vpmu and the guest's init.
 *
 * It has four virtio-serial ports: one for each standard stream and one for control. A
 * message on the control port is a struct channel_head and its payload. Both ends run on
 * the same machine, so numbers are in its byte order.
 *
 * The ports are not ordered among each other. If the order matters, a message carries the
 * number of bytes that belong before it on the other port.
 *
 * A message from the host arrives at whatever instruction the guest has reached. A guest
 * whose runs repeat gets none: when it is ready, it stops its own virtual machine, and when
 * that is continued, it reads the job's payload from a file of QEMU's fw_cfg device.
 */
#ifndef VPMU_TOOLS_CHANNEL_H
#define VPMU_TOOLS_CHANNEL_H

#include <stdint.h>

#define CHANNEL_VERSION		2
#define CHANNEL_MAX		(8u << 20)	/* bytes in a payload, at most */
/* Maximum of a payload to the host, which is a line of text. */
#define CHANNEL_MAX_REPLY	(64u << 10)

#define CHANNEL_PORT_CONTROL	"vpmu.control"
#define CHANNEL_PORT_STDIN	"vpmu.stdin"
#define CHANNEL_PORT_STDOUT	"vpmu.stdout"
#define CHANNEL_PORT_STDERR	"vpmu.stderr"

#define CHANNEL_TAG_ROOT	"vpmu.root"	/* 9p: the host's root */
#define CHANNEL_TAG_SHARE	"vpmu.share%u"	/* 9p: a writable directory, numbered from 0 */
#define CHANNEL_SHARES		16		/* their number is at most this */

#define CHANNEL_REPEAT		"vpmu.repeat"	/* kernel option: the guest's runs repeat */
/*
 * Kernel option: the control port is not served. The job is in the file, too, and at the end the
 * command's exit status, as a shell has it, goes to the port as a line of text.
 */
#define CHANNEL_ALONE		"vpmu.alone"
#define CHANNEL_JOB_FILE	"opt/vpmu/job"	/* fw_cfg's name of the job */
#define CHANNEL_STOP_PORT	0x505		/* pvpanic: with "-action panic=pause" it stops */
#define CHANNEL_STOP		1

#define CHANNEL_DRIVER		"vpmu_guest.ko"	/* in the initramfs: loaded if there */

enum channel_type {
	/* guest to host */
	CHANNEL_READY = 1,	/* struct channel_ready; waits for a job */
	CHANNEL_STARTED,	/* the command runs */
	CHANNEL_NOEXEC,		/* int32_t errno: it could not be executed */
	CHANNEL_STOPPED,	/* int32_t signal: it was stopped */
	CHANNEL_STDIN_CLOSED,	/* standard input has no reader left */
	CHANNEL_NOTE,		/* text for the user */
	CHANNEL_FAILED,		/* text: the guest cannot do the job */
	CHANNEL_EXIT,		/* struct channel_exit; all files are written */

	/* host to guest */
	CHANNEL_JOB = 64,	/* a sequence of struct channel_item */
	CHANNEL_SIGNAL,		/* int32_t signal for the command's group */
	CHANNEL_KILL,		/* end every process of the guest */
	CHANNEL_WINSIZE,	/* struct winsize */
	CHANNEL_STDIN_EOF,	/* uint64_t bytes before the end */
	CHANNEL_STDOUT_CLOSED,	/* the reader of standard output has gone */
	CHANNEL_STDERR_CLOSED,
};

struct channel_head {
	uint32_t type;		/* enum channel_type */
	uint32_t len;		/* bytes of payload that follow */
};

struct channel_ready {
	uint32_t version;	/* CHANNEL_VERSION */
	uint32_t reserved;
	uint64_t uptime_ns;	/* the guest's clock since its boot */
};

enum channel_exit_flags {
	CHANNEL_EXIT_FULL = 1,	/* the writable overlay had no space left */
	CHANNEL_EXIT_OOM = 2,	/* the guest's kernel killed for memory */
	CHANNEL_EXIT_UNSAVED = 4, /* a shared directory was not written out */
	CHANNEL_EXIT_NETWORK = 8, /* there was no route for a packet, and no network */
};

struct channel_exit {
	int32_t status;		/* status that waitpid(2) returned */
	uint32_t flags;		/* enum channel_exit_flags */
	uint64_t out_bytes;	/* sent on the port for standard output */
	uint64_t err_bytes;
	uint64_t in_bytes;	/* bytes of standard input that the command took */
	uint64_t wall_ns;	/* from exec to exit, on the guest's clock */
};

/* Items of a job. Those marked * may occur more than once, in order. */
enum channel_item_tag {
	CHANNEL_ARG = 1,	/* * bytes, without the final NUL */
	CHANNEL_ENV,		/* * bytes */
	CHANNEL_CWD,		/* path */
	CHANNEL_SHARE,		/* * path to mount the share of this number at */
	CHANNEL_IDS,		/* uint32_t uid, gid, supplementary groups */
	CHANNEL_UMASK,		/* uint32_t */
	CHANNEL_RLIMIT,		/* * struct channel_rlimit */
	CHANNEL_TTY,		/* struct channel_tty; absent: pipes only */
	CHANNEL_HOSTNAME,	/* bytes */
	CHANNEL_TIME,		/* int64_t seconds, nanoseconds since 1970 */
	CHANNEL_SEED,		/* random bytes */
	CHANNEL_BIND,		/* * two paths, each with its NUL: bind the
				 * first over the second */
	/*
	 * Two paths, each with its NUL: the second becomes a link to the first, unless it
	 * exists.
	 */
	CHANNEL_LINK,
	CHANNEL_SIGNALS,	/* uint64_t: bit n-1 is signal n ignored */
	CHANNEL_NICE,		/* int32_t */
	CHANNEL_KVM,		/* nothing: the command is to have /dev/kvm */
	CHANNEL_NETWORK,	/* nothing: the command is to have a network */
	CHANNEL_STDIN,		/* bytes: all of standard input, in place of the port */
	CHANNEL_DELAY,		/* uint32_t: the command starts this many ns after a full second */
};

struct channel_item {
	uint32_t tag;		/* enum channel_item_tag */
	uint32_t len;		/* bytes that follow; the next item follows without a gap */
};

struct channel_rlimit {
	uint32_t resource;
	uint32_t reserved;
	uint64_t soft, hard;	/* RLIM_INFINITY is all ones */
};

enum channel_tty_flags {
	CHANNEL_TTY_STDIN = 1,	/* these streams are the terminal */
	CHANNEL_TTY_STDOUT = 2,
	CHANNEL_TTY_STDERR = 4,
	CHANNEL_TTY_CONTROLLING = 8, /* and it is the controlling one */
};

struct channel_tty {
	uint32_t flags;		/* enum channel_tty_flags */
	uint16_t rows, columns, xpixel, ypixel;
	uint32_t iflag, oflag, cflag, lflag;	/* struct termios */
	uint8_t cc[32];
};

#endif
