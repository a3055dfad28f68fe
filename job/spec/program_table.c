/* The rows of a program table, read and checked. */
#include "job/spec/program_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static bool runtime_is_valid(const char *runtime)
{
        size_t length = strlen(runtime);

        return length > 0 && length < PROGRAM_RUNTIME_BYTES &&
               strspn(runtime, "abcdefghijklmnopqrstuvwxyz0123456789-") == length && runtime[0] != '-';
}

static bool name_is_valid(const char *name)
{
        static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
        size_t length = strlen(name);

        return length > 0 && strchr(first, name[0]) != NULL &&
               strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == length;
}

/* A JSON string without a NUL inside, which C would silently cut short. */
static const char *plain_string(const json_t *value)
{
        const char *s = json_string_value(value);

        return s != NULL && strlen(s) == json_string_length(value) ? s : NULL;
}

static int decode_path(const char *runtime, const json_t *value, struct program *program, struct err *err)
{
        const char *path = plain_string(value);

        if (path == NULL)
                return err_set(err, -EINVAL,
                               "programs.%s.path: a string is needed; give the absolute path of the program",
                               runtime);
        if (path[0] != '/')
                return err_set(err, -EINVAL, "programs.%s.path: '%.100s' is not absolute; begin it with '/'",
                               runtime, path);
        if (strlen(path) >= PROGRAM_PATH_MAX_BYTES)
                return err_set(err, -EINVAL, "programs.%s.path: longer than %d bytes; use a shorter path",
                               runtime, PROGRAM_PATH_MAX_BYTES - 1);
        program->path = strdup(path);
        return program->path == NULL ? err_set(err, -ENOMEM, "no memory for the program table") : 0;
}

/* A list of strings into a NULL-terminated array. */
static int decode_list(const char *runtime, const char *field, const json_t *value, size_t max, char ***ret,
                       size_t *ret_count, struct err *err)
{
        size_t count = json_array_size(value);

        if (!json_is_array(value))
                return err_set(err, -EINVAL, "programs.%s.%s: a list of strings is needed, such as [a, b]",
                               runtime, field);
        if (count > max)
                return err_set(err, -EINVAL, "programs.%s.%s: %zu entries; at most %zu are allowed", runtime,
                               field, count, max);
        *ret = calloc(count + 1, sizeof(**ret));
        if (*ret == NULL)
                return err_set(err, -ENOMEM, "no memory for the program table");
        for (size_t i = 0; i < count; i++) {
                const char *s = plain_string(json_array_get(value, i));

                if (s == NULL)
                        return err_set(err, -EINVAL,
                                       "programs.%s.%s[%zu]: a string is needed; put it in quotes", runtime,
                                       field, i);
                (*ret)[i] = strdup(s);
                if ((*ret)[i] == NULL)
                        return err_set(err, -ENOMEM, "no memory for the program table");
                *ret_count = i + 1;
        }
        return 0;
}

static int check_environment(const struct program *program, struct err *err)
{
        for (size_t i = 0; i < program->environment_count; i++)
                if (!name_is_valid(program->environment[i]))
                        return err_set(err, -EINVAL,
                                       "programs.%s.environment[%zu]: '%.100s' is not the name of a "
                                       "variable; letters, "
                                       "digits and '_' alone, no value and no '*'",
                                       program->runtime, i, program->environment[i]);
        return 0;
}

static int decode_sha256(const char *runtime, const json_t *value, struct program *program, struct err *err)
{
        const char *digits = plain_string(value);

        if (digits == NULL || strlen(digits) != SHA256_HEX_BYTES - 1 ||
            strspn(digits, "0123456789abcdefABCDEF") != SHA256_HEX_BYTES - 1)
                return err_set(err, -EINVAL,
                               "programs.%s.sha256: '%.80s' is not 64 hexadecimal digits in quotes; "
                               "`sha256sum PROGRAM` "
                               "prints them",
                               runtime, digits == NULL ? "(no string)" : digits);
        for (size_t i = 0; i < SHA256_HEX_BYTES; i++)
                program->sha256[i] =
                        digits[i] >= 'A' && digits[i] <= 'F' ? (char) (digits[i] - 'A' + 'a') : digits[i];
        return 0;
}

static int decode_field(const char *field, const json_t *value, struct program *program, struct err *err)
{
        const char *runtime = program->runtime;

        if (strcmp(field, "path") == 0)
                return decode_path(runtime, value, program, err);
        if (strcmp(field, "args") == 0)
                return decode_list(runtime, field, value, PROGRAM_ARGS_MAX, &program->args,
                                   &program->arg_count, err);
        if (strcmp(field, "environment") == 0) {
                int r = decode_list(runtime, field, value, PROGRAM_ENVIRONMENT_MAX, &program->environment,
                                    &program->environment_count, err);

                return r < 0 ? r : check_environment(program, err);
        }
        if (strcmp(field, "sha256") == 0)
                return decode_sha256(runtime, value, program, err);
        return err_set(err, -EINVAL,
                       "programs.%s.%.100s: no such field; a program has path, args, environment and sha256",
                       runtime, field);
}

static int decode_program(const char *runtime, const json_t *value, struct program *program, struct err *err)
{
        const char *field;
        json_t *member;

        if (!runtime_is_valid(runtime))
                return err_set(err, -EINVAL,
                               "programs.%.60s: not the name of a runtime; small letters, digits and '-', at "
                               "most %d, such "
                               "as cuda or cpu",
                               runtime, PROGRAM_RUNTIME_BYTES - 1);
        (void) text_copy(program->runtime, sizeof(program->runtime), runtime);
        if (!json_is_object(value))
                return err_set(err, -EINVAL, "programs.%s: a mapping is needed, such as {path: /opt/train}",
                               runtime);
        json_object_foreach((json_t *) value, field, member)
        {
                int r = decode_field(field, member, program, err);

                if (r < 0)
                        return r;
        }
        if (program->path == NULL)
                return err_set(err, -EINVAL,
                               "programs.%s.path: missing; give the absolute path of the program", runtime);
        return 0;
}

static int decode_programs(const json_t *programs, struct program_table *table, struct err *err)
{
        const char *runtime;
        json_t *member;

        if (!json_is_object(programs))
                return err_set(
                        err, -EINVAL,
                        "programs: a mapping of runtimes is needed, such as {cpu: {path: /opt/train}}");
        if (json_object_size(programs) > PROGRAM_TABLE_MAX)
                return err_set(err, -EINVAL, "programs: %zu runtimes; at most %d are allowed",
                               json_object_size(programs), PROGRAM_TABLE_MAX);
        table->programs = calloc(json_object_size(programs) + 1, sizeof(*table->programs));
        if (table->programs == NULL)
                return err_set(err, -ENOMEM, "no memory for the program table");
        json_object_foreach((json_t *) programs, runtime, member)
        {
                int r = decode_program(runtime, member, &table->programs[table->count++], err);

                if (r < 0)
                        return r;
        }
        return 0;
}

int program_table_decode(const json_t *value, struct program_table *ret, struct err *err)
{
        const char *field;
        json_t *member;
        int r;

        *ret = (struct program_table){ 0 };
        if (!json_is_object(value) || json_object_get(value, "programs") == NULL)
                return err_set(err, -EINVAL,
                               "programs: missing; a table begins with `programs:` and lists runtimes below");
        json_object_foreach(
                (json_t *) value, field,
                member) if (strcmp(field, "programs") !=
                            0) return err_set(err, -EINVAL,
                                              "%.100s: no such field; a table has `programs:` alone", field);

        r = decode_programs(json_object_get(value, "programs"), ret, err);
        if (r < 0)
                program_table_free(ret);
        return r;
}

static void free_list(char **list, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(list[i]);
        free(list);
}

void program_table_free(struct program_table *table)
{
        if (table == NULL)
                return;
        for (size_t i = 0; i < table->count; i++) {
                free(table->programs[i].path);
                free_list(table->programs[i].args, table->programs[i].arg_count);
                free_list(table->programs[i].environment, table->programs[i].environment_count);
        }
        free(table->programs);
        *table = (struct program_table){ 0 };
}

const struct program *program_table_find(const struct program_table *table, const char *runtime)
{
        for (size_t i = 0; i < table->count; i++)
                if (strcmp(table->programs[i].runtime, runtime) == 0)
                        return &table->programs[i];
        return NULL;
}
