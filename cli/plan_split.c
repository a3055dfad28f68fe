/* `remuda plan split`: chains ("layers") and graphs ("nodes") of layers over unlike devices. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/plan.h"
#include "cli/plan_searches.h"
#include "codec/plan_graph.h"
#include "codec/plan_split.h"
#include "core/exit_code.h"
#include "core/options.h"
#include "core/version.h"

struct split_options {
        const char *output, *rows;
        bool contiguous;
        double time_limit_sec;
        uint64_t seed, effort;
};

/* clang-format off: a row each */
static const struct option_spec specs[] = {
        { .name = "output",
          .letter = 'o',
          .type = OPTION_CHOICE,
          .offset = offsetof(struct split_options, output),
          .value = "json|table",
          .default_ = "json",
          .help = "how to answer" },
        { .name = "contiguous",
          .type = OPTION_BOOL,
          .offset = offsetof(struct split_options, contiguous),
          .help = "graphs: no device's part may be left and entered again" },
        { .name = "time-limit",
          .type = OPTION_DOUBLE,
          .offset = offsetof(struct split_options, time_limit_sec),
          .value = "SECONDS",
          .default_ = "10",
          .help = "graphs: how long to search when no answer is proven before" },
        { .name = "seed",
          .type = OPTION_UINT64,
          .offset = offsetof(struct split_options, seed),
          .value = "N",
          .default_ = "1",
          .help = "graphs: of the search; the same seed and effort give the same answer" },
        { .name = "effort",
          .type = OPTION_UINT64,
          .offset = offsetof(struct split_options, effort),
          .value = "N",
          .default_ = "0",
          .help = "graphs: search steps of each of four searches; 0 = as many as the time allows" },
        { .name = "rows",
          .type = OPTION_STRING,
          .offset = offsetof(struct split_options, rows),
          .value = "LAYER",
          .help = "chains: share the rows of this one layer over all devices instead" },
        { .name = NULL },
};
/* clang-format on */

static const struct option_program program = {
        .name = "remuda plan split",
        .operands = "FILE",
        .operands_min = 1,
        .operands_max = 1,
        .summary = "Which layers go to which device, so that the most loaded one has the least to do.",
        .after = "FILE (- is standard input) holds a chain\n"
                 "  {\"layers\": [{\"name\": \"fc\", \"ms\": {\"gpu\": 1.5, \"cpu\": 9}, \"memory_bytes\": "
                 "8192,\n"
                 "               \"activation_bytes\": 1024}, ...],\n"
                 "   \"devices\": [{\"type\": \"gpu\", \"count\": 4, \"memory_bytes\": 80000000000,\n"
                 "                \"bytes_per_ms\": 25000000}, ...], \"schedule\": \"1f1b\", "
                 "\"microbatches\": 8}\n"
                 "or a graph of layers (\"nodes\", \"edges\"). See man remuda-plan.\n",
        .specs = specs,
};

static double now_ms(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static int dump(json_t *answer, struct text *out, struct err *err)
{
        char *bytes = answer == NULL ? NULL : json_dumps(answer, JSON_INDENT(1) | JSON_REAL_PRECISION(15));

        json_decref(answer);
        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for the answer");
        text_append(out, bytes);
        text_append_char(out, '\n');
        free(bytes);
        return 0;
}

static int answer_chain(const struct split_options *options, const json_t *json, struct text *out,
                        struct err *err)
{
        struct split_input input;
        struct chain_plan plan = { 0 };
        json_t *rows = NULL;
        double start = now_ms();
        int r = split_input_decode(json, &input, err);

        if (r < 0)
                return r;
        if (options->rows != NULL) {
                r = split_rows_encode(&input, options->rows, &rows, err);
                if (r == 0)
                        r = dump(rows, out, err);
        } else {
                r = chain_split(&input.problem, &plan, err);
                if (r == CHAIN_NO_FIT)
                        r = -ERANGE;
                if (r == 0 && strcmp(options->output, "json") == 0)
                        r = dump(split_plan_encode(&input, &plan, now_ms() - start), out, err);
                else if (r == 0)
                        split_plan_table(&input, &plan, now_ms() - start, out);
                chain_plan_free(&plan);
        }
        split_input_free(&input);
        return r;
}

static int answer_graph(const struct split_options *options, const json_t *json, struct text *out,
                        struct err *err)
{
        struct graph_request request;
        struct graph_plan plan;
        struct graph_effort effort = { .seed = options->seed, .effort = options->effort };
        double start = now_ms();
        int r = graph_request_decode(json, options->contiguous, &request, err);

        if (r < 0)
                return r;
        r = plan_searches(&request.problem, options->seed, options->effort,
                          start + options->time_limit_sec * 950, &plan, err);
        if (r == GRAPH_NO_FIT)
                r = -ERANGE;
        if (r == 0) {
                effort.steps = plan.steps;
                effort.planning_ms = now_ms() - start;
                if (strcmp(options->output, "json") == 0)
                        r = dump(graph_answer_json(&request, &plan, &effort), out, err);
                else
                        graph_answer_table(&request, &plan, &effort, out);
                graph_plan_free(&plan);
        }
        graph_request_free(&request);
        return r;
}

static int answer(const struct split_options *options, const char *file, struct text *out, struct err *err)
{
        json_t *json = NULL;
        int r = plan_read_json(file, &json, err);

        if (r < 0)
                return r;
        if (json_object_get(json, "nodes") != NULL)
                r = answer_graph(options, json, out, err);
        else if (json_object_get(json, "layers") != NULL)
                r = answer_chain(options, json, out, err);
        else
                r = err_set(err, -EBADMSG,
                            "has neither layers (a chain) nor nodes (a graph); give one of them");
        json_decref(json);
        return r;
}

int plan_split(int argc, char **argv)
{
        struct split_options options;
        struct text out = { 0 };
        struct err err = { 0 };
        size_t operands = 0;
        int r = options_start(&program, REMUDA_VERSION, argc, argv, NULL, &options, &operands, stdout,
                              stderr);

        if (r >= 0)
                return r;
        if (!(options.time_limit_sec > 0 && options.time_limit_sec <= 1e6)) {
                fprintf(stderr, "remuda plan split: --time-limit must be above 0 s and at most 1000000 s\n");
                return EXIT_USAGE;
        }
        r = answer(&options, argv[1], &out, &err);
        if (r < 0) {
                text_free(&out);
                return plan_refuse("split", argv[1], &err);
        }
        return plan_print("split", &out);
}
