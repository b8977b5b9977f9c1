/* SPDX-License-Identifier: BSD-3-Clause */
/* The life page: a robust mutex in a memfd, which one thread holds. When the thread ends the kernel sets FUTEX_OWNER_DIED in its word, after a crash and kill -9 too; nobody has to run any more for that.
 * Invariant: this mapping is the only writable one that ever was; the memfd is sealed before anybody else sees it. */
#include "server_life.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define TID_MASK 0x3fffffffu /* FUTEX_TID_MASK */

union life_page {
	struct ctl_life life;
	pthread_mutex_t mutex;
};
_Static_assert(sizeof(union life_page) <= CTL_LIFE_BYTES, "one page");

static int map_page(struct server_life *l)
{
	l->fd = memfd_create("uroce-life", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->fd < 0)
		return -errno;
	if (ftruncate(l->fd, CTL_LIFE_BYTES))
		return -errno;
	void *page = mmap(NULL, CTL_LIFE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	l->page = page;
	return fcntl(l->fd, F_ADD_SEALS, SEALS) ? -errno : 0;
}

/* Clients look at the first word: that the C library keeps the owner there is its business, and so is looked at and not believed. */
static int hold(union life_page *p)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	int err = -pthread_mutex_init(&p->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	if (!err)
		err = -pthread_mutex_lock(&p->mutex);
	if (err)
		return err;
	if ((atomic_load_explicit(&p->life.word, memory_order_relaxed) & TID_MASK) == (uint32_t)gettid())
		return 0;
	pthread_mutex_unlock(&p->mutex);
	return -ENOTSUP;
}

static void unmap_page(struct server_life *l)
{
	if (l->page)
		munmap(l->page, CTL_LIFE_BYTES);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct server_life){ NULL, -1 };
}

int server_life_begin(struct server_life *l)
{
	*l = (struct server_life){ NULL, -1 };
	int err = map_page(l);
	if (!err)
		err = hold(l->page);
	if (err)
		unmap_page(l);
	return err;
}

void server_life_end(struct server_life *l)
{
	if (l->page)
		pthread_mutex_unlock(&l->page->mutex); /* the thread's list of robust mutexes must not point here any more */
	unmap_page(l);
}
