/* A thread that looks after commands that were enqueued: their times, and memory that was read for them.
 *
 * It asks for the state of events now and then, which costs the program's threads nothing; a callback for each
 * event would cost them several microseconds. */
#pragma once
#include <signal.h>

#include "objects.h"

enum { MOST_WATCHED = 1 << 16, PATIENCE_S = 2, ALWAYS_HELD = 32 << 20 };

struct watched {
  cl_event event;
  int64_t number; /* of the command; for memory, of the snapshot */
  void *memory;
  size_t size;
  struct watched *next;
};
static struct watched *first_watched, **last_watched = &first_watched;
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t watch_more = PTHREAD_COND_INITIALIZER, watch_less = PTHREAD_COND_INITIALIZER;
static pthread_t watcher;
static int watcher_runs, watcher_ends, watched_count, watch_untimed;
static size_t held_bytes; /* of memory that is being read or written down */
static int64_t bytes_left;

static void record_times(struct watched *w) {
  cl_ulong t[4] = {0};
  cl_int error = 0;
  for (cl_uint i = 0; i < 4; i++)
    error |= REAL(clGetEventProfilingInfo)(w->event, CL_PROFILING_QUEUED + i, sizeof *t, &t[i], NULL);
  if (error) return;
  struct text s;
  begin_record(&s, "t", 5, w->number, N(t[0]), N(t[1] - t[0]), N(t[2] - t[1]), N(t[3] - t[2]));
  end_record(&s);
}

static void record_memory(struct watched *w) {
  u64 hash[2];
  char name[80];
  hash_of(w->memory, w->size, hash);
  snprintf(name, sizeof name, "memory/%016llx%016llx.bin", (unsigned long long)hash[0],
           (unsigned long long)hash[1]);
  int result = save(name, w->memory, w->size);
  if (result == 1) __atomic_add_fetch(&bytes_left, (int64_t)w->size, __ATOMIC_RELAXED); /* costs nothing */
  if (result < 0) {
    __atomic_store_n(&bytes_left, 0, __ATOMIC_RELAXED);
    note("memory is no longer kept", strerror(-result));
    return;
  }
  struct text s;
  begin_record(&s, "f", 2, w->number, N(w->size));
  put_next_quoted(&s, name);
  end_record(&s);
}

static int is_over(cl_event event) {
  cl_int status = 1;
  return REAL(clGetEventInfo)(event, CL_EVENT_STATUS, sizeof status, &status, NULL) || status <= CL_COMPLETE;
}

/* Take those out of the list that are over; in most queues what is not keeps all behind it waiting. */
static struct watched *take_those_over(void) {
  struct watched *over = NULL, **over_last = &over;
  int waiting = 0;
  for (struct watched **at = &first_watched; *at && waiting < 64;) {
    struct watched *w = *at;
    if (!is_over(w->event)) {
      waiting++;
      at = &w->next;
      continue;
    }
    *at = w->next;
    if (!*at) last_watched = at;
    w->next = NULL;
    *over_last = w;
    over_last = &w->next;
  }
  return over;
}

static void *watch_events(void *unused) {
  (void)unused;
  pthread_mutex_lock(&watch_lock);
  for (;;) {
    while (!first_watched && !watcher_ends) pthread_cond_wait(&watch_more, &watch_lock);
    struct watched *over = take_those_over();
    if (!over) {
      if (watcher_ends) break;
      pthread_mutex_unlock(&watch_lock);
      usleep(1000);
      pthread_mutex_lock(&watch_lock);
      continue;
    }
    pthread_mutex_unlock(&watch_lock);
    int count = 0;
    size_t bytes = 0;
    for (struct watched *next; over; over = next) {
      next = over->next;
      if (over->memory) record_memory(over);
      else record_times(over);
      REAL(clReleaseEvent)(over->event);
      free(over->memory);
      bytes += over->size;
      count++;
      free(over);
    }
    pthread_mutex_lock(&watch_lock);
    watched_count -= count;
    held_bytes -= bytes;
    pthread_cond_broadcast(&watch_less);
  }
  pthread_mutex_unlock(&watch_lock);
  return NULL;
}

static void start_watcher(void) { /* under watch_lock */
  if (watcher_runs) return;
  sigset_t all, old; /* signals are the program's own */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  watcher_ends = 0;
  watcher_runs = pthread_create(&watcher, NULL, watch_events, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Look after an event, which is released later; of memory that was read for a snapshot, or of a command. */
static void watch(cl_event event, int64_t number, void *memory, size_t size) {
  pthread_mutex_lock(&watch_lock);
  start_watcher();
  struct watched *w = watched_count < MOST_WATCHED || memory ? malloc(sizeof *w) : NULL;
  if (!w || !watcher_runs) {
    watch_untimed++;
    pthread_mutex_unlock(&watch_lock);
    free(w);
    if (!memory) REAL(clReleaseEvent)(event);
    return; /* what is being read into cannot be freed */
  }
  *w = (struct watched){event, number, memory, size, NULL};
  *last_watched = w;
  last_watched = &w->next;
  watched_count++;
  pthread_cond_signal(&watch_more);
  pthread_mutex_unlock(&watch_lock);
}

/* Wait until there is room for a copy of memory: at most 32 MiB are held at a time, or one copy. */
static int make_room(cl_command_queue queue, size_t size) {
  int there = 1, flushed = 0;
  pthread_mutex_lock(&watch_lock);
  while (held_bytes && held_bytes + size > ALWAYS_HELD && there) {
    if (!flushed) {
      pthread_mutex_unlock(&watch_lock);
      REAL(clFlush)(queue); /* what is not handed to the device never ends */
      flushed = 1;
      pthread_mutex_lock(&watch_lock);
      continue;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    there = pthread_cond_timedwait(&watch_less, &watch_lock, &until) == 0;
  }
  if (there) held_bytes += size;
  pthread_mutex_unlock(&watch_lock);
  return there;
}

static void leave_room(size_t size) {
  pthread_mutex_lock(&watch_lock);
  held_bytes -= size;
  pthread_mutex_unlock(&watch_lock);
}

/* Wait for what is still running as long as something ends; then stop the thread. Returns what did not end. */
static int end_watching(void) {
  int going = 1;
  pthread_mutex_lock(&watch_lock);
  while (watcher_runs && watched_count && going) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    going = pthread_cond_timedwait(&watch_less, &watch_lock, &until) == 0;
  }
  int left = watched_count, runs = watcher_runs;
  watcher_ends = 1;
  pthread_cond_broadcast(&watch_more);
  pthread_mutex_unlock(&watch_lock);
  if (runs && going) pthread_join(watcher, NULL);
  watcher_runs = 0;
  return left;
}

static void forget_watched(void) { /* in a child, which has none of its parent's threads */
  watcher_runs = watched_count = 0;
  held_bytes = 0;
  first_watched = NULL;
  last_watched = &first_watched;
  pthread_mutex_init(&watch_lock, NULL);
  pthread_cond_init(&watch_more, NULL);
  pthread_cond_init(&watch_less, NULL);
}
