/* `remuda plan segments`: which gradients travel together. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "planner/commands/plan.h"
#include "planner/segments/plan_profile.h"
#include "planner/segments/plan_segments.h"

struct segments_options {
        const char *output, *profile, *network;
        double speedup;
        uint64_t max_segments;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct segments_options, output),
          .value = "json|table", .default_ = "json", .help = "how to answer" },
        { .name = "profile", .type = OPTION_STRING, .offset = offsetof(struct segments_options, profile),
          .value = "FILE", .help = "the tensors of a layer profile (nodeN -- ...), with --network" },
        { .name = "network", .type = OPTION_STRING, .offset = offsetof(struct segments_options, network),
          .value = "NETWORK", .help = "10gbe:RANKS, 56gib:RANKS or ALPHA_MS,BETA_MS_PER_BYTE" },
        { .name = "speedup", .type = OPTION_DOUBLE, .offset = offsetof(struct segments_options, speedup),
          .value = "S", .default_ = "1", .help = "the profile's times divided by S" },
        { .name = "max-segments", .type = OPTION_UINT64, .offset = offsetof(struct segments_options, max_segments),
          .value = "N", .default_ = "0", .help = "at most N segments; 0 = as the file says, else 8" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_segments_options = {
        .name = "remuda plan segments",
        .operands = "[FILE]",
        .operands_max = 1,
        .summary = "Which gradients travel together, so that the last of them arrives soonest.",
        .after = "FILE (- is standard input) holds\n"
                 "  {\"tensors\": [{\"name\": \"fc\", \"bytes\": 4096, \"ready_ms\": 0.5}, ...],\n"
                 "   \"alpha_ms\": 0.5, \"beta_ms_per_byte\": 8.5e-7, \"max_segments\": 8}\n"
                 "or, without FILE:\n"
                 "  remuda plan segments --profile graph.txt --network 10gbe:8 --speedup 4\n"
                 "See man remuda-plan.\n",
        .specs = specs,
};

static int read_request(const struct segments_options *options, const char *file,
                        struct plan_segments_request *ret, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size_bytes = 0;
        json_t *json = NULL;
        int r;

        if (options->profile == NULL) {
                r = plan_read_json(file, &json, err);
                if (r == 0)
                        r = plan_segments_request_decode(json, ret, err);
                json_decref(json);
                return r;
        }
        r = plan_read_bytes(file, &bytes, &size_bytes, err);
        return r < 0 ? r : plan_profile_read(bytes, size_bytes, options->speedup, ret, err);
}

static int answer(const struct segments_options *options, const char *file, struct text *out, struct err *err)
{
        struct plan_segments_request request;
        struct segments_plan plan;
        int r = read_request(options, file, &request, err);

        if (r < 0)
                return r;
        if (options->network != NULL)
                r = plan_segments_request_set_network(&request, options->network, err);
        if (options->max_segments > 0)
                request.max_segments = (size_t) options->max_segments;
        if (r == 0)
                r = plan_segments_request_answer(&request, &plan, err);
        if (r == 0) {
                if (strcmp(options->output, "json") == 0)
                        plan_segments_answer_json(&request, &plan, out);
                else
                        plan_segments_answer_table(&request, &plan, out);
                segments_plan_free(&plan);
        }
        plan_segments_request_free(&request);
        return r;
}

/* What must and must not be given together. */
static const char *misuse(const struct segments_options *options, size_t operands)
{
        if ((options->profile == NULL) == (operands == 0))
                return "give either FILE or --profile FILE";
        if (options->profile != NULL && options->network == NULL)
                return "--profile needs --network: 10gbe:RANKS, 56gib:RANKS or ALPHA_MS,BETA_MS_PER_BYTE";
        if (options->profile == NULL && (options->network != NULL || options->speedup != 1))
                return "--network and --speedup belong to --profile; FILE holds its own costs";
        if (!(options->speedup >= 1e-9 && options->speedup <= 1e9))
                return "--speedup must be a number above 0, for example 4";
        return NULL;
}

int plan_segments(int argc, char **argv, const struct plan_host *host)
{
        struct segments_options options = { 0 };
        struct text out = { 0 };
        struct err err = { 0 };
        size_t operands = 0;
        const char *wrong, *file;
        int r = options_start(&plan_segments_options, REMUDA_VERSION, argc, argv, &options, &operands, stdout,
                              stderr);

        (void) host;
        if (r >= 0)
                return r;
        wrong = misuse(&options, operands);
        if (wrong != NULL) {
                fprintf(stderr, "remuda plan segments: %s\n", wrong);
                return EXIT_USAGE;
        }
        file = options.profile != NULL ? options.profile : argv[1];
        r = answer(&options, file, &out, &err);
        return plan_finish("segments", file, r, &out, &err);
}
