/* C's headers, which the compiler has, under C++'s names. */
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
