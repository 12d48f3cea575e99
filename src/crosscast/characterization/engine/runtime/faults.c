/* How a run ends when something goes wrong: the first fault is told on the status page. */
#define _GNU_SOURCE
#include "runtime.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIGNAL_STACK = 1 << 16 };
static const int64_t DATA_ADDRESS = 0x200000000000; /* where buffers start: `arguments.py` */

__thread struct context *cc_self;

void cc_fail(struct context *c, enum fault kind, u64 signal_, u64 address, u64 site, u64 item, u64 a, u64 b) {
  u64 *s = status_of(c), none = NO_FAULT;
  if (__atomic_compare_exchange_n(&s[S_FAULT], &none, kind, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    s[S_SIGNAL] = signal_, s[S_ADDRESS] = address, s[S_SITE] = site, s[S_ITEM] = item, s[S_A] = a, s[S_B] = b;
    for (int d = 0; d < 3; d++) s[S_GROUP + d] = c->group[d];
    _exit(3);
  }
  for (;;) pause();
}

void *cc_map(struct context *c, u64 bytes) {
  void *p = mmap(0, bytes ? bytes : PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) cc_fail(c, NO_MEMORY, 0, bytes, 0, 0, 0, 0);
  return p;
}

void *cc_remap(struct context *c, void *p, u64 bytes, u64 more) {
  void *q = p ? mremap(p, bytes, more, MREMAP_MAYMOVE) : cc_map(c, more);
  if (q == MAP_FAILED) cc_fail(c, NO_MEMORY, 0, more, 0, 0, 0, 0);
  return q;
}

void cc_diverged(struct context *c, u32 all, u32 any) { cc_fail(c, DIVERGED, 0, 0, 0, 0, all, any); }

void cc_assertion(struct context *c, u32 site, u64 item) { cc_fail(c, ASSERTION, 0, 0, site, item, 0, 0); }

static u64 distance(int64_t address) {
  u64 buffers = llabs(address - DATA_ADDRESS), null = llabs(address);
  return buffers < null ? buffers : null;
}

static void on_signal(int number, siginfo_t *info, void *unused) {
  (void)unused;
  struct context *c = cc_self;
  if (!c) _exit(4);
  /* Of an address that cannot exist the kernel tells nothing. */
  u64 address = info->si_code == SI_KERNEL ? (u64)1 << 63 : (u64)info->si_addr;
  int in_guard = address - (u64)(c->stack - GUARD) < GUARD + PAGE;
  /* Mostly it is the counter of an access that faults, before the access itself. */
  int64_t data = address - c->shift_buffer, small = (address - c->shift_small) << SMALL_LOG, own = address - (u64)c->local, counted = own - c->shift_local;
  if (distance(small) < distance(data)) data = small;
  u64 offset = llabs(own) < llabs(counted) ? own : counted;
  cc_fail(c, in_guard && number == SIGSEGV ? STACK : SIGNAL, number, address, 0, 0, data, offset);
}

void cc_catch_signals(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (int i = 0; i < 4; i++) sigaction(signals[i], &action, 0);
}

/* A thread whose stack is full needs another one to say so. */
void cc_use_signal_stack(struct context *c) {
  stack_t alternate = {.ss_sp = cc_map(c, SIGNAL_STACK), .ss_size = SIGNAL_STACK};
  sigaltstack(&alternate, 0);
}
