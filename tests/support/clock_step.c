/* A preloaded library for tests: the wall clock of one program is off by as many seconds as the file
 * $CLOCK_STEP holds (eight bytes, the machine's order), and jumps when the file is written. Monotonic clocks
 * are left alone, as a clock that is set leaves them. Built by the tests that use it. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step;

static int64_t seconds(void)
{
        const char *path = getenv("CLOCK_STEP");
        int fd = step == NULL && path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

        if (fd >= 0) {
                void *map = mmap(NULL, sizeof(*step), PROT_READ, MAP_SHARED, fd, 0);

                (void) close(fd);
                if (map != MAP_FAILED)
                        step = map;
        }
        return step != NULL ? *step : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
        static int (*real)(clockid_t, struct timespec *);
        int r;

        if (real == NULL)
                *(void **) &real = dlsym(RTLD_NEXT, "clock_gettime");
        r = real(clock, now);
        if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
                now->tv_sec += (time_t) seconds();
        return r;
}

time_t time(time_t *ret)
{
        struct timespec now;

        (void) clock_gettime(CLOCK_REALTIME, &now);
        if (ret != NULL)
                *ret = now.tv_sec;
        return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
        struct timespec now;

        (void) zone;
        (void) clock_gettime(CLOCK_REALTIME, &now);
        *ret = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
        return 0;
}
