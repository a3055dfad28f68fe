/* `remuda plan reshard`: a new plan for the rest of an epoch. */
#include <string.h>

#include "base/options.h"
#include "base/version.h"
#include "planner/commands/plan.h"
#include "planner/shards/plan_reshard.h"

struct reshard_options {
        const char *output;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct reshard_options, output),
          .value = "json|table", .default_ = "json", .help = "how to answer" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_reshard_options = {
        .name = "remuda plan reshard",
        .operands = "FILE",
        .operands_min = 1,
        .operands_max = 1,
        .summary =
                "A new plan for the rest of an epoch, or \"keep\" when the change costs more than it gains.",
        .after = "FILE (- is standard input) holds the plan as `plan shards` (or this) answered it, and what "
                 "was\n"
                 "measured since:\n"
                 "  {\"plan\": {...}, \"position\": 20480, \"cost_ms\": 1500, \"measured\":\n"
                 "   [{\"name\": \"a\", \"step_ms\": 12.5}, {\"name\": \"b\", \"gone\": true}]}\n"
                 "See man remuda-plan.\n",
        .specs = specs,
};

static int answer(const json_t *json, const struct reshard_options *options, struct text *out,
                  struct err *err)
{
        struct plan_reshard_request request;
        struct reshard_plan plan;
        int r = plan_reshard_request_decode(json, &request, err);

        if (r < 0)
                return r;
        r = reshard_plan_make(&request.reshard, &plan, err);
        if (r == 0) {
                if (strcmp(options->output, "json") == 0)
                        plan_reshard_answer_json(&request, &plan, out);
                else
                        plan_reshard_answer_table(&request, &plan, out);
                reshard_plan_free(&plan);
        }
        plan_reshard_request_free(&request);
        return r;
}

int plan_reshard(int argc, char **argv, const struct plan_host *host)
{
        struct reshard_options options = { 0 };
        struct text out = { 0 };
        struct err err = { 0 };
        json_t *json = NULL;
        size_t operands = 0;
        int r = options_start(&plan_reshard_options, REMUDA_VERSION, argc, argv, &options, &operands, stdout,
                              stderr);

        (void) host;
        if (r >= 0)
                return r;
        r = plan_read_json(argv[1], &json, &err);
        if (r == 0)
                r = answer(json, &options, &out, &err);
        json_decref(json);
        return plan_finish("reshard", argv[1], r, &out, &err);
}
