/* A failed assertion ends the kernel, by line. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : cc_assertion_failed())
#endif
