/* `remuda plan model`: the shipped networks, and what they would do on given devices. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "planner/commands/given_devices.h"
#include "planner/commands/plan.h"
#include "planner/models/network_forms.h"
#include "planner/models/network_json.h"
#include "planner/models/network_models.h"
#include "planner/segments/segment_network.h"
#include "planner/shards/shards.h"

struct model_options {
        const char *output, *as, *machines, *network;
        struct option_list devices;
        uint64_t tokens, batch, microbatch, microbatches;
        double efficiency, link_gb_per_s;
        bool inference;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct model_options, output),
          .value = "json|table", .default_ = "json", .help = "how to answer" },
        { .name = "as", .type = OPTION_CHOICE, .offset = offsetof(struct model_options, as),
          .value = "network|answer|split|segments|shards",
          .help = "what to write; answer with devices, else network" },
        { .name = "devices", .type = OPTION_LIST, .offset = offsetof(struct model_options, devices),
          .value = "NAME[=TFLOPS[,GIB]][*N]", .help = "N devices; known names have their peak from the device table" },
        { .name = "machines", .type = OPTION_STRING, .offset = offsetof(struct model_options, machines),
          .value = "FILE", .help = "the devices of `remuda devices -o json`, one object or a list" },
        { .name = "tokens", .type = OPTION_UINT64, .offset = offsetof(struct model_options, tokens),
          .value = "N", .default_ = "0", .help = "sequence length; 0 = the model's own" },
        { .name = "batch", .type = OPTION_UINT64, .offset = offsetof(struct model_options, batch), .value = "N",
          .default_ = "256", .minimum = 1, .maximum = SHARDS_MAX_BATCH, .help = "samples of a global batch" },
        { .name = "microbatch", .type = OPTION_UINT64, .offset = offsetof(struct model_options, microbatch),
          .value = "N", .default_ = "1", .minimum = 1, .maximum = 1000000, .help = "split, segments: samples at a time" },
        { .name = "microbatches", .type = OPTION_UINT64, .offset = offsetof(struct model_options, microbatches),
          .value = "N", .default_ = "8", .minimum = 1, .maximum = 1000000, .help = "split: microbatches of a step" },
        { .name = "efficiency", .type = OPTION_DOUBLE, .offset = offsetof(struct model_options, efficiency),
          .value = "E", .default_ = "0.4", .help = "the share of the peak that is reached, above 0 to 1" },
        { .name = "link", .type = OPTION_DOUBLE, .offset = offsetof(struct model_options, link_gb_per_s),
          .value = "GB_PER_S", .default_ = "25", .help = "split: between two stages" },
        { .name = "network", .type = OPTION_STRING, .offset = offsetof(struct model_options, network),
          .value = "NETWORK", .help = "segments: 10gbe:RANKS, 56gib:RANKS or ALPHA_MS,BETA_MS_PER_BYTE" },
        { .name = "inference", .type = OPTION_BOOL, .offset = offsetof(struct model_options, inference),
          .help = "forward alone" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_model_options = {
        .name = "remuda plan model",
        .operands = "[MODEL]",
        .operands_max = 1,
        .summary = "A known network from its shapes, and what it would do on given devices; without MODEL, "
                   "the list.",
        .after = "Everything is an estimate by formula; nothing is measured. With --as the answer is a file "
                 "for\n"
                 "another planner:\n"
                 "  remuda plan model gpt2-xl --devices A100*8 --devices Ascend910B*8 --as split | remuda "
                 "plan "
                 "split -\n"
                 "See man remuda-plan.\n",
        .specs = specs,
};

static void list_models(bool json, struct text *out)
{
        if (json)
                text_append(out, "[\n");
        for (const struct network_model *model = network_models; model->name != NULL; model++) {
                if (json)
                        text_printf(out,
                                    "  {\"name\": \"%s\", \"title\": \"%s\", \"parameters\": %" PRIu64
                                    "}%s\n",
                                    model->name, model->title, model->published_parameters,
                                    model[1].name != NULL ? "," : "");
                else
                        text_printf(out, "%-12s %-14s %14" PRIu64 " parameters\n", model->name, model->title,
                                    model->published_parameters);
        }
        if (json)
                text_append(out, "]\n");
}

static int set_assumptions(const struct model_options *options, struct network_forms_request *request,
                           struct err *err)
{
        struct segment_level level;
        bool estimate;
        int r;

        if (!(options->efficiency > 0 && options->efficiency <= 1))
                return err_set(err, -EINVAL, "--efficiency %g: give a share above 0, up to 1",
                               options->efficiency);
        if (!(options->link_gb_per_s >= 1e-6 && options->link_gb_per_s <= 1e6))
                return err_set(err, -EINVAL, "--link %g: give GB per second, above 0",
                               options->link_gb_per_s);
        request->assumptions = network_estimate_default();
        request->assumptions.efficiency = options->efficiency;
        request->assumptions.training = !options->inference;
        request->assumptions.samples = options->microbatch;
        request->batch = options->batch;
        request->microbatches = options->microbatches;
        request->link_gb_per_s = options->link_gb_per_s;
        if (options->network == NULL)
                return 0;
        r = segment_network_find(options->network, &level, &estimate, err);
        if (r < 0)
                return r;
        request->has_network = true;
        request->alpha_ms = level.alpha_ms;
        request->beta_ms_per_byte = level.beta_ms_per_byte;
        return 0;
}

static int write_form(const char *as, const struct network_forms_request *request, bool json,
                      struct text *out, struct err *err)
{
        if (request->device_count == 0)
                return err_set(err, -EINVAL,
                               "--as %s: needs devices; give --devices NAME*N or --machines FILE", as);
        if (strcmp(as, "split") == 0)
                return network_forms_split(request, out, err);
        if (strcmp(as, "segments") == 0)
                return network_forms_segments(request, out, err);
        if (strcmp(as, "shards") == 0)
                return network_forms_shards(request, out, err);
        return network_forms_answer(request, json, out, err);
}

static void append_blocks(const struct network *network, const struct network_model *model, struct text *out)
{
        CLEANUP(free_p) struct network_estimate_block *blocks = NULL;
        struct network_totals totals = network_totals(network);
        size_t count = 0;

        text_printf(out, "%-16s %14s %14s %14s %14s\n", "block", "parameters", "multiply-adds", "activations",
                    "leave it");
        if (network_estimate_blocks(network, &blocks, &count, NULL) == 0)
                for (size_t i = 0; i < count; i++)
                        text_printf(out, "%-16s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n",
                                    blocks[i].name, blocks[i].parameters, blocks[i].multiply_adds,
                                    blocks[i].activations, blocks[i].crossing);
        text_printf(out, "%-16s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n\n", model->title,
                    totals.parameters, totals.multiply_adds, totals.activations);
        text_printf(out, "published: %" PRIu64 " parameters", model->published_parameters);
        if (model->published_multiply_adds > 0)
                text_printf(out, ", %.4g multiply-adds", model->published_multiply_adds);
        text_printf(out, " (%s)\nan estimate by formula, for one sample; elements, not bytes\n",
                    model->source);
}

static int answer(const struct network_model *model, const struct model_options *options, struct text *out,
                  struct err *err)
{
        struct network_estimate_device devices[GIVEN_DEVICES_MAX] = { 0 };
        struct network network = { 0 };
        struct network_forms_request request = { .network = &network, .devices = devices };
        bool json = strcmp(options->output, "json") == 0;
        const char *as = options->as;
        int r = given_devices_collect(&options->devices, options->machines, devices, &request.device_count,
                                      err);

        if (r == 0)
                r = set_assumptions(options, &request, err);
        if (r == 0)
                r = network_model_build(model, options->tokens > 0 ? options->tokens : model->default_tokens,
                                        &network, err);
        if (r < 0)
                return r;
        if (as == NULL)
                as = request.device_count > 0 ? "answer" : "network";
        if (strcmp(as, "network") != 0)
                r = write_form(as, &request, json, out, err);
        else if (json)
                network_json(&network, model, out);
        else
                append_blocks(&network, model, out);
        network_free(&network);
        return r;
}

int plan_model(int argc, char **argv, const struct plan_host *host)
{
        struct model_options options = { 0 };
        const struct network_model *model;
        struct text out = { 0 };
        struct err err = { 0 };
        size_t operands = 0;
        int r = options_start(&plan_model_options, REMUDA_VERSION, argc, argv, &options, &operands, stdout,
                              stderr);

        (void) host;
        if (r >= 0)
                return r;
        if (operands == 0) {
                list_models(strcmp(options.output, "json") == 0, &out);
                return plan_finish("model", "", 0, &out, &err);
        }
        model = network_model_find(argv[1]);
        if (model == NULL) {
                fprintf(stderr, "remuda plan model: no model '%s'; `remuda plan model -o table` lists them\n",
                        argv[1]);
                return EXIT_NOT_FOUND;
        }
        r = answer(model, &options, &out, &err);
        return plan_finish("model", argv[1], r, &out, &err);
}
