/* printf: calls are recorded and rendered by the parent. */
#include "runtime.h"
#include <string.h>
#include <unistd.h>

enum { RECORD = 136, VALUE = 128 }; /* bytes of one argument: its kind, then room for any value */

static void put(struct context *c, const void *p, u64 n) {
  const u8 *at = p;
  while (n) {
    ssize_t done = write(c->job->print_fd, at, n);
    if (done <= 0) cc_fail(c, NO_MEMORY, 0, n, 0, 0, 0, 0);
    at += done, n -= done;
  }
}

/* The next conversion after `*at`; moves `*at` behind it. */
static char next_conversion(const char **at) {
  while ((*at = strchr(*at, '%'))) {
    *at += 1;
    *at += strspn(*at, "-+ #0123456789.vhlL");
    char conversion = **at;
    if (conversion) *at += 1;
    if (conversion != '%') return conversion;
  }
  *at = "";
  return 0;
}

void cc_printf(struct context *c, u32 call, u8 *record, u64 n) {
  const char *format;
  memcpy(&format, record + 8, 8);
  u64 head[3] = {call, n, strlen(format)};
  put(c, head, sizeof head);
  put(c, format, head[2]);
  const char *at = format;
  for (u64 i = 1; i < n; i++) {
    u8 *value = record + RECORD * i + 8;
    char *text = 0;
    if (next_conversion(&at) == 's') memcpy(&text, value, 8);
    u64 tail[2] = {text != 0, text ? strlen(text) : VALUE};
    put(c, tail, sizeof tail);
    put(c, text ? (u8 *)text : value, tail[1]);
  }
}
