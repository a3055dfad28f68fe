/* Writes a plan of shards, as JSON or as a table, worker by worker and group by group. */
#include "planner/shards/plan_shards_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json/json_writer.h"

/* One line of an answer: a worker's share, or a group's. */
struct line {
        const char *name, *source, *precision; /* of the speed; NULL = not asked, none, or a group */
        uint64_t before, batch;                /* samples of each batch given away before it, and to it */
        double step_ms;
};

static struct line worker_line(const struct plan_shards_request *request,
                               const struct plan_shards_answer *answer, size_t worker, uint64_t before)
{
        return (struct line){ .name = request->workers[worker].name,
                              .source = request->workers[worker].source,
                              .precision = request->speeds.precision,
                              .before = before,
                              .batch = answer->shards[worker].batch,
                              .step_ms = answer->shards[worker].step_ms };
}

static struct line group_line(const struct plan_shards_answer *answer, const struct plan_shards_group *group,
                              uint64_t before)
{
        struct line line = { .name = group->name, .before = before };

        for (size_t i = group->first; i < group->first + group->count; i++) {
                line.batch += answer->shards[i].batch;
                if (answer->shards[i].step_ms > line.step_ms)
                        line.step_ms = answer->shards[i].step_ms;
        }
        return line;
}

/* A ratio of data sheets is no time. */
static double ms(const struct plan_shards_request *request, double value)
{
        return request->speeds.untimed || value < 0 ? NAN : value;
}

static void write_line(struct json_writer *json, const struct plan_shards_request *request,
                       const struct line *line)
{
        json_writer_string(json, "name", line->name);
        json_writer_uint64(json, "batch", line->batch);
        json_writer_double(json, "weight", (double) line->batch / (double) request->batch);
        json_writer_double(json, "step_ms", ms(request, line->step_ms));
        if (line->source != NULL)
                json_writer_string(json, "source", line->source);
        if (line->precision != NULL)
                json_writer_string(json, "precision", line->precision);
        if (request->epoch == 0) {
                json_writer_null(json, "begin");
                json_writer_null(json, "end");
                return;
        }
        json_writer_uint64(json, "begin", shards_begin(request->epoch, line->before, request->batch));
        json_writer_uint64(json, "end",
                           shards_begin(request->epoch, line->before + line->batch, request->batch));
}

static void write_workers(struct json_writer *json, const struct plan_shards_request *request,
                          const struct plan_shards_answer *answer, size_t first, size_t count,
                          uint64_t before)
{
        json_writer_open(json, "workers", '[');
        for (size_t i = first; i < first + count; i++) {
                struct line line = worker_line(request, answer, i, before);

                json_writer_open(json, NULL, '{');
                write_line(json, request, &line);
                json_writer_close(json, '}');
                before += line.batch;
        }
        json_writer_close(json, ']');
}

static void write_groups(struct json_writer *json, const struct plan_shards_request *request,
                         const struct plan_shards_answer *answer)
{
        uint64_t before = 0;

        json_writer_open(json, "groups", '[');
        for (size_t g = 0; g < request->group_count; g++) {
                const struct plan_shards_group *group = &request->groups[g];
                struct line line = group_line(answer, group, before);

                json_writer_open(json, NULL, '{');
                write_line(json, request, &line);
                write_workers(json, request, answer, group->first, group->count, before);
                json_writer_close(json, '}');
                before += line.batch;
        }
        json_writer_close(json, ']');
}

static void append_reason(struct text *out, const struct plan_shards_answer *answer,
                          const struct plan_shards_left_out *left_out)
{
        if (!left_out->priced) {
                text_append(out, "it is not in the best subset");
                return;
        }
        text_printf(out,
                    "with it a step takes %.6g ms and the communication %.6g ms, %.6g ms in all; without it "
                    "%.6g ms",
                    left_out->step_ms, left_out->communication_ms,
                    left_out->step_ms + left_out->communication_ms,
                    answer->plan.step_ms + answer->communication_ms);
}

static void write_left_out(struct json_writer *json, const struct plan_shards_request *request,
                           const struct plan_shards_answer *answer)
{
        json_writer_double(json, "communication_ms", answer->communication_ms);
        json_writer_double(json, "total_ms", answer->plan.step_ms + answer->communication_ms);
        json_writer_open(json, "left_out", '[');
        for (size_t i = 0; i < answer->left_out_count; i++) {
                struct text reason = { 0 };

                append_reason(&reason, answer, &answer->left_out[i]);
                json_writer_open(json, NULL, '{');
                json_writer_string(json, "name", request->workers[answer->left_out[i].worker].name);
                json_writer_string(json, "reason", reason.data != NULL ? reason.data : "");
                json_writer_close(json, '}');
                text_free(&reason);
        }
        json_writer_close(json, ']');
}

void plan_shards_text_json(const struct plan_shards_request *request, const struct plan_shards_answer *answer,
                           struct text *out)
{
        struct json_writer json = { .text = out };

        json_writer_open(&json, NULL, '{');
        json_writer_uint64(&json, "batch", request->batch);
        json_writer_double(&json, "step_ms", ms(request, answer->plan.step_ms));
        json_writer_double(&json, "ideal_ms", ms(request, answer->plan.ideal_ms));
        json_writer_double(&json, "equal_ms", ms(request, answer->plan.equal_ms));
        if (answer->least)
                write_left_out(&json, request, answer);
        if (request->groups != NULL)
                write_groups(&json, request, answer);
        write_workers(&json, request, answer, 0, request->worker_count, 0);
        json_writer_close(&json, '}');
}

static int name_width(const struct plan_shards_request *request)
{
        size_t width = strlen("worker");

        for (size_t i = 0; i < request->worker_count; i++)
                if (strlen(request->workers[i].name) + 2 > width)
                        width = strlen(request->workers[i].name) + 2;
        for (size_t i = 0; i < request->group_count; i++)
                if (strlen(request->groups[i].name) > width)
                        width = strlen(request->groups[i].name);
        return width < 40 ? (int) width : 40;
}

static void append_line(struct text *out, const struct plan_shards_request *request, const struct line *line,
                        int width, const char *indent)
{
        text_printf(out, "%s%-*s %12" PRIu64 " %9.4f", indent, width - (int) strlen(indent), line->name,
                    line->batch, (double) line->batch / (double) request->batch);
        if (request->speeds.untimed)
                text_printf(out, " %12s", "-");
        else
                text_printf(out, " %12.4f", line->step_ms);
        if (request->epoch != 0)
                text_printf(out, "  %" PRIu64 ":%" PRIu64,
                            shards_begin(request->epoch, line->before, request->batch),
                            shards_begin(request->epoch, line->before + line->batch, request->batch));
        if (line->source != NULL)
                text_printf(out, "  %s%s%s", line->source, line->precision != NULL ? " " : "",
                            line->precision != NULL ? line->precision : "");
        text_append_char(out, '\n');
}

static void append_ratio(struct text *out, const struct plan_shards_answer *answer)
{
        if (answer->plan.equal_ms < 0)
                text_append(out, "\nequal shares are not possible\n");
        else
                text_printf(out, "\nwith equal shares a step would be %.3f times as long\n",
                            answer->plan.equal_ms / answer->plan.step_ms);
}

void plan_shards_text_table(const struct plan_shards_request *request,
                            const struct plan_shards_answer *answer, struct text *out)
{
        int width = name_width(request);
        uint64_t before = 0;
        size_t group = 0;

        text_printf(out, "%-*s %12s %9s %12s%s%s\n", width, "worker", "batch", "weight", "step ms",
                    request->epoch != 0 ? "  samples of the epoch" : "",
                    request->worker_count > 0 && request->workers[0].source != NULL ? "  speed" : "");
        for (size_t i = 0; i < request->worker_count; i++) {
                struct line line;

                while (group < request->group_count && request->groups[group].first == i) {
                        line = group_line(answer, &request->groups[group++], before);
                        append_line(out, request, &line, width, "");
                }
                line = worker_line(request, answer, i, before);
                append_line(out, request, &line, width, request->groups != NULL ? "  " : "");
                before += line.batch;
        }
        if (request->speeds.untimed) {
                append_ratio(out, answer);
                return;
        }
        text_printf(out, "\nstep %.6g ms; if samples could be divided %.6g ms", answer->plan.step_ms,
                    answer->plan.ideal_ms);
        if (answer->plan.equal_ms < 0)
                text_append(out, "; equal shares are not possible\n");
        else
                text_printf(out, "; with equal shares %.6g ms\n", answer->plan.equal_ms);
        if (!answer->least)
                return;
        text_printf(out, "communication %.6g ms, step and communication %.6g ms\n", answer->communication_ms,
                    answer->plan.step_ms + answer->communication_ms);
        for (size_t i = 0; i < answer->left_out_count; i++) {
                text_printf(out, "left out: %s: ", request->workers[answer->left_out[i].worker].name);
                append_reason(out, answer, &answer->left_out[i]);
                text_append_char(out, '\n');
        }
}
