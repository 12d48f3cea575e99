/* Of C's library, what types and constants need; memcpy, memset, printf and the functions of math.h are the device's.
 * As with nvcc, every program has all of it, whichever headers it includes. */
#ifndef CROSSCAST_LIBC_H
#define CROSSCAST_LIBC_H
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

typedef long time_t;
typedef long clock_t;
typedef long off_t;
typedef long ssize_t;
#define CLOCKS_PER_SEC 1000000
struct timeval {
  long tv_sec, tv_usec;
};
struct timespec {
  long tv_sec, tv_nsec;
};
typedef struct cc_file FILE;
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
#define EOF (-1)

#endif
