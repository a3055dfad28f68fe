/* Launch programs: the table is kept, and each program's hash as long as its file is the same. */
#include "agent/launch/launch_programs.h"

#include <errno.h>
#include <string.h>

#include "agent/launch/program_file.h"
#include "base/metrics.h"
#include "planner/speeds/speed_table.h"

static const char *const result_names[LAUNCH_PROGRAMS_RESULT_COUNT] = { "answered", "refused", "started",
                                                                        "finished", "failed" };

static struct launch_programs_known *known_of(struct launch_programs *p, const char *runtime)
{
        for (size_t i = 0; i < p->known_count; i++)
                if (strcmp(p->known[i].runtime, runtime) == 0)
                        return &p->known[i];
        if (program_table_find(&p->table, runtime) == NULL || p->known_count >= PROGRAM_TABLE_MAX)
                return &p->known[PROGRAM_TABLE_MAX];
        (void) text_copy(p->known[p->known_count].runtime, sizeof(p->known[0].runtime), runtime);
        return &p->known[p->known_count++];
}

void launch_programs_count(struct launch_programs *p, const char *runtime, enum launch_programs_result result)
{
        known_of(p, runtime)->results[result]++;
}

/* The content's hash, read again only when the file is another one. */
int launch_programs_check(struct launch_programs *p, const struct program_table_row *program, struct err *err)
{
        struct launch_programs_known *k = known_of(p, program->runtime);
        char sha256[SHA256_HEX_BYTES];
        struct stat st;
        int r;

        if (k->sha256[0] != '\0' && stat(program->path, &st) == 0 && st.st_dev == k->dev &&
            st.st_ino == k->ino && st.st_ctim.tv_sec == k->changed.tv_sec &&
            st.st_ctim.tv_nsec == k->changed.tv_nsec &&
            (program->sha256[0] == '\0' || strcmp(program->sha256, k->sha256) == 0))
                return 0;
        k->sha256[0] = '\0';
        st = (struct stat){ 0 };
        (void) stat(program->path, &st); /* before it is read: what is changed meanwhile is read again */
        r = program_file_check(program, sha256, err);
        if (r < 0)
                return r;
        (void) text_copy(k->sha256, sizeof(k->sha256), sha256);
        k->dev = st.st_dev;
        k->ino = st.st_ino;
        k->changed = st.st_ctim; /* unlike st_mtim, nobody sets it back */
        return 0;
}

void launch_programs_load(struct launch_programs *p, const char *path, bool required, struct log *log)
{
        struct program_table table;
        struct err err = { 0 };
        int r = program_file_load(path, &table, &err);

        if (r == -ENOENT && !required) { /* no table is a normal state */
                launch_programs_free(p);
                return;
        }
        if (r < 0) {
                log_line(log, LOG_ERR, "programs", "keeping=last error=\"%s\"", err.msg);
                return;
        }
        program_table_free(&p->table);
        p->table = table;
        for (size_t i = 0; i < table.count; i++)
                if (launch_programs_check(p, &table.programs[i], &err) < 0)
                        log_line(log, LOG_WARNING, "programs", "runtime=%s error=\"%s\"",
                                 table.programs[i].runtime, err.msg);
}

void launch_programs_free(struct launch_programs *p)
{
        program_table_free(&p->table);
        p->table = (struct program_table){ .count = 0 };
}

const struct program_table_row *launch_programs_find(const struct launch_programs *p, const char *runtime,
                                                     struct err *err)
{
        const struct program_table_row *program = program_table_find(&p->table, runtime);

        if (program == NULL)
                (void) err_set(err, -ENOENT, "no program for runtime '%s' in the program table", runtime);
        return program;
}

const char *launch_programs_sha256(struct launch_programs *p, const char *runtime)
{
        return known_of(p, runtime)->sha256;
}

void launch_programs_fill(const struct launch_programs *p, struct inventory *inventory)
{
        for (size_t i = 0; i < p->known_count && inventory->program_count < PROGRAMS_MAX; i++) {
                struct inventory_program *to = &inventory->programs[inventory->program_count];
                const struct program_table_row *row = program_table_find(&p->table, p->known[i].runtime);

                if (p->known[i].sha256[0] == '\0' || row == NULL)
                        continue;
                (void) text_copy(to->runtime, sizeof(to->runtime), p->known[i].runtime);
                (void) text_copy(to->sha256, sizeof(to->sha256), p->known[i].sha256);
                if (row->arg_count > 0)
                        speed_table_program(to->sha256, row->args, row->arg_count, to->speed_name);
                inventory->program_count++;
        }
}

void launch_programs_metrics(const struct launch_programs *p, struct text *page)
{
        metrics_family(page, "remuda_launches_total", METRIC_COUNTER,
                       "Questions and orders at the launch door, and how launched programs ended");
        for (size_t i = 0; p != NULL && i <= PROGRAM_TABLE_MAX; i++) {
                const struct launch_programs_known *k = &p->known[i];

                if (i >= p->known_count && i < PROGRAM_TABLE_MAX)
                        continue;
                for (int r = 0; r < LAUNCH_PROGRAMS_RESULT_COUNT; r++)
                        metrics_sample_uint64(
                                page, "remuda_launches_total",
                                METRIC_LABELS({ "runtime", i < PROGRAM_TABLE_MAX ? k->runtime : "other" },
                                              { "result", result_names[r] }),
                                k->results[r]);
        }
}
