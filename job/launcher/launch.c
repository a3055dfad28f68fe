/* One program: looked up in its table, given its environment, supervised. */
#include "job/launcher/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "job/launcher/launch_client.h"

void launch_free(struct launch *launch)
{
        program_table_free(&launch->table);
        free(launch->argv);
        environment_free(&launch->environment);
        rank_file_free(&launch->rank);
        *launch = (struct launch){ 0 };
}

/* The agent answers with its own table's row for this runtime: good where this image has no table. */
static int take_agents_program(const struct launch_options *options,
                               const struct launch_client_answer *answer, struct launch *launch,
                               struct err *err)
{
        const json_t *body = answer->body;
        json_t *row = json_pack("{s:{s:{s:O, s:b}}}", "programs", options->runtime, "path",
                                json_object_get(body, "path"), "inherit",
                                json_is_true(json_object_get(body, "inherit")));
        json_t *entry = json_object_get(json_object_get(row, "programs"), options->runtime);
        int r;

        if (json_is_array(json_object_get(body, "args")))
                (void) json_object_set(entry, "args", json_object_get(body, "args"));
        if (json_is_array(json_object_get(body, "allowedEnvironment")))
                (void) json_object_set(entry, "environment", json_object_get(body, "allowedEnvironment"));
        if (json_string_length(json_object_get(body, "sha256")) > 0)
                (void) json_object_set(entry, "sha256", json_object_get(body, "sha256"));
        r = program_table_decode(row, &launch->table, err);
        json_decref(row);
        return r < 0 ? err_wrap(err, r, "the agent's answer") : 0;
}

static int choose_program(const struct launch_options *options, const struct launch_client_answer *answer,
                          struct launch *launch, int *exit_code, struct err *err)
{
        const char *path = options->programs == NULL ? PROGRAM_TABLE_PATH : options->programs;
        int r;

        if (options->programs == NULL && json_is_string(json_object_get(answer->body, "path")))
                r = take_agents_program(options, answer, launch, err);
        else
                r = program_file_load(path, &launch->table, err);
        if (r == 0) {
                launch->program = program_table_find(&launch->table, options->runtime);
                if (launch->program == NULL)
                        r = err_set(err, -ENOENT,
                                    "program table '%.200s' has no runtime '%.40s'; add it below `programs:` "
                                    "or ask for another runtime",
                                    path, options->runtime);
                else
                        r = program_file_check(launch->program,
                                               launch->program->sha256[0] == '\0' ? NULL : launch->sha256,
                                               err);
        }
        *exit_code = exit_code_of(r);
        return r;
}

static int build_argv(struct launch *launch, char *const *args, size_t arg_count)
{
        const struct program_table_row *program = launch->program;
        size_t n = 0;

        launch->argv = calloc(program->arg_count + arg_count + 2, sizeof(*launch->argv));
        if (launch->argv == NULL)
                return -ENOMEM;
        launch->argv[n++] = program->path;
        for (size_t i = 0; i < program->arg_count; i++)
                launch->argv[n++] = program->args[i];
        for (size_t i = 0; i < arg_count; i++)
                launch->argv[n++] = args[i];
        return 0;
}

static const char *found_value(char *const *found, const char *name_equals)
{
        for (; *found != NULL; found++)
                if (text_starts_with(*found, name_equals))
                        return *found + strlen(name_equals);
        return NULL;
}

static const char *rank_of(char *const *found)
{
        static const char *const names[] = { "OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", "RANK=" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (found_value(found, names[i]) != NULL)
                        return found_value(found, names[i]);
        return "0";
}

/* The agent knows which chips were given and what their runtime needs. Without it the environment has to do;
 * but its no is a no. Return: 0; -EKEYREJECTED; -EPERM (it is none). */
static int ask_agent(const struct launch_options *options, char *const *found,
                     struct launch_client_answer *answer, struct err *err)
{
        int r = options->socket == NULL
                        ? 0
                        : launch_client_ask(options->socket, options->runtime,
                                            found_value(found, "REMUDA_DEVICES="), answer, err);

        if (r == -EKEYREJECTED)
                return err_wrap(err, r, "the agent refuses");
        if (r == -EPERM)
                return r;
        if (r < 0)
                log_say(options->log, LOG_WARNING, "launch",
                        "the agent did not answer, using the environment: %s", err->msg);
        *err = (struct err){ 0 };
        return 0;
}

static int build_environment(const struct launch_options *options, const struct launch_client_answer *answer,
                             char *const *found, struct launch *launch, struct err *err)
{
        int r = environment_filter(&launch->environment, launch->program, found);

        if (r == 0 && options->rank_file != NULL) {
                r = rank_file_load(options->rank_file, rank_of(found), &launch->rank, err);
                if (r == 0)
                        r = rank_file_apply(&launch->rank, launch->program, &launch->environment, err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; r == 0 && i < answer->variable_count; i++)
                r = environment_set(&launch->environment, answer->names[i], answer->values[i]);
        if (r == 0)
                r = environment_set(&launch->environment, "REMUDA_RUNTIME", options->runtime);
        if (r == 0)
                r = environment_add_frameworks(&launch->environment, found);
        return r < 0 ? err_set(err, r, "the environment of the program cannot be built: %s", strerror(-r))
                     : 0;
}

int launch_prepare(const struct launch_options *options, char *const *args, size_t arg_count,
                   char *const *found, struct launch *ret, int *ret_exit_code, struct err *err)
{
        struct launch_client_answer answer = { 0 };
        int r;

        *ret = (struct launch){ 0 };
        *ret_exit_code = EXIT_NO_PERMISSION;
        r = ask_agent(options, found, &answer, err);
        if (r < 0)
                return r;
        r = choose_program(options, &answer, ret, ret_exit_code, err);
        if (r == 0) {
                *ret_exit_code = EXIT_FAILED;
                r = build_argv(ret, args, arg_count);
                if (r < 0)
                        (void) err_set(err, r, "no memory");
                else
                        r = build_environment(options, &answer, found, ret, err);
                if (r == -EINVAL || r == -E2BIG)
                        *ret_exit_code = EXIT_USAGE;
                if (r == -ENOENT)
                        *ret_exit_code = EXIT_NOT_FOUND;
                if (r == -EPERM)
                        *ret_exit_code = EXIT_NO_PERMISSION;
        }
        launch_client_answer_free(&answer);
        return r;
}

int launch_progress_fd(const struct launch *launch)
{
        const char *progress = environment_get(&launch->environment, "REMUDA_PROGRESS");
        uint64_t fd;

        return progress != NULL && text_parse_uint64(progress, &fd) == 0 && fd > 2 && fd < 1 << 20 ? (int) fd
                                                                                                   : -1;
}
