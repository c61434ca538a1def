// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Four threads and a mutex, and four without one: who comes when, and what gets lost. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long order;
static volatile long racy;

static void *thread(void *number)
{
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&mutex);
		order = order * 31 + (unsigned long)number;
		pthread_mutex_unlock(&mutex);
	}
	for (int i = 0; i < 2000000; i++)
		racy++;
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (unsigned long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%lx %ld\n", order, racy);
	return 0;
}
