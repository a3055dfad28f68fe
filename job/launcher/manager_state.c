/* The state as JSON, from the plan, the world and the groups; and the files that it is written to. */
#include "job/launcher/manager_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/whole_file.h"
#include "job/plan/event_json.h"

#define RESULT_MAX_BYTES 4096 /* of a container's termination message */

#define EVENTS_MAX 200 /* the latest; older ones are dropped */

void manager_state_event(struct manager *manager, const char *reason, const char *fmt, ...)
{
        char message[512];
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, values); /* cut to its field */
        va_end(values);
        log_say(manager->options->log, LOG_NOTICE, "manager", "%s: %s", reason, message);
        (void) event_json_add(manager->events, EVENTS_MAX, clock_realtime_usec(), reason, message);
}

static const char *group_state(const struct manager *manager, const struct manager_member *member)
{
        if (member->join == NULL)
                return member->was_there ? "lost" : "absent";
        if (!member->plan->used)
                return member->plan->spare ? "spare" : "joined";
        return manager->world.phase == WORLD_RUNNING                    ? "running"
               : manager->world.places[member - manager->members].ready ? "ready"
                                                                        : "joined";
}

static json_t *groups_json(const struct manager *manager)
{
        json_t *groups = json_array();

        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                const Subtask__Group *group = manager->plan->groups[i];
                bool used = group->used && manager->world.worlds > 0;

                (void) json_array_append_new(
                        groups,
                        json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:[I,I]}", "name", group->name,
                                  "state", group_state(manager, &manager->members[i]), "runtime",
                                  group->runtime, "chips", (json_int_t) group->chips, "address",
                                  group->address, "first_rank", (json_int_t) (used ? group->first_rank : 0),
                                  "batch", (json_int_t) (used ? group->batch : 0), "shard",
                                  (json_int_t) (used ? group->begin : 0),
                                  (json_int_t) (used ? group->end : 0)));
        }
        return groups;
}

/* By group: the SpeedTable is kept by program. */
static json_t *programs_json(const struct manager *manager)
{
        json_t *programs = json_object();

        for (size_t i = 0; i < manager->plan->n_groups; i++)
                if (manager->members[i].program_sha256[0] != '\0')
                        (void) json_object_set_new(programs, manager->plan->groups[i]->name,
                                                   json_string(manager->members[i].program_sha256));
        return programs;
}

static json_t *state_json(const struct manager *manager)
{
        json_t *state = engine_state(&manager->engine, manager->plan->job, manager->plan->world,
                                     manager->plan->samples);

        (void) json_object_set_new(state, "world_size", json_integer((json_int_t) manager->plan->world_size));
        (void) json_object_set_new(state, "groups", groups_json(manager));
        (void) json_object_set_new(state, "programs", programs_json(manager));
        (void) json_object_set(state, "events", manager->events);
        return state;
}

/* What does not fit is left out, the least wanted first. */
char *manager_state_text(const struct manager *manager, size_t max_bytes)
{
        static const char *const parts[] = { "programs", "events", "ranks", "groups", "message" };
        json_t *state = state_json(manager);
        char *text = NULL;

        for (size_t i = 0; state != NULL && i <= ARRAY_SIZE(parts); i++) {
                free(text);
                text = json_dumps(state, JSON_COMPACT | JSON_REAL_PRECISION(9));
                if (text == NULL || strlen(text) < max_bytes || i == ARRAY_SIZE(parts))
                        break;
                (void) json_object_del(state, parts[i]);
        }
        json_decref(state);
        return text;
}

void manager_state_write(void *userdata)
{
        const struct manager *manager = userdata;
        CLEANUP(free_p) char *text = NULL;
        struct err err = { 0 };

        if (manager->options->status == NULL)
                return;
        text = manager_state_text(manager, (size_t) 64 << 20);
        if (text != NULL && whole_file_write(manager->options->status, text, strlen(text), 0644, 0, &err) < 0)
                log_say(manager->options->log, LOG_WARNING, "manager", "--status: %s", err.msg);
}

/* In place: a container's termination message is a mounted file that nothing may be renamed to. */
void manager_state_write_result(const struct manager *manager)
{
        CLEANUP(free_p) char *text = NULL;
        CLEANUP(close_p) int fd = -1;

        if (manager->options->result == NULL)
                return;
        text = manager_state_text(manager, RESULT_MAX_BYTES);
        fd = open(manager->options->result, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (text == NULL || fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text))
                log_say(manager->options->log, LOG_WARNING, "manager", "--result: '%s': %s",
                        manager->options->result, strerror(errno));
}
