/* Peers of `crosscast calibrate`: the copy and triad of STREAM (McCalpin 1995), and multiply-adds in registers,
 * each by `threads` threads. */

#include <pthread.h>
#include <stdint.h>
#include <time.h>

typedef float vector __attribute__((vector_size(32)));
enum { COPY, TRIAD, FMA };

struct part {
    int what;
    double *a, *b, *c;
    uint64_t count, repeats;
    pthread_barrier_t *barrier;
    double from, to;
    volatile float result;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void *run(void *given)
{
    struct part *part = given;
    pthread_barrier_wait(part->barrier);
    part->from = now();
    if (part->what == COPY) {
        for (uint64_t i = 0; i < part->count; i++)
            part->c[i] = part->a[i];
    } else if (part->what == TRIAD) {
        for (uint64_t i = 0; i < part->count; i++)
            part->a[i] = part->b[i] + 3.0 * part->c[i];
    } else {
        vector x = (vector){} + 0.999f, y = (vector){} + 0.001f, v[12];
        float sum = 0;
        for (int i = 0; i < 12; i++)
            v[i] = (vector){} + (float)(i + 2); /* not 1, which a multiply-add leaves as it is */
        for (uint64_t n = 0; n < part->repeats; n++)
            for (int i = 0; i < 12; i++)
                v[i] = v[i] * x + y;
        for (int i = 0; i < 12; i++)
            sum += v[i][0] + v[i][5];
        part->result = sum;
    }
    part->to = now();
    return 0;
}

/* Seconds from the first thread's start to the last one's end; `arrays` has three of `count` doubles. */
__attribute__((visibility("default"))) double peer(int what, int threads, double *arrays, uint64_t count,
                                                   uint64_t repeats)
{
    enum { MOST = 256 };
    static struct part parts[MOST];
    static pthread_t ids[MOST];
    pthread_barrier_t barrier;
    if (threads > MOST)
        return -1;
    pthread_barrier_init(&barrier, 0, threads);
    uint64_t each = count / threads;
    for (int i = 0; i < threads; i++) {
        double *a = arrays + i * each;
        parts[i] = (struct part){what, a, a + count, a + 2 * count, each, repeats, &barrier, 0, 0, 0};
        if (pthread_create(&ids[i], 0, run, &parts[i]))
            return -1;
    }
    double from = 1e300, to = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], 0);
        from = parts[i].from < from ? parts[i].from : from;
        to = parts[i].to > to ? parts[i].to : to;
    }
    pthread_barrier_destroy(&barrier);
    return to - from;
}
