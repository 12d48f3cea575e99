/* What is measured on a CPU without OpenCL: the kernels of kernels.cl, by threads with a piece of each array. */

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

typedef float words __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(64)));
typedef uint32_t integers __attribute__((vector_size(64)));
enum { EMPTY, READ, WRITE, COPY, SCATTERED, FP32, FP64, INT32, INT32_ADD, TRANSCENDENTAL, ATOMICS };

struct task {
    int what, thread, threads;
    words *data;
    uint64_t count, passes;
    float x, y;
    pthread_barrier_t *barrier;
    volatile float result;
    double from, to;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

#define CHAINS(type, lane, step)                                                                   \
    {                                                                                              \
        type x = (type){} + (lane)task->x, y = (type){} + (lane)task->y, v[10];                    \
        for (int i = 0; i < 10; i++)                                                               \
            v[i] = (type){} + (lane)(task->thread + i);                                            \
        for (uint64_t n = 0; n < task->passes; n++)                                                \
            for (int i = 0; i < 10; i++)                                                           \
                v[i] = step;                                                                       \
        for (int i = 0; i < 10; i++)                                                               \
            sum += (float)(v[i][0] + v[i][3]);                                                     \
        break;                                                                                     \
    }

static void *run(void *given)
{
    struct task *task = given;
    uint64_t piece = (task->count + task->threads - 1) / task->threads, first = piece * task->thread;
    uint64_t end = first + piece < task->count ? first + piece : task->count;
    words *data = task->data, total = {};
    float sum = 0;
    pthread_barrier_wait(task->barrier);
    task->from = now();
    switch (task->what) {
    case READ:
        for (uint64_t pass = 0; pass < task->passes; pass++) {
            words a = {}, b = {}, c = {}, d = {};
            uint64_t i = first;
            for (; i + 4 <= end; i += 4)
                a += data[i], b += data[i + 1], c += data[i + 2], d += data[i + 3];
            for (; i < end; i++)
                a += data[i];
            total += a + b + c + d;
        }
        break;
    case WRITE:
        for (uint64_t pass = 0; pass < task->passes; pass++) {
            words v = (words){} + (float)pass + task->x;
            for (uint64_t i = first; i < end; i++)
                data[i] = v;
            __asm__ volatile("" ::: "memory");
        }
        break;
    case COPY:
        for (uint64_t pass = 0; pass < task->passes; pass++) {
            for (uint64_t i = first; i < end; i++)
                data[task->count + i] = data[i];
            __asm__ volatile("" ::: "memory");
        }
        break;
    case SCATTERED: {
        uint32_t place = task->thread * 2654435761u + 1u;
        float *all = (float *)data;
        for (uint64_t pass = 0; pass < task->passes; pass++) {
            place = place * 1664525u + 1013904223u;
            sum += all[(place >> 4) & (task->count - 1u)];
        }
        break;
    }
    case FP32:
        CHAINS(words, float, v[i] * x + y)
    case FP64:
        CHAINS(doubles, double, v[i] * x + y)
    case INT32:
        CHAINS(integers, uint32_t, v[i] * x + y)
    case INT32_ADD:
        CHAINS(integers, uint32_t, (v[i] + y) ^ x)
    case TRANSCENDENTAL: {
        float v[10];
        for (int i = 0; i < 10; i++)
            v[i] = task->thread + i;
        for (uint64_t n = 0; n < task->passes; n++)
            for (int i = 0; i < 10; i++)
                v[i] = expf(v[i] * task->x);
        for (int i = 0; i < 10; i++)
            sum += v[i];
        break;
    }
    case ATOMICS: {
        int *own = (int *)(data + task->thread);
        for (uint64_t n = 0; n < task->passes; n++)
            __atomic_fetch_add(own, 1, __ATOMIC_RELAXED);
        break;
    }
    }
    for (int i = 0; i < 16; i++)
        sum += total[i];
    task->result = sum;
    task->to = now();
    return 0;
}

/* Seconds of one run by all threads, from the first's start to the last's end; -1 if threads cannot be made. */
__attribute__((visibility("default"))) double measure(int what, int threads, void *data, uint64_t count,
                                                      uint64_t passes, float x, float y)
{
    enum { MOST = 1024 };
    static struct task tasks[MOST];
    static pthread_t ids[MOST];
    pthread_barrier_t barrier;
    if (threads > MOST)
        threads = MOST;
    pthread_barrier_init(&barrier, 0, threads);
    for (int i = 0; i < threads; i++) {
        tasks[i] = (struct task){what, i, threads, data, count, passes, x, y, &barrier, 0, 0, 0};
        if (pthread_create(&ids[i], 0, run, &tasks[i]))
            return -1;
    }
    double from = INFINITY, to = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], 0);
        from = tasks[i].from < from ? tasks[i].from : from;
        to = tasks[i].to > to ? tasks[i].to : to;
    }
    pthread_barrier_destroy(&barrier);
    return to - from;
}
