/* One rank's entry, found and applied. */
#include "job/launcher/rank_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

void rank_file_free(struct rank_file_entry *entry)
{
        json_decref(entry->file);
        *entry = (struct rank_file_entry){ 0 };
}

static int find_rank(const char *rank, struct rank_file_entry *entry, struct err *err)
{
        const json_t *ranks = json_object_get(entry->file, "ranks"), *found;
        uint64_t index;

        if (text_parse_uint64(rank, &index) < 0)
                return err_set(err, -EINVAL, "rank '%.40s' is not a number", rank);
        found = json_array_get(ranks, (size_t) index);
        if (!json_is_object(found))
                return err_set(err, -EINVAL, "no entry for rank %.40s among %zu", rank,
                               json_array_size(ranks));
        entry->environment = json_object_get(found, "environment");
        entry->stdout_path = json_string_value(json_object_get(found, "stdout"));
        entry->stderr_path = json_string_value(json_object_get(found, "stderr"));
        entry->report_path = json_string_value(json_object_get(found, "report"));
        return 0;
}

int rank_file_load(const char *path, const char *rank, struct rank_file_entry *ret, struct err *err)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        json_error_t error;
        int r;

        *ret = (struct rank_file_entry){ 0 };
        if (f == NULL)
                return err_set(err, -errno, "rank file '%.200s': %m", path);
        ret->file = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
        if (ret->file == NULL)
                return err_set(err, -EINVAL, "rank file '%.200s': line %d: %.160s", path, error.line,
                               error.text);
        r = find_rank(rank, ret, err);
        if (r < 0) {
                rank_file_free(ret);
                return err_wrap(err, r, "rank file '%.200s'", path);
        }
        return 0;
}

int rank_file_apply(const struct rank_file_entry *entry, const struct program_table_row *program,
                    struct environment *environment, struct err *err)
{
        const char *name;
        json_t *value;

        json_object_foreach((json_t *) entry->environment, name, value)
        {
                int r;

                if (program_table_loads(name) && !program_table_passes(program, name))
                        return err_set(err, -EPERM,
                                       "'%.100s' brings other code into a program: the table's row of %s has "
                                       "to list it under environment",
                                       name, program->runtime);
                r = json_is_string(value) ? environment_set(environment, name, json_string_value(value))
                                          : -EINVAL;
                if (r < 0)
                        return err_set(err, r, "rank file: variable '%.100s': %s", name, strerror(-r));
        }
        return 0;
}
