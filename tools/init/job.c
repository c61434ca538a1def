// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Parser of a job's message. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "init.h"

static const struct channel_item *next(const struct job *job, const void *at)
{
	const char *end = (const char *)job->items + job->len;
	const struct channel_item *item = at;

	if (end - (const char *)at < (ssize_t)sizeof(*item))
		return NULL;
	if ((size_t)(end - (const char *)(item + 1)) < item->len)
		return NULL;
	return item;
}

static const void *after(const struct channel_item *item)
{
	return (const char *)(item + 1) + ((item->len + 7) & ~7u);
}

const struct channel_item *job_item(const struct job *job, uint32_t tag,
				    const struct channel_item *item)
{
	item = next(job, item ? after(item) : job->items);
	while (item && item->tag != tag)
		item = next(job, after(item));
	return item;
}

static const void *item_data(const struct job *job, uint32_t tag, size_t min)
{
	const struct channel_item *item = job_item(job, tag, NULL);

	return item && item->len >= min ? item + 1 : NULL;
}

/* The host pads each string, so that its NUL is in the message. */
static char **strings(const struct job *job, uint32_t tag)
{
	const struct channel_item *item = NULL;
	char **list;
	size_t n = 0;

	while ((item = job_item(job, tag, item)))
		n++;
	list = calloc(n + 1, sizeof(*list));
	for (n = 0; list && (item = job_item(job, tag, item)); n++)
		list[n] = (char *)(item + 1);
	return list;
}

int job_parse(struct job *job, void *payload, size_t len)
{
	const struct channel_item *ids;

	memset(job, 0, sizeof(*job));
	job->items = payload;
	job->len = len;
	job->argv = strings(job, CHANNEL_ARG);
	job->envp = strings(job, CHANNEL_ENV);
	job->cwd = item_data(job, CHANNEL_CWD, 1);
	job->tty = item_data(job, CHANNEL_TTY, sizeof(*job->tty));
	ids = job_item(job, CHANNEL_IDS, NULL);
	if (!job->argv || !job->argv[0] || !job->envp || !job->cwd ||
	    !ids || ids->len < 8)
		return -EINVAL;
	job->ids = (const uint32_t *)(ids + 1);
	job->n_ids = ids->len / 4;
	return 0;
}
