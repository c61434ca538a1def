// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A job in a guest, from boot to exit: streams, signals, the terminal.
 * One thread, one poll: nothing here may wait for one stream only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "vpmu.h"

#define BOOT_PATIENCE_NS	(180 * 1000000000ull)
#define INSIST_NS		(10 * 1000000000ull)
/*
 * A guest from a snapshot starts its command within a second of its own time, and within
 * ten of the clock's on a machine with ten processes per CPU. Giving up early costs
 * nothing: the guest is booted instead.
 */
#define RESTORED_CPU_NS		(10 * 1000000000ull)
#define SILENCE_NS		(30 * 1000000000ull)
#define TAIL_BYTES		8192	/* bytes kept of the console and of QEMU's errors */

enum phase {
	PHASE_BOOT,		/* the guest comes up */
	PHASE_START,		/* it has the job */
	PHASE_RUN,		/* the command runs */
	PHASE_DRAIN,		/* it has ended; its output is still arriving */
	PHASE_DONE,
};

struct stream {
	int from, to;		/* -1: closed */
	size_t have, done;
	uint64_t total;		/* bytes passed on */
	uint64_t read_ns;	/* when the last of them came */
	size_t chunk;		/* bytes to write at once, at most */
	char buf[65536];
};

struct session {
	struct guest *guest;
	const struct buffer *job;
	struct outcome *outcome;
	enum phase phase;
	uint32_t tty;
	bool verbose;
	int signals;
	struct stream in, out, err;
	uint64_t in_read;	/* bytes taken from our standard input */
	bool in_eof_sent, monitor_gone;
	struct buffer control_in, control_out, console, errors;
	struct channel_exit exit;
	unsigned int insisted;
	uint64_t insisted_ns;
	uint64_t heard_ns;	/* when the command ended, or output came after it */
};

/* Signals that arrived before the command ran, perhaps for a guest that was given up. */
static sigset_t held;

static void send_control(struct session *s, uint32_t type, const void *data,
			 size_t len)
{
	const struct channel_head h = { .type = type, .len = len };

	buffer_add(&s->control_out, &h, sizeof(h));
	buffer_add(&s->control_out, data, len);
}

static void flush_control(struct session *s)
{
	ssize_t n;

	if (!s->control_out.len)
		return;
	n = write(s->guest->port[PORT_CONTROL], s->control_out.data, s->control_out.len);
	if (n > 0)
		buffer_drop(&s->control_out, n);
}

static void give_up(struct session *s, int status)
{
	s->outcome->own_failure = status;
	s->phase = PHASE_DONE;
}

/* Returns true if the guest, which came from a snapshot, is to be booted instead. */
static bool give_up_snapshot(struct session *s)
{
	if (!s->guest->restored || s->phase >= PHASE_RUN)
		return false;
	s->outcome->spoilt = true;
	s->phase = PHASE_DONE;
	return true;
}

/* ---- messages of the guest */

static void send_signal(struct session *s, int32_t sig)
{
	if (s->phase < PHASE_RUN)
		sigaddset(&held, sig);
	else
		send_control(s, CHANNEL_SIGNAL, &sig, sizeof(sig));
}

static void release_signals(struct session *s)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&held, sig) == 1)
			send_signal(s, sig);
	sigemptyset(&held);
}

static void send_job(struct session *s)
{
	struct buffer job = { 0 };

	s->outcome->boot_ns = now_ns() - s->guest->started_ns;
	buffer_add(&job, s->job->data, s->job->len);
	job_moment(&job);
	send_control(s, CHANNEL_JOB, job.data, job.len);
	buffer_free(&job);
	s->phase = PHASE_START;
}

static void guest_ready(struct session *s, const struct channel_ready *ready)
{
	if (ready->version != CHANNEL_VERSION) {
		say("vpmu-init speaks version %u, not %u: run make",
		    ready->version, CHANNEL_VERSION);
		give_up(s, EXIT_VPMU);
		return;
	}
	if (s->guest->keep && !snapshot_save(s->guest->qmp, s->guest->keep)) {
		say("the guest does not go on after its state was saved");
		give_up(s, EXIT_VPMU);
		return;
	}
	send_job(s);
}

static void command_started(struct session *s)
{
	s->phase = PHASE_RUN;
	s->outcome->start_ns = now_ns() - s->guest->started_ns;
	release_signals(s);
	if (s->tty & CHANNEL_TTY_STDIN)
		terminal_raw();
}

/* The command was stopped, as by Ctrl-Z: stop too, until continued. */
static void command_stopped(struct session *s, int32_t sig)
{
	int32_t go_on = SIGCONT;

	terminal_restore();
	raise(SIGSTOP);
	if (s->tty & CHANNEL_TTY_STDIN)
		terminal_raw();
	send_control(s, CHANNEL_SIGNAL, &go_on, sizeof(go_on));
}

static void command_exited(struct session *s, const struct channel_exit *e)
{
	s->exit = *e;
	s->outcome->exited = true;
	s->outcome->status = e->status;
	s->outcome->flags = e->flags;
	s->outcome->wall_ns = e->wall_ns;
	s->heard_ns = now_ns();
	s->phase = PHASE_DRAIN;
}

static void handle_message(struct session *s, uint32_t type, const char *data,
			   size_t len)
{
	int32_t value = 0;

	if (len >= sizeof(value))
		memcpy(&value, data, sizeof(value));
	switch (type) {
	case CHANNEL_READY:
		if (len == sizeof(struct channel_ready) && s->phase == PHASE_BOOT)
			guest_ready(s, (const struct channel_ready *)data);
		break;
	case CHANNEL_STARTED:
		if (s->phase == PHASE_START)
			command_started(s);
		break;
	case CHANNEL_NOEXEC:
		s->outcome->noexec = value;
		break;
	case CHANNEL_STOPPED:
		if (s->phase == PHASE_RUN)
			command_stopped(s, value);
		break;
	case CHANNEL_STDIN_CLOSED:
		s->in.from = -1;
		s->in_eof_sent = true;
		break;
	case CHANNEL_NOTE:
		say("%.*s", (int)len, data);
		break;
	case CHANNEL_FAILED:
		if (give_up_snapshot(s))
			break;
		say("the guest: %.*s", (int)len, data);
		give_up(s, EXIT_VPMU);
		break;
	case CHANNEL_EXIT:
		if (len == sizeof(struct channel_exit) && s->phase == PHASE_RUN)
			command_exited(s, (const struct channel_exit *)data);
		break;
	}
}

/* Returns false if there was nothing to read. */
static bool read_control(struct session *s)
{
	struct channel_head h;
	char text[4096];
	ssize_t n;

	n = read(s->guest->port[PORT_CONTROL], text, sizeof(text));
	if (n > 0)
		buffer_add(&s->control_in, text, n);
	while (s->control_in.len >= sizeof(h) && s->phase != PHASE_DONE) {
		memcpy(&h, s->control_in.data, sizeof(h));
		if (h.len > CHANNEL_MAX_REPLY) {
			if (give_up_snapshot(s))
				return true;
			say("the guest announced a message of %u bytes, where at most %u are "
			    "needed: the command, or the guest's kernel, has taken its init's "
			    "place", h.len, CHANNEL_MAX_REPLY);
			give_up(s, EXIT_VPMU);
			return true;
		}
		if (s->control_in.len - sizeof(h) < h.len)
			break;
		handle_message(s, h.type, s->control_in.data + sizeof(h), h.len);
		buffer_drop(&s->control_in, sizeof(h) + h.len);
	}
	return n > 0;
}

/* ---- streams */

/*
 * A pipe or terminal that is writable may still make a longer write wait; a write of
 * PIPE_BUF bytes never waits.
 */
static size_t chunk_of(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) ? 65536 : 4096;
}

static void stream_read(struct stream *st)
{
	ssize_t n = read(st->from, st->buf, sizeof(st->buf));

	if (n > 0) {
		st->have = n;
		st->done = 0;
		st->read_ns = now_ns();
	} else if (!n || (errno != EAGAIN && errno != EINTR)) {
		st->from = -1;
	}
}

/* Returns 0, or the error that ended it. */
static int stream_write(struct stream *st)
{
	size_t left = st->have - st->done;
	ssize_t n;

	n = write(st->to, st->buf + st->done, left < st->chunk ? left : st->chunk);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : errno;
	st->done += n;
	st->total += n;
	return 0;
}

/* The reader of our output has gone: the command gets SIGPIPE. */
static void output_failed(struct session *s, struct stream *st, int err)
{
	if (err != EPIPE) {
		say("cannot write standard %s: %s",
		    st == &s->out ? "output" : "error", strerror(err));
		s->outcome->own_failure = EXIT_VPMU;
	}
	st->total += st->have - st->done;
	st->done = st->have;
	st->to = -1;
	send_control(s, st == &s->out ? CHANNEL_STDOUT_CLOSED
				      : CHANNEL_STDERR_CLOSED, NULL, 0);
}

static void pump_output(struct session *s, struct stream *st, short events)
{
	int err;

	if (st->done == st->have && events && st->from >= 0)
		stream_read(st);
	if (st->done == st->have)
		return;
	if (st->to < 0) {
		st->total += st->have - st->done;
		st->done = st->have;
		return;
	}
	err = stream_write(st);
	if (err)
		output_failed(s, st, err);
}

static void pump_input(struct session *s, short events)
{
	struct stream *in = &s->in;

	if (in->done == in->have && events && in->from >= 0) {
		stream_read(in);
		if (in->from >= 0 && in->done < in->have)
			s->in_read += in->have;
	}
	if (in->done < in->have && stream_write(in))
		in->done = in->have;
	if (in->from < 0 && in->done == in->have && !s->in_eof_sent) {
		s->in_eof_sent = true;
		send_control(s, CHANNEL_STDIN_EOF, &in->total, sizeof(in->total));
	}
}

/*
 * Keys are not ours while we are in the background, or while another program of our
 * pipeline reads them one by one.
 */
static bool may_read_input(const struct session *s)
{
	if (s->phase != PHASE_RUN || s->in.from < 0)
		return false;
	if (!isatty(0))
		return true;
	return terminal_foreground(0) &&
		(s->tty & CHANNEL_TTY_STDIN || terminal_cooked(0));
}

static void keep_tail(struct session *s, struct buffer *b, int *fd)
{
	char text[4096];
	ssize_t n = read(*fd, text, sizeof(text));

	if (n <= 0) {
		if (!n || (errno != EAGAIN && errno != EINTR))
			*fd = -1;
		return;
	}
	if (s->verbose) {
		fwrite(text, 1, n, say_to ? say_to : stderr);
		fflush(say_to ? say_to : stderr);
	}
	buffer_add(b, text, n);
	if (b->len > TAIL_BYTES)
		buffer_drop(b, b->len - TAIL_BYTES);
}

/* ---- signals of our own */

static void insist(struct session *s, int sig)
{
	uint64_t now = now_ns();

	if (now - s->insisted_ns > INSIST_NS)
		s->insisted = 0;
	s->insisted_ns = now;
	s->insisted++;
	/* None of the user's programs runs yet, so there is nothing to end gently. */
	if (s->phase < PHASE_RUN || s->insisted > 3) {
		s->outcome->killed_by = sig;
		s->phase = PHASE_DONE;
	} else if (s->insisted == 3) {
		send_control(s, CHANNEL_KILL, NULL, 0);
	} else {
		send_signal(s, sig);
	}
}

static void window_changed(struct session *s)
{
	struct winsize size;

	if (s->tty && !ioctl(s->tty & CHANNEL_TTY_STDOUT ? 1 : 2, TIOCGWINSZ, &size))
		send_control(s, CHANNEL_WINSIZE, &size, sizeof(size));
}

static void continued(struct session *s)
{
	if (s->tty & CHANNEL_TTY_STDIN && s->phase == PHASE_RUN)
		terminal_raw();
	window_changed(s);
}

static void read_signals(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGINT:
		case SIGTERM:
		case SIGQUIT:
		case SIGHUP:
			insist(s, info.ssi_signo);
			break;
		case SIGUSR1:
		case SIGUSR2:
		case SIGTSTP:
			send_signal(s, info.ssi_signo);
			break;
		case SIGWINCH:
			window_changed(s);
			break;
		case SIGCONT:
			continued(s);
			break;
		}
	}
}

static void catch_signals(struct session *s)
{
	static const int list[] = {
		SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP,
		SIGWINCH, SIGCONT, SIGCHLD,
	};
	struct sigaction a;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!sigaction(list[i], NULL, &a) && a.sa_handler != SIG_IGN)
			sigaddset(&set, list[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
}

/* ---- the loop */

static void show_tail(const char *what, const struct buffer *b)
{
	if (!b->len)
		return;
	say("%s:", what);
	fwrite(b->data, 1, b->len, say_to ? say_to : stderr);
	if (b->data[b->len - 1] != '\n')
		fputc('\n', say_to ? say_to : stderr);
}

static void guest_died(struct session *s)
{
	int status = 0;

	waitpid(s->guest->pid, &status, 0);
	s->guest->pid = 0;
	s->outcome->qemu_killed_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (WIFSIGNALED(status))
		say("QEMU was killed by signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	else
		say("the guest ended before the command did (QEMU's exit status %d)%s",
		    WEXITSTATUS(status),
		    s->guest->restored ? "; with --no-snapshot a new guest boots" : "");
	if (!s->verbose) {
		show_tail("QEMU says", &s->errors);
		show_tail("the guest's kernel says", &s->console);
	}
	give_up(s, EXIT_VPMU);
}

static void check_guest(struct session *s)
{
	siginfo_t info = { 0 };

	if (s->phase == PHASE_DONE)
		return;
	if (!waitid(P_PID, s->guest->pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	    info.si_pid) {
		while (s->guest->port[PORT_CONSOLE] >= 0 && s->errors.len < TAIL_BYTES) {
			size_t had = s->errors.len + s->console.len;

			keep_tail(s, &s->errors, &s->guest->errors);
			keep_tail(s, &s->console, &s->guest->port[PORT_CONSOLE]);
			if (had == s->errors.len + s->console.len)
				break;
		}
		/* A command that has started, and ended its guest, is not repeated. */
		while (s->phase < PHASE_RUN && read_control(s))
			;
		if (!give_up_snapshot(s))
			guest_died(s);
	}
}

/* QEMU writes its error before it sends the event. */
static void check_stopped(struct session *s, short events)
{
	enum qmp_stop stop = s->phase == PHASE_DONE ? QMP_RUNS : qmp_stopped(s->guest->qmp);

	if (stop) {
		say(stop == QMP_KVM_FAILED ?
		    "KVM could not execute the guest (QEMU's run state is internal-error)" :
		    "the guest has stopped its own machine, by I/O port %xH", CHANNEL_STOP_PORT);
		keep_tail(s, &s->errors, &s->guest->errors);
		if (!s->verbose)
			show_tail("QEMU says", &s->errors);
		give_up(s, EXIT_VPMU);
	}
	s->monitor_gone = events & POLLHUP;
}

/* The CPU time that QEMU has taken. */
static uint64_t taken_ns(pid_t pid)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (!clock_getcpuclockid(pid, &clock))
		clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void check_restored(struct session *s)
{
	if (s->phase < PHASE_RUN && s->guest->restored &&
	    (now_ns() - s->guest->started_ns > SILENCE_NS ||
	     taken_ns(s->guest->pid) > RESTORED_CPU_NS))
		give_up_snapshot(s);
}

static void check_boot(struct session *s)
{
	if (s->phase != PHASE_BOOT || s->guest->debugged ||
	    now_ns() - s->guest->started_ns < BOOT_PATIENCE_NS)
		return;
	say("the guest did not start within %llu s (-v shows its kernel's log)",
	    BOOT_PATIENCE_NS / 1000000000);
	show_tail("QEMU says", &s->errors);
	show_tail("the guest's kernel says", &s->console);
	give_up(s, EXIT_VPMU);
}

static bool drained(const struct session *s)
{
	return s->phase == PHASE_DRAIN &&
		s->out.total >= s->exit.out_bytes && s->err.total >= s->exit.err_bytes &&
		s->out.done == s->out.have && s->err.done == s->err.have;
}

static bool full(const struct stream *st)
{
	return st->done < st->have;
}

/* The guest's count of its output was wrong, or its virtio device has stalled. */
static void check_drain(struct session *s)
{
	uint64_t heard = s->heard_ns;

	heard = s->out.read_ns > heard ? s->out.read_ns : heard;
	heard = s->err.read_ns > heard ? s->err.read_ns : heard;
	/* A slow reader of our output is not a silent guest. */
	if (full(&s->out) || full(&s->err))
		s->heard_ns = now_ns();
	if (s->phase != PHASE_DRAIN || s->guest->debugged || full(&s->out) || full(&s->err) ||
	    now_ns() - heard < SILENCE_NS)
		return;
	say("of %llu bytes of standard output and %llu of standard error that the guest announced, "
	    "%llu and %llu came",
	    (unsigned long long)s->exit.out_bytes, (unsigned long long)s->exit.err_bytes,
	    (unsigned long long)s->out.total, (unsigned long long)s->err.total);
	give_up(s, EXIT_VPMU);
}

static struct pollfd want(int fd, bool in, bool out)
{
	struct pollfd p = { .fd = in || out ? fd : -1 };

	p.events = (in ? POLLIN : 0) | (out ? POLLOUT : 0);
	return p;
}

static void serve_once(struct session *s)
{
	int *port = s->guest->port;
	struct pollfd p[] = {
		want(s->signals, true, false),
		want(port[PORT_CONTROL], true, s->control_out.len),
		want(s->in.from, !full(&s->in) && may_read_input(s), false),
		want(s->in.to, false, full(&s->in)),
		want(s->out.from, !full(&s->out), false),
		want(s->out.to, false, full(&s->out)),
		want(s->err.from, !full(&s->err), false),
		want(s->err.to, false, full(&s->err)),
		want(port[PORT_CONSOLE], true, false),
		want(s->guest->errors, true, false),
		want(s->monitor_gone ? -1 : port[PORT_QMP], true, false),
	};

	poll(p, sizeof(p) / sizeof(p[0]), 200);
	if (p[0].revents)
		read_signals(s);
	if (p[1].revents & (POLLIN | POLLHUP))
		read_control(s);
	flush_control(s);
	if (p[2].revents || full(&s->in) || s->in.from < 0)
		pump_input(s, p[2].revents);
	if (p[4].revents || p[5].revents)
		pump_output(s, &s->out, p[4].revents);
	if (p[6].revents || p[7].revents)
		pump_output(s, &s->err, p[6].revents);
	if (p[8].revents)
		keep_tail(s, &s->console, &port[PORT_CONSOLE]);
	if (p[9].revents)
		keep_tail(s, &s->errors, &s->guest->errors);
	if (p[10].revents)
		check_stopped(s, p[10].revents);
	check_guest(s);
	check_boot(s);
	check_restored(s);
	if (drained(s))
		s->phase = PHASE_DONE;
	check_drain(s);
}

/*
 * Give back input that we read ahead and the command did not take, where that is
 * possible, so that vpmu can be called in a loop over a file's lines.
 */
static void give_back_input(const struct session *s)
{
	struct stat st;

	if (!s->outcome->exited || s->in_read <= s->exit.in_bytes)
		return;
	if (!fstat(0, &st) && S_ISREG(st.st_mode))
		lseek(0, -(off_t)(s->in_read - s->exit.in_bytes), SEEK_CUR);
}

void session_run(struct guest *guest, const struct buffer *job, uint32_t tty,
		 bool verbose, struct outcome *outcome)
{
	struct session *s = xalloc(sizeof(*s));

	*s = (struct session){
		.guest = guest, .job = job, .outcome = outcome, .tty = tty,
		.verbose = verbose,
		.in = { .from = 0, .to = guest->port[PORT_STDIN], .chunk = 65536 },
		.out = { .from = guest->port[PORT_STDOUT], .to = 1 },
		.err = { .from = guest->port[PORT_STDERR], .to = 2 },
	};
	s->out.chunk = chunk_of(1);
	s->err.chunk = chunk_of(2);
	catch_signals(s);
	if (guest->repeats) {
		s->in = (struct stream){ .from = -1, .to = -1 };
		s->in_eof_sent = true;
		s->phase = PHASE_START;
	} else if (guest->restored) {
		send_job(s);
	}
	while (s->phase != PHASE_DONE)
		serve_once(s);
	give_back_input(s);
	outcome->end_ns = now_ns() - guest->started_ns;
	outcome->out_bytes = s->out.total;
	outcome->err_bytes = s->err.total;
	terminal_restore();
	close(s->signals);
	free(s);
}
