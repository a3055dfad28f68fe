/* Launch order: the body is read, the environment made, the process started. */
#include "agent/launch/launch_order.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define VARIABLES_MAX 256
#define ARGUMENTS_MAX (PROGRAM_ARGS_MAX + 256)

int launch_order_read(const struct json_field *root, struct launch_order *ret, struct err *err)
{
        static const char *const known[] = { "runtime",     "devices",   "chips", "args",
                                             "environment", "directory", NULL };
        struct json_field devices;
        int r;

        if ((r = json_field_is_object(root, err)) < 0 ||
            (r = json_field_only(root, known, JSON_FIELD_UNKNOWN, err)) < 0 ||
            (r = json_field_require(root, "runtime", err)) < 0 ||
            (r = json_field_text(root, "runtime", ret->runtime, sizeof(ret->runtime), err)) < 0 ||
            (r = json_field_text(root, "directory", ret->directory, sizeof(ret->directory), err)) < 0 ||
            (r = json_field_unsigned(root, "chips", 1, DEVICES_MAX, &ret->chips, err)) < 0 ||
            (r = json_field_array(root, "args", 256, &ret->args, err)) < 0 ||
            (r = json_field_array(root, "devices", DEVICES_MAX, &devices, err)) < 0 ||
            (r = json_field_object(root, "environment", &ret->environment, err)) < 0)
                return r;
        for (size_t i = 0; i < json_field_count(&devices); i++) {
                struct json_field at = json_field_at(&devices, i);
                const char *id = json_string_value(at.value);

                if (id == NULL || id[0] == '\0' || strchr(id, ',') != NULL)
                        return json_field_error(&at, err, "must be a device's id");
                text_printf(&ret->list, "%s%s", i > 0 ? "," : "", id);
        }
        for (size_t i = 0; i < json_field_count(&ret->args); i++) {
                struct json_field at = json_field_at(&ret->args, i);

                if (json_string_value(at.value) == NULL ||
                    strlen(json_string_value(at.value)) != json_string_length(at.value))
                        return json_field_error(&at, err, "must be a string");
        }
        return 0;
}

/* What the agent says comes first and stands alone: no word of an order takes its place. Of those, only what
 * the table lets through and REMUDA_* pass into the program's environment. */
static bool may_pass(const struct program_table_row *program, const char *name)
{
        return text_starts_with(name, "REMUDA_") || program_table_passes(program, name);
}

static bool add(char *variables[], size_t *n, const char *name, const char *value)
{
        char *line = NULL;

        if (asprintf(&line, "%s=%s", name, value) < 0)
                return false;
        variables[(*n)++] = line;
        return true;
}

static int make_environment(const struct program_table_row *program, const struct launch_order *o,
                            const json_t *ours, char *variables[], size_t max, struct err *err)
{
        const char *name;
        size_t n = 0;
        json_t *value;
        bool made;

        if (json_object_size(ours) + json_object_size(o->environment.value) + 2 > max)
                return err_set(err, -E2BIG, "environment: %zu variables, at most %zu pass",
                               json_object_size(o->environment.value), max - 2 - json_object_size(ours));
        made = add(variables, &n, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        json_object_foreach((json_t *) ours, name, value) made =
                made && add(variables, &n, name, json_string_value(value));
        json_object_foreach((json_t *) o->environment.value, name, value)
        {
                if (!json_is_string(value) || !may_pass(program, name))
                        return err_set(err, -EINVAL,
                                       "environment.%.60s: not a string that the program table lets through",
                                       name);
                if (strcmp(name, "PATH") != 0 && json_object_get(ours, name) == NULL)
                        made = made && add(variables, &n, name, json_string_value(value));
        }
        return made ? 0 : err_set(err, -ENOMEM, "no memory for the environment");
}

int launch_order_start(const struct launch_order *order, const struct caller *caller,
                       const struct program_table_row *program, const struct launch_choice *choice,
                       struct launches *launches, unsigned *ret_id, pid_t *ret_pid, struct err *err)
{
        char *variables[VARIABLES_MAX] = { NULL }, *argv[ARGUMENTS_MAX + 2] = { NULL };
        CLEANUP(free_p) char(*ids)[DEVICE_ID_BYTES] = calloc(choice->count + 1, sizeof(*ids));
        struct launches_request request = { .path = program->path,
                                            .argv = argv,
                                            .environment = variables,
                                            .directory =
                                                    order->directory[0] != '\0' ? order->directory : NULL,
                                            .caller = caller,
                                            .runtime = order->runtime,
                                            .device_count = choice->count };
        json_t *ours = launch_choice_environment(choice, false);
        size_t n = 0;
        int r = ids != NULL ? 0 : err_set(err, -ENOMEM, "no memory");

        argv[n++] = program->path;
        for (size_t i = 0; i < program->arg_count; i++)
                argv[n++] = program->args[i];
        for (size_t i = 0; i < json_field_count(&order->args); i++)
                argv[n++] = (char *) json_string_value(json_array_get(order->args.value, i));
        for (size_t i = 0; r == 0 && i < choice->count; i++)
                (void) text_copy(ids[i], sizeof(*ids), choice->devices[i]->id);
        request.devices = (const char(*)[DEVICE_ID_BYTES]) ids;
        if (r == 0)
                r = make_environment(program, order, ours, variables, VARIABLES_MAX, err);
        if (r == 0)
                r = launches_start(launches, &request, ret_id, ret_pid, err);
        for (size_t i = 0; variables[i] != NULL; i++)
                free(variables[i]);
        json_decref(ours);
        return r;
}
