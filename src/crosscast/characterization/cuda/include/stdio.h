/* printf is the device's; of the rest, what host code needs to be parsed. */
#pragma once
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
