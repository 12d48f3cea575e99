/* What host code needs to be parsed. */
#pragma once
typedef long time_t;
time_t time(time_t *);
#define CLOCKS_PER_SEC 1000000
struct timeval {
  long tv_sec, tv_usec;
};
int gettimeofday(timeval *, void *);
