/* The trace: a JSON array a line, in a file whose end is mapped.
 *
 * A line costs no system call, and is in the file even if the process is killed. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;

enum { VERSION = 1, WINDOW = 1 << 20, RESERVE = 512 };

static char folder[3800];
static atomic_int enabled, session; /* whether anything is recorded, and the number of the recording */
static atomic_int layer_active;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;

static u64 now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* A text that grows; most lines fit into `own`. */
struct text {
  char *at;
  size_t size, room;
  char own[1024];
};

static void begin_text(struct text *s) { s->at = s->own, s->size = 0, s->room = sizeof s->own; }

static void end_text(struct text *s) {
  if (s->at != s->own) free(s->at);
}

static void reserve(struct text *s, size_t more) {
  if (s->size + more <= s->room) return;
  size_t room = 2 * (s->size + more);
  char *at = malloc(room);
  if (!at) abort(); /* a few bytes for a line; a program without them does not live either */
  memcpy(at, s->at, s->size);
  end_text(s);
  s->at = at, s->room = room;
}

static void put_bytes(struct text *s, const char *bytes, size_t size) {
  reserve(s, size);
  memcpy(s->at + s->size, bytes, size);
  s->size += size;
}

static void put(struct text *s, const char *word) { put_bytes(s, word, strlen(word)); }

static void put_number(struct text *s, int64_t value) {
  char digits[24];
  int at = sizeof digits;
  u64 left = value < 0 ? -(u64)value : (u64)value;
  do digits[--at] = (char)('0' + left % 10);
  while (left /= 10);
  if (value < 0) digits[--at] = '-';
  put_bytes(s, digits + at, sizeof digits - (size_t)at);
}

static void put_numbers(struct text *s, size_t n, const size_t *values) {
  put(s, ",[");
  for (size_t i = 0; values && i < n; i++) {
    if (i) put(s, ",");
    put_number(s, (int64_t)values[i]);
  }
  put(s, "]");
}

/* Bytes that are not ASCII are written as their numbers, as Latin-1 has them: the reader turns them back. */
static void put_quoted(struct text *s, const char *text) {
  put(s, "\"");
  for (; text && *text; text++) {
    unsigned char c = (unsigned char)*text;
    char code[8];
    if (c == '"' || c == '\\') snprintf(code, sizeof code, "\\%c", c);
    else if (c < 32 || c > 126) snprintf(code, sizeof code, "\\u%04x", c);
    else code[0] = (char)c, code[1] = 0;
    put(s, code);
  }
  put(s, "\"");
}

static void put_hex(struct text *s, const void *value, size_t size) {
  static const char digits[] = "0123456789abcdef";
  reserve(s, 2 * size + 2);
  s->at[s->size++] = '"';
  for (size_t i = 0; i < size; i++) {
    unsigned char c = ((const unsigned char *)value)[i];
    s->at[s->size++] = digits[c >> 4];
    s->at[s->size++] = digits[c & 15];
  }
  s->at[s->size++] = '"';
}

/* Begin a record: its letter and numbers. `end_record` closes and writes it. */
static void begin_record(struct text *s, const char *letter, int n, ...) {
  begin_text(s);
  put(s, "[\"");
  put(s, letter);
  put(s, "\"");
  va_list numbers;
  va_start(numbers, n);
  for (int i = 0; i < n; i++) {
    put(s, ",");
    put_number(s, va_arg(numbers, int64_t));
  }
  va_end(numbers);
}
#define N(value) ((int64_t)(value))

static void put_next(struct text *s, int64_t number) {
  put(s, ",");
  put_number(s, number);
}

static void put_next_quoted(struct text *s, const char *text) {
  put(s, ",");
  put_quoted(s, text);
}

static int trace_file = -1;
static pid_t trace_process;
static char *window;
static size_t trace_size, window_start;

/* The next part of the file, whose blocks are there before they are mapped: a full disk is an error here, and
 * not a signal later. */
static int next_window(void) {
  if (window) munmap(window, WINDOW);
  window = NULL;
  window_start = trace_size & ~(size_t)4095;
  int error = posix_fallocate(trace_file, (off_t)window_start, WINDOW);
  if (!error) {
    void *at = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, trace_file, (off_t)window_start);
    if (at == MAP_FAILED) error = errno;
    else window = at;
  }
  return error;
}

static void append_bytes(const char *bytes, size_t size) {
  memcpy(window + (trace_size - window_start), bytes, size);
  trace_size += size;
}

/* No more is recorded. What is kept back at the end of each window has place for saying why. */
static void stop_recording(const char *why, int error) {
  enabled = 0;
  if (window) {
    char line[RESERVE];
    int size = snprintf(line, sizeof line, "[\"n\",\"%s\",\"%s\"]\n", why, strerror(error));
    if (size > 0 && (size_t)size < sizeof line) append_bytes(line, (size_t)size);
  }
}

static void append(const char *bytes, size_t size) {
  if (!window) return;
  if (trace_size + size + RESERVE > window_start + WINDOW) {
    char *last = window;
    size_t last_start = window_start;
    window = NULL;
    int error = size + RESERVE > WINDOW - 4096 ? EFBIG : next_window();
    if (error) {
      window = last, window_start = last_start;
      stop_recording("recording stopped", error);
      return;
    }
    munmap(last, WINDOW);
  }
  append_bytes(bytes, size);
}

static void open_trace(void) {
  char path[4096], program[2048] = "", command[4096] = "", where[2048] = "";
  trace_process = getpid();
  trace_size = window_start = 0;
  window = NULL;
  if (trace_file >= 0) close(trace_file);
  for (int i = 0; i < 1000; i++) {
    snprintf(path, sizeof path, "%s/trace-%d-%d.jsonl", folder, (int)trace_process, i);
    trace_file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (trace_file >= 0 || errno != EEXIST) break;
  }
  if (trace_file < 0 || next_window()) {
    enabled = 0;
    return;
  }
  ssize_t ignored = readlink("/proc/self/exe", program, sizeof program - 1);
  (void)ignored;
  int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t size = file >= 0 ? read(file, command, sizeof command - 1) : 0;
  if (file >= 0) close(file);
  for (ssize_t i = 0; i + 1 < size; i++)
    if (!command[i]) command[i] = ' ';
  struct timespec real;
  clock_gettime(CLOCK_REALTIME, &real);
  struct text s;
  begin_record(&s, "crosscast-trace", 5, N(VERSION), N(trace_process), N(getppid()), N(now_ns()),
               N(real.tv_sec) * 1000000000 + real.tv_nsec);
  put_next_quoted(&s, layer_active ? "layer" : "preload");
  put_next_quoted(&s, program);
  put_next_quoted(&s, command);
  put_next_quoted(&s, getcwd(where, sizeof where) ? where : "");
  put(&s, "]\n");
  append(s.at, s.size);
  end_text(&s);
}

static void end_record(struct text *s) {
  put(s, "]\n");
  pthread_mutex_lock(&trace_lock);
  if (enabled && trace_process != getpid()) open_trace();
  if (enabled) append(s->at, s->size);
  pthread_mutex_unlock(&trace_lock);
  end_text(s);
}

static void note(const char *what, const char *detail) {
  struct text s;
  begin_record(&s, "n", 0);
  put_next_quoted(&s, what);
  put_next_quoted(&s, detail);
  end_record(&s);
}

static void close_trace(void) {
  pthread_mutex_lock(&trace_lock);
  if (trace_file >= 0 && trace_process == getpid()) {
    if (window) munmap(window, WINDOW);
    window = NULL;
    int ignored = ftruncate(trace_file, (off_t)trace_size); /* else zeros end the file, and are ignored */
    (void)ignored;
    close(trace_file);
  }
  trace_file = -1;
  trace_process = 0;
  pthread_mutex_unlock(&trace_lock);
}

/* 0: written, 1: there already, below 0: failed. The name says the content, and only whole files have it. */
static int save(const char *name, const void *data, size_t size) {
  char path[4096], part[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (access(path, F_OK) == 0) return 1;
  snprintf(part, sizeof part, "%s.%d.part", path, (int)syscall(SYS_gettid));
  int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return -errno;
  const char *at = data;
  while (size) {
    ssize_t n = write(file, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int error = errno ? errno : EIO;
      close(file);
      unlink(part);
      return -error;
    }
    at += n, size -= (size_t)n;
  }
  close(file);
  return rename(part, path) ? -errno : 0;
}

/* 128 bits that say a content: four lanes of folded products. */
static inline u64 fold(u64 a, u64 b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (u64)product ^ (u64)(product >> 64);
}

static void hash_of(const void *data, size_t size, u64 out[2]) {
  static const u64 keys[4] = {0xA0761D6478BD642Fu, 0x8EBC6AF09C88C6E3u, 0x589965CC75374CC3u, 0x1D8E4E27C47D124Fu};
  const unsigned char *at = data;
  u64 h[4] = {0x9E3779B97F4A7C15u ^ size, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu, 0xD6E8FEB86659FD93u}, v[4];
  size_t left = size;
  for (; left >= 32; left -= 32, at += 32) {
    memcpy(v, at, 32);
    for (int i = 0; i < 4; i++) h[i] = fold(h[i] ^ v[i], keys[i]) + v[i];
  }
  unsigned char tail[32] = {0};
  memcpy(tail, at, left);
  memcpy(v, tail, 32);
  for (int i = 0; i < 4; i++) h[i] = fold(h[i] ^ v[i], keys[3 - i] + 2);
  out[0] = fold(h[0] ^ h[2], h[1] ^ keys[2]) ^ h[3];
  out[1] = fold(h[1] ^ h[3], h[0] ^ keys[3]) ^ h[2];
}
