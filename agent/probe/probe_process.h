/* Probe process: the child that asks one vendor's library, as the agent sees it: a byte goes in, lines come
 * out, and whatever happens in between the agent never waits. A child that is killed and that the kernel does
 * not let die is left behind; how many of them there are is counted. */
#pragma once

#include <signal.h>
#include <systemd/sd-event.h>

#include "base/text.h"

struct probe_process_dying;

struct probe_process {
        sd_event *loop;
        const char *vendor;
        /* A line of the answer. Return: false = that is none of ours. */
        bool (*on_line)(void *userdata, const char *line, size_t size_bytes);
        /* It spoke nonsense; it still runs. */
        void (*on_nonsense)(void *userdata);
        /* It has ended by itself, or crashed. */
        void (*on_end)(void *userdata, const siginfo_t *info);
        void *userdata;

        pid_t pid; /* 0 = none runs */
        int in_fd, out_fd;
        sd_event_source *child_source, *out_source;
        struct text answer;                /* what is not a whole line yet */
        struct probe_process_dying *dying; /* killed, and not dead yet */
        unsigned dying_count;
};

/* probe_process_init() - nothing runs. @model: loop, vendor, callbacks */
void probe_process_init(struct probe_process *process, const struct probe_process *model);
void probe_process_free(struct probe_process *process); /* kills it */

/* probe_process_start() - @library: a path, or "" = where the vendor's is usually. Return: 0 or a negative
 * errno. */
int probe_process_start(struct probe_process *process, const char *library);

/* probe_process_request() - one of PROBE_CHILD_REQUEST_*. What comes of it is lines, an end, or silence. */
void probe_process_request(struct probe_process *process, char request);

/* probe_process_kill() - SIGKILL, and from now on somebody else's business: the loop reaps it whenever the
 * kernel lets it die. Nothing happens when none runs. */
void probe_process_kill(struct probe_process *process);
