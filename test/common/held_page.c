/* SPDX-License-Identifier: BSD-3-Clause */
/* One anonymous page, registered for faults on what is missing; the descriptor of the faults is never read. */
#include "held_page.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES 4096u

bool held_page_open(struct held_page *h)
{
	struct uffdio_api api = { .api = UFFD_API };
	h->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK); /* faults of the kernel too, which asks for a privilege */
	if (h->fd < 0)
		return false;
	h->at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { .range = { (uintptr_t)h->at, BYTES }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	if (h->at != MAP_FAILED && !ioctl(h->fd, UFFDIO_API, &api) && !ioctl(h->fd, UFFDIO_REGISTER, &range))
		return true;
	close(h->fd);
	return false;
}

bool held_page_is_wanted(const struct held_page *h, int ms)
{
	struct pollfd fd = { .fd = h->fd, .events = POLLIN };
	return poll(&fd, 1, ms) == 1;
}

void held_page_let_go(struct held_page *h)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)h->at, BYTES } };
	ioctl(h->fd, UFFDIO_ZEROPAGE, &zero);
}

void held_page_close(struct held_page *h)
{
	munmap(h->at, BYTES);
	close(h->fd);
}
