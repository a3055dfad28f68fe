#include <string.h>

#include "cli/plan.h"
#include "codec/plan_shards.h"
#include "core/options.h"
#include "core/version.h"

struct shards_options {
        const char *output;
        bool drop_harmful;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct shards_options, output),
          .value = "json|table", .default_ = "json", .help = "how to answer" },
        { .name = "drop-harmful", .type = OPTION_BOOL, .offset = offsetof(struct shards_options, drop_harmful),
          .help = "use the workers with the least step + \"communication\"" },
        { .name = NULL },
};
/* clang-format on */

static const struct option_program program = {
        .name = "remuda plan shards",
        .operands = "FILE",
        .operands_min = 1,
        .operands_max = 1,
        .summary = "How much of each global batch every worker takes, so that the slowest is done soonest.",
        .after = "FILE (- is standard input) holds\n"
                 "  {\"batch\": 1024, \"epoch\": 60000, \"workers\": [{\"name\": \"a\", \"speed\": 1200},\n"
                 "   {\"name\": \"b\", \"alpha_ms\": 3, \"beta_ms\": 0.8, \"max\": 256}]}\n"
                 "See man remuda-plan.\n",
        .specs = specs,
};

static int answer(const json_t *json, const struct shards_options *options, struct text *out, struct err *err)
{
        struct shards_request request;
        struct shards_answer answer;
        int r = shards_request_decode(json, &request, err);

        if (r < 0)
                return r;
        r = shards_request_answer(&request, options->drop_harmful, &answer, err);
        if (r == 0) {
                if (strcmp(options->output, "json") == 0)
                        shards_answer_json(&request, &answer, out);
                else
                        shards_answer_table(&request, &answer, out);
                shards_answer_free(&answer);
        }
        shards_request_free(&request);
        return r;
}

int plan_shards(int argc, char **argv)
{
        struct shards_options options;
        struct text out = { 0 };
        struct err err = { 0 };
        json_t *json = NULL;
        size_t operands = 0;
        int r = options_start(&program, REMUDA_VERSION, argc, argv, NULL, &options, &operands, stdout,
                              stderr);

        if (r >= 0)
                return r;
        r = plan_read_json(argv[1], &json, &err);
        if (r == 0)
                r = answer(json, &options, &out, &err);
        json_decref(json);
        if (r < 0) {
                text_free(&out);
                return plan_refuse("shards", argv[1], &err);
        }
        return plan_print("shards", &out);
}
