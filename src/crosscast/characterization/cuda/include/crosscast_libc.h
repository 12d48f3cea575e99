/* Of C's library, what host code needs to be parsed; memcpy, memset, printf and the functions of math.h are the
 * device's. Every CUDA and HIP program has all of it, whichever headers it includes. */
#ifndef CROSSCAST_LIBC_H
#define CROSSCAST_LIBC_H
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* string.h */
size_t strlen(const char *);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
int memcmp(const void *, const void *, size_t);
char *strcpy(char *, const char *);

/* time.h */
typedef long time_t;
time_t time(time_t *);
#define CLOCKS_PER_SEC 1000000
struct timeval {
  long tv_sec, tv_usec;
};
int gettimeofday(timeval *, void *);

/* stdlib.h */
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
void exit(int);
void abort();
int rand();
void srand(unsigned);
int atoi(const char *);
long atol(const char *);
double atof(const char *);

/* stdio.h */
typedef struct cc_file FILE;
extern FILE *stdin, *stdout, *stderr;
#define EOF (-1)
template <class... T> int fprintf(FILE *, const char *, T...);
template <class... T> int sprintf(char *, const char *, T...);
template <class... T> int snprintf(char *, size_t, const char *, T...);
template <class... T> int fscanf(FILE *, const char *, T...);
template <class... T> int scanf(const char *, T...);
template <class... T> int sscanf(const char *, const char *, T...);
FILE *fopen(const char *, const char *);
int fclose(FILE *);
int fflush(FILE *);
int puts(const char *);
int putchar(int);
void perror(const char *);
size_t fread(void *, size_t, size_t, FILE *);
size_t fwrite(const void *, size_t, size_t, FILE *);

#endif
