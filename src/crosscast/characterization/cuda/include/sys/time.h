/* What host code needs to be parsed. */
#pragma once
struct timeval {
  long tv_sec, tv_usec;
};
int gettimeofday(timeval *, void *);
