/* What host code needs to be parsed. */
#pragma once
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
