/* memcpy and memset are the device's too; of the rest, what host code needs to be parsed. */
#pragma once
size_t strlen(const char *);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
int memcmp(const void *, const void *, size_t);
char *strcpy(char *, const char *);
