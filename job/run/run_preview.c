/* Reads, places and cuts as a run does, and prints what came of it. */
#include "job/run/run_preview.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/program_file.h"
#include "base/exit_code.h"
#include "io/clock.h"
#include "job/spec/job_role.h"
#include "job/spec/job_yaml.h"

/* No program is started, so that those of machines that have none here are no fault; but whose speeds are
 * known is told by the programs that are. */
static int read_programs(struct run *run, struct err *err)
{
        const char *path = run->options->programs;

        if (strcmp(path, PROGRAM_TABLE_PATH) == 0 && access(path, R_OK) < 0)
                return 0;
        return program_file_load(path, &run->table, err);
}

static int prepare(struct run *run, const char *job_path, const json_t *document, struct err *err)
{
        char work[PATH_MAX];
        int r = job_yaml_decode(document, &run->job, err);

        if (r < 0)
                return err_wrap(err, r, "job file '%.200s'", job_path);
        r = run_read_split(&run->job, run->options->profile, run->options->replicas, err);
        if (r < 0)
                return r;
        if (realpath(run->options->work_dir, work) != NULL) /* may have a SpeedTable */
                (void) text_copy(run->work, sizeof(run->work), work);
        r = read_programs(run, err);
        if (r == 0)
                r = run_place(run, err);
        if (r < 0)
                return r;
        r = run_plan_cut(run, err);
        run_plan_place(run);
        return r;
}

/* "" = there is none. */
static void append_word(struct json_writer *json, const char *key, const char *word)
{
        if (word[0] == '\0')
                json_writer_null(json, key);
        else
                json_writer_string(json, key, word);
}

void run_preview_share(struct json_writer *json, const struct run_rank *rank)
{
        json_writer_uint64(json, "share", rank->batch);
        json_writer_uint64(json, "batch", rank->batch);
        append_word(json, "speed_source", rank->server ? "" : chip_speed_names[rank->speed_source]);
        append_word(json, "precision", rank->server ? "" : chip_speed_precision_names[rank->precision]);
}

static void append_json(const struct run *run, struct json_writer *json)
{
        json_writer_open(json, NULL, '{');
        json_writer_string(json, "job", run->job.name);
        json_writer_open(json, "ranks", '[');
        for (size_t i = 0; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];

                json_writer_open(json, NULL, '{');
                json_writer_uint64(json, "rank", i);
                json_writer_string(json, "node", rank->node[0] != '\0' ? rank->node : "localhost");
                json_writer_string(json, "device", rank->device);
                run_preview_share(json, rank);
                json_writer_close(json, '}');
        }
        json_writer_close(json, ']');
        json_writer_close(json, '}');
}

static void append_table(const struct run *run, struct text *out)
{
        text_printf(out, "%s: nothing is started\n%-5s %-7s %-20s %-40s %8s %-9s %s\n", run->job.name, "rank",
                    "role", "node", "device", "share", "speed", "precision");
        for (size_t i = 0; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];

                text_printf(out, "%-5zu %-7s %-20s %-40s %8llu %-9s %s\n", i, job_role_names[rank->server],
                            rank->node[0] != '\0' ? rank->node : "localhost", rank->device,
                            (unsigned long long) rank->batch,
                            rank->server ? "-" : chip_speed_names[rank->speed_source],
                            rank->server ? "-" : chip_speed_precision_names[rank->precision]);
        }
}

static int preview_one(const struct run_options *options, const char *job_path, const json_t *document,
                       struct json_writer *json, struct text *out)
{
        struct run run = { .lock = -1,
                           .checkpoint_lock = -1,
                           .options = options,
                           .events = json_array(),
                           .started_usec = clock_monotonic_usec() };
        struct err err = { 0 };
        int r;

        job_init(&run.job);
        r = prepare(&run, job_path, document, &err);
        if (r < 0)
                (void) fprintf(stderr, "remuda run: %s\n", err.msg);
        else if (json != NULL)
                append_json(&run, json);
        else
                append_table(&run, out);
        run_free(&run);
        return r == -EBUSY ? EXIT_FAILED : r < 0 ? exit_code_of(r) : EXIT_DONE;
}

int run_preview(const struct run_options *options, const char *job_path, const json_t *documents)
{
        size_t count = json_array_size(documents);
        bool as_json = strcmp(options->output, "json") == 0;
        struct text out = { 0 };
        struct json_writer json = { .text = &out };
        int worst = EXIT_DONE;

        if (as_json && count > 1) {
                json_writer_open(&json, NULL, '{');
                json_writer_open(&json, "jobs", '[');
        }
        for (size_t i = 0; i < count && worst == EXIT_DONE; i++)
                worst = preview_one(options, job_path, json_array_get(documents, i), as_json ? &json : NULL,
                                    &out);
        if (as_json && count > 1) {
                json_writer_close(&json, ']');
                json_writer_close(&json, '}');
        }
        if (worst == EXIT_DONE && (out.failed || fputs(out.data, stdout) < 0 || fflush(stdout) != 0)) {
                (void) fprintf(stderr, "remuda run: the plan could not be written\n");
                worst = EXIT_FAILED;
        }
        text_free(&out);
        return worst;
}
