/* `remuda plan shards`: how much of each batch every worker takes. */
#include <errno.h>
#include <string.h>

#include "base/options.h"
#include "base/version.h"
#include "planner/commands/plan.h"
#include "planner/shards/plan_shards.h"
#include "planner/shards/plan_shards_text.h"

struct shards_options {
        const char *output, *store, *kubeconfig, *model;
        bool drop_harmful;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct shards_options, output),
          .value = "json|table", .default_ = "json", .help = "how to answer" },
        { .name = "drop-harmful", .type = OPTION_BOOL, .offset = offsetof(struct shards_options, drop_harmful),
          .help = "use the workers with the least step + \"communication\"" },
        { .name = "store", .type = OPTION_STRING, .offset = offsetof(struct shards_options, store),
          .value = "dir:PATH|kubernetes", .help = "the speeds of workers that name a \"device\" are known there" },
        { .name = "kubeconfig", .type = OPTION_STRING, .offset = offsetof(struct shards_options, kubeconfig),
          .value = "FILE", .help = "for --store kubernetes" },
        { .name = "model", .type = OPTION_STRING, .offset = offsetof(struct shards_options, model), .value = "NAME",
          .default_ = "mlp", .help = "the job's model, with --store" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_shards_options = {
        .name = "remuda plan shards",
        .operands = "FILE",
        .operands_min = 1,
        .operands_max = 1,
        .summary = "How much of each global batch every worker takes, so that the slowest is done soonest.",
        .after = "FILE (- is standard input) holds\n"
                 "  {\"batch\": 1024, \"epoch\": 60000, \"workers\": [{\"name\": \"a\", \"speed\": 1200},\n"
                 "   {\"name\": \"b\", \"alpha_ms\": 3, \"beta_ms\": 0.8, \"max\": 256}]}\n"
                 "and with --store also {\"name\": \"c\", \"device\": \"Ascend910A\"}.\n"
                 "See man remuda-plan.\n",
        .specs = specs,
};

static int answer(const json_t *json, const struct plan_speeds_known *speeds,
                  const struct shards_options *options, struct text *out, struct err *err)
{
        struct plan_shards_request request;
        struct plan_shards_answer answer;
        int r = plan_shards_request_decode(json, speeds, options->model, &request, err);

        if (r < 0)
                return r;
        r = plan_shards_request_answer(&request, options->drop_harmful, &answer, err);
        if (r == 0) {
                if (strcmp(options->output, "json") == 0)
                        plan_shards_text_json(&request, &answer, out);
                else
                        plan_shards_text_table(&request, &answer, out);
                if (request.speeds.word != NULL)
                        (void) fprintf(stderr, "remuda plan shards: %s: %s\n", request.speeds.word,
                                       request.speeds.sentence);
                plan_shards_answer_free(&answer);
        }
        plan_shards_request_free(&request);
        return r;
}

static int read_speeds(const struct shards_options *options, const struct plan_host *host,
                       struct plan_speeds_known *ret, struct err *err)
{
        int r;

        if (host->read_speeds == NULL)
                return err_set(err, -ENOTSUP,
                               "--store: this program has no stores; give each worker its speed");
        r = host->read_speeds(options->store, options->kubeconfig, ret, err);
        if (r < 0)
                return err_wrap(err, r, "--store %.100s", options->store);
        if (ret->table.trouble[0] != '\0')
                (void) fprintf(stderr, "remuda plan shards: --store %.100s: the SpeedTable: %s\n",
                               options->store, ret->table.trouble);
        return 0;
}

int plan_shards(int argc, char **argv, const struct plan_host *host)
{
        struct shards_options options = { 0 };
        struct plan_speeds_known speeds = { .chip_count = 0 };
        struct text out = { 0 };
        struct err err = { 0 };
        json_t *json = NULL;
        size_t operands = 0;
        int r = options_start(&plan_shards_options, REMUDA_VERSION, argc, argv, &options, &operands, stdout,
                              stderr);

        if (r >= 0)
                return r;
        r = plan_read_json(argv[1], &json, &err);
        if (r == 0 && options.store != NULL && (r = read_speeds(&options, host, &speeds, &err)) < 0) {
                json_decref(json);
                return options_end(&plan_shards_options, r, &err, stderr);
        }
        if (r == 0)
                r = answer(json, options.store != NULL ? &speeds : NULL, &options, &out, &err);
        plan_speeds_known_free(&speeds);
        json_decref(json);
        return plan_finish("shards", argv[1], r, &out, &err);
}
