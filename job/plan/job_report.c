/* The rows of a report. */
#include "job/plan/job_report.h"

#include <errno.h>
#include <math.h>

#include "base/json/json_table.h"
#include "job/world/progress.h"
#include "planner/shards/live_shares.h"

#define EVENTS_MAX 1024

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct job_report_rank, member)
static const struct json_table_row rank_rows[] = {
        { "group",         JSON_TABLE_CHARS,  AT(group) },
        { "batch",         JSON_TABLE_UINT,   AT(batch), .max = LIVE_SHARES_BATCH_MAX },
        { "step",          JSON_TABLE_UINT,   AT(step) },
        { "samples",       JSON_TABLE_UINT,   AT(samples) },
        { "restarts",      JSON_TABLE_UINT,   AT(restarts) },
        { "samples_per_s", JSON_TABLE_DOUBLE, AT(samples_per_s), .least = PROGRESS_RATE_MIN, .most = PROGRESS_RATE_MAX },
        { "busy_seconds",  JSON_TABLE_DOUBLE, AT(busy_seconds), .most = PROGRESS_SECONDS_MAX },
        { "exit_code",     JSON_TABLE_INT,    AT(exit_code), .max = 255 },
        { .name = NULL },
};
#undef AT
#define AT(member) JSON_TABLE_AT(struct job_report_event, member)
static const struct json_table_row event_rows[] = {
        { "time",    JSON_TABLE_CHARS, AT(time) },
        { "reason",  JSON_TABLE_CHARS, AT(reason) },
        { "message", JSON_TABLE_CHARS, AT(message) },
        { .name = NULL },
};
#undef AT
static const struct job_report_rank no_rank = { .exit_code = -1 };
static const struct json_table rank_table = { .rows = rank_rows, .size_bytes = sizeof(struct job_report_rank), .lenient = true, .initial = &no_rank };
static const struct json_table event_table = { .rows = event_rows, .size_bytes = sizeof(struct job_report_event), .lenient = true };
static const struct json_table_row program = { "", JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_report_program, sha256) };
static const struct json_table program_table = {
        .rows = (const struct json_table_row[]){ { .name = NULL } }, .size_bytes = sizeof(struct job_report_program), .lenient = true,
        .key = offsetof(struct job_report_program, group), .key_bytes = JOB_GROUP_NAME_BYTES,
};

#define AT(member) JSON_TABLE_AT(struct job_report, member)
#define COUNT(member) .count = offsetof(struct job_report, member)
static const struct json_table_row rows[] = {
        { "state",         JSON_TABLE_CHARS,  AT(state) },
        { "reason",        JSON_TABLE_CHARS,  AT(reason) },
        { "message",       JSON_TABLE_CHARS,  AT(message) },
        { "restarts",      JSON_TABLE_UINT,   AT(restarts) },
        { "reshards",      JSON_TABLE_UINT,   AT(reshards) },
        { "recuts",        JSON_TABLE_UINT,   AT(recuts) },
        { "launcher_crashes", JSON_TABLE_UINT, AT(launcher_crashes), .max = JOB_LAUNCHER_CRASHES_MAX },
        { "epoch",         JSON_TABLE_UINT,   AT(epoch) },
        { "step",          JSON_TABLE_UINT,   AT(step) },
        { "samples",       JSON_TABLE_UINT,   AT(samples) },
        { "epoch_samples", JSON_TABLE_UINT,   AT(epoch_samples) },
        { "samples_per_s", JSON_TABLE_DOUBLE, AT(samples_per_s), .most = PROGRESS_RATE_MAX },
        { "loss",          JSON_TABLE_DOUBLE, AT(loss), .least = -PROGRESS_LOSS_MAX, .most = PROGRESS_LOSS_MAX },
        { "accuracy",      JSON_TABLE_DOUBLE, AT(accuracy) },
        { "ranks",         JSON_TABLE_LIST,   AT(ranks), .table = &rank_table, COUNT(rank_count), .max = JOB_CHIPS_MAX },
        { "events",        JSON_TABLE_LIST,   AT(events), .table = &event_table, COUNT(event_count), .max = EVENTS_MAX },
        { "programs",      JSON_TABLE_MAP,    AT(programs), .table = &program_table, .element = &program, COUNT(program_count), .max = JOB_GROUPS_MAX },
        { .name = NULL },
};
#undef AT
static const struct json_table table = { .rows = rows, .size_bytes = sizeof(struct job_report), .lenient = true };
/* clang-format on */

int job_report_parse(const char *text, struct job_report *ret)
{
        json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        int r;

        *ret = (struct job_report){ .loss = NAN, .accuracy = NAN };
        r = json_is_object(value) ? json_table_decode(&table, value, ret, NULL) : -EBADMSG;
        json_decref(value);
        return r == 0 && ret->state[0] == '\0' ? -EBADMSG : r;
}

void job_report_free(struct job_report *report)
{
        json_table_free(&table, report);
}
