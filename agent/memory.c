/* Memory: where the state file is, when it is read, and when it is written. */
#include "agent/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"

#define RETRY_USEC UINT64_C(10000000)

/* A machine keeps its own state: this one in /var/lib, a directory that is read as one has it inside, once
 * there is something to remember; a machine file has none. */
static void choose_path(struct memory *m, const struct agent_options *options, bool live)
{
        const char *folder = getenv("STATE_DIRECTORY"), *root = options->root; /* systemd's */

        if (options->state != NULL) {
                if (strcmp(options->state, "none") != 0)
                        (void) text_copy(m->path, sizeof(m->path), options->state);
        } else if (folder != NULL && folder[0] == '/')
                (void) text_format(m->path, sizeof(m->path), "%s/agent.json", folder);
        else if (options->machine == NULL)
                (void) text_format(m->path, sizeof(m->path), "%s/var/lib/remuda/agent.json",
                                   live ? "" : root);
}

void memory_open(struct memory *m, const struct agent_options *options, bool live, struct log *log)
{
        CLEANUP(fclose_p) FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
        struct err err = { 0 };
        int r;

        if (boot != NULL && fgets(m->boot_id, sizeof(m->boot_id), boot) != NULL)
                m->boot_id[strcspn(m->boot_id, "\n")] = '\0';
        choose_path(m, options, live);
        m->own = live || options->state != NULL || getenv("STATE_DIRECTORY") != NULL;
        if (m->path[0] == '\0')
                return;
        r = state_file_load(m->path, &m->state, &err);
        if (r < 0 && r != -ENOENT)
                log_line(log, LOG_WARNING, "state", "discarded=true error=\"%s\"", err.msg);
        if (!memory_is_of_this_boot(m))
                numbers_free(&m->state.numbers); /* the machine may have been changed while it was off */
}

void memory_close(struct memory *m)
{
        state_file_free(&m->state);
}

bool memory_is_of_this_boot(const struct memory *m)
{
        return strcmp(m->state.boot_id, m->boot_id) == 0;
}

void memory_recall(const struct memory *m, struct judge_record *record)
{
        const struct state_file_device *saved = state_file_find(&m->state, record->device.id);

        if (saved == NULL)
                return;
        health_restore(&record->health, &saved->health, memory_is_of_this_boot(m),
                       clock_usec(CLOCK_BOOTTIME));
        record->device.since_usec = saved->since_usec;
        record->device.health = saved->health.verdict;
}

void memory_keep(struct memory *m, const struct services *services, const struct judge *judge,
                 uint64_t generation, uint64_t kernel_sequence)
{
        const struct state_file_rest rest = { .boot_id = m->boot_id,
                                              .generation = generation,
                                              .kernel_sequence = kernel_sequence,
                                              .numbers = &m->state.numbers,
                                              .always = m->own };
        uint64_t hash = state_file_hash(judge, rest.numbers), now = clock_monotonic_usec();
        struct err err = { 0 };

        if (m->path[0] == '\0' || hash == m->hash || now < m->retry_usec)
                return;
        if (state_file_save(m->path, judge, &rest, &err) < 0) {
                m->retry_usec = now + RETRY_USEC;
                services_event(services, "Warning", "StateNotPersisted", NULL,
                               "faults would not survive a restart: %s", err.msg);
                return;
        }
        m->hash = hash;
}
