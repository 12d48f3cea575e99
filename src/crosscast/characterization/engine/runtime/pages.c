/* Which pages of memory were ever touched: most of the counters' address space never is. */
#define _GNU_SOURCE
#include "runtime.h"
#include <fcntl.h>
#include <unistd.h>

void cc_open_pages(struct pages *p) {
  p->file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  for (u64 i = 0; i < WINDOWS; i++) p->windows[i].first = p->windows[i].known = 0;
}

int cc_touched(struct pages *p, u64 number, u64 address) {
  struct window *w = &p->windows[number % WINDOWS];
  u64 page = address / PAGE;
  if (p->file < 0) return 1;
  if (page - w->first >= w->known) {
    ssize_t bytes = pread(p->file, w->entries, sizeof w->entries, 8 * page);
    w->first = page, w->known = bytes > 0 ? bytes / 8 : 0;
    if (!w->known) return 1;
  }
  return w->entries[page - w->first] >> 62 != 0; /* present or swapped out */
}

void cc_close_pages(struct pages *p) {
  if (p->file >= 0) close(p->file);
}
