/* Probe child: one request, one answer, until the agent closes the pipe or kills it. */
#include "agent/probe/probe_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/inventory/link_report_line.h"
#include "agent/probe/probe_driver.h"
#include "base/exit_code.h"
#include "io/write_all.h"

static void *open_library(const struct probe_driver *driver, const char *path)
{
        void *library = NULL;

        if (path[0] != '\0')
                return dlopen(path, RTLD_NOW | RTLD_LOCAL);
        for (size_t i = 0; library == NULL && i < PROBE_SONAMES_MAX && driver->sonames[i] != NULL; i++)
                library = dlopen(driver->sonames[i], RTLD_NOW | RTLD_LOCAL);
        return library;
}

static void take(void *userdata, const struct probe_sample *sample)
{
        probe_sample_encode(sample, userdata);
}

static void take_links(void *userdata, const struct link_report *report)
{
        link_report_line_encode(report, userdata);
}

static int ask(const struct probe_driver *driver, void *state, char request, struct text *out,
               struct err *err)
{
        if (request == PROBE_CHILD_REQUEST_SAMPLES)
                return driver->calls->sample(state, take, out, err);
        if (request == PROBE_CHILD_REQUEST_LINKS && driver->links && driver->calls->links != NULL)
                return driver->calls->links(state, take_links, out, err);
        return err_set(err, -EINVAL, "that is not known here");
}

/* The answer to one request: a line a device, then a line "end", or "error why". */
static bool answer(const struct probe_driver *driver, void *state, char request)
{
        struct text out = { 0 };
        struct err err = { 0 };
        bool written;

        if (ask(driver, state, request, &out, &err) < 0)
                text_printf(&out, "error %s\n", err.msg);
        else
                text_append(&out, "end\n");
        written = !out.failed && write_all(1, out.data, out.size_bytes) == 0;
        text_free(&out);
        return written;
}

/* The first of the vendor's libraries that is there and is what it is taken for. Return: 0 and *driver its
 * row, or the exit code. */
static int open_one(const struct probe_driver **driver, const char *path, void **ret_state)
{
        const char *vendor = (*driver)->vendor;
        struct err err = { 0 };
        int code = PROBE_CHILD_EXIT_ABSENT;

        for (const struct probe_driver *d = *driver; d->vendor != NULL && strcmp(d->vendor, vendor) == 0;
             d++) {
                void *library = open_library(d, path);

                if (library == NULL)
                        continue;
                if (probe_driver_open(d, library, ret_state, &err) == 0) {
                        *driver = d;
                        return 0;
                }
                code = PROBE_CHILD_EXIT_REFUSED;
        }
        if (code == PROBE_CHILD_EXIT_REFUSED)
                fprintf(stderr, "remuda-agent: probe of %s: %s\n", vendor, err.msg);
        return code;
}

/* A library that crashes again and again must not fill the node with cores, nor keep a core handler busy: one
 * byte is too little for a file, and the word for "no handler" (core(5), RLIMIT_CORE with a pipe). */
static void no_core(void)
{
        const struct rlimit limit = { .rlim_cur = 1, .rlim_max = 1 };

        (void) setrlimit(RLIMIT_CORE, &limit);
}

int probe_child_run(int argc, char **argv)
{
        const struct probe_driver *driver = argc == 4 ? probe_driver_find(argv[2]) : NULL;
        void *state = NULL;
        char request;
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* never without the agent */
        (void) prctl(PR_SET_NAME, "remuda-probe");
        no_core();
        if (driver == NULL)
                return EXIT_USAGE;
        r = open_one(&driver, argv[3], &state);
        if (r != 0)
                return r;
        while (read(0, &request, 1) == 1)
                if (!answer(driver, state, request))
                        break;
        _exit(0); /* a library's own exit handlers may hang */
}
