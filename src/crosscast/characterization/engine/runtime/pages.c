/* Which pages of memory were ever touched: most of the counters' address space never is. */
#define _GNU_SOURCE
#include "runtime.h"
#include <fcntl.h>
#include <unistd.h>

void cc_open_pages(struct pages *p) {
  p->file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  p->first = p->known = 0;
}

int cc_touched(struct pages *p, u64 address) {
  u64 page = address / PAGE;
  if (p->file < 0) return 1;
  if (page - p->first >= p->known) {
    ssize_t bytes = pread(p->file, p->entries, sizeof p->entries, 8 * page);
    p->first = page, p->known = bytes > 0 ? bytes / 8 : 0;
    if (!p->known) return 1;
  }
  return p->entries[page - p->first] >> 62 != 0; /* present or swapped out */
}

void cc_close_pages(struct pages *p) {
  if (p->file >= 0) close(p->file);
}
