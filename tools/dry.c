// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* vpmu run --dry-run: a guest as a command for sh, which needs QEMU and nothing of vpmu's. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "vpmu.h"

static void print_quoted(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789-_=./,:+@%";

	if (*text && !text[strspn(text, plain)]) {
		fputs(text, stdout);
		return;
	}
	putchar('\'');
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	putchar('\'');
}

static void print_command(char **argv)
{
	print_quoted(argv[0]);
	for (argv++; *argv; argv++) {
		fputs(**argv == '-' ? " \\\n    " : " ", stdout);
		print_quoted(*argv);
	}
}

static void print_base64(const struct buffer *b)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)b->data;
	uint32_t bits;

	for (size_t i = 0; i < b->len; i += 3) {
		bits = in[i] << 16 | (i + 1 < b->len ? in[i + 1] << 8 : 0) |
			(i + 2 < b->len ? in[i + 2] : 0);
		putchar(digits[bits >> 18]);
		putchar(digits[bits >> 12 & 63]);
		putchar(i + 1 < b->len ? digits[bits >> 6 & 63] : '=');
		putchar(i + 2 < b->len ? digits[bits & 63] : '=');
		if (i % 57 == 54 || i + 3 >= b->len)
			putchar('\n');
	}
}

int dry_print(const struct qemu *qemu, const struct kernel *kernel, const struct machine *machine,
	      const char *driver, const struct buffer *job, const char *without)
{
	struct qemu_fds fds = { .alone = kernel_initramfs_file(kernel, driver) };
	struct machine m = *machine;

	for (size_t i = 0; i < m.shares.n; i++)
		m.shares.list[i].fd = -1;
	if (!job)
		puts("# the guest's kernel is not fetched yet");
	if (m.pv)
		printf("# the guest loads %s\n", driver ? driver :
		       "vpmu_guest.ko, which is not built yet");
	if (*without)
		printf("# without%s\n", without);
	/*
	 * QEMU opens its descriptors again: of a pipe, it writes to the same one; of a file, others
	 * would write over what it has written.
	 */
	fputs("(exec 4>&1 5>&2\nstatus=$(exec 6>&1\n{ base64 -d <<'END' | ", stdout);
	print_command(qemu_command(qemu, kernel, &m, &fds, NULL));
	puts(" \\\n    2>&1 1>&7 | cat >&5; } 7>&1 | cat >&4");
	if (job)
		print_base64(job);
	puts("END\n)\nexit \"${status:-125}\")");
	return fflush(stdout) ? EXIT_VPMU : 0;
}
