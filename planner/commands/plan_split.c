/* `remuda plan split`: chains ("layers") and graphs ("nodes") of layers over unlike devices. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "io/clock.h"
#include "planner/commands/given_devices.h"
#include "planner/commands/plan.h"
#include "planner/commands/plan_searches.h"
#include "planner/models/network_forms.h"
#include "planner/splits/plan_graph.h"
#include "planner/splits/plan_replicas.h"
#include "planner/splits/plan_split.h"

struct split_options {
        const char *output, *rows, *replicas, *network, *machines;
        struct option_list devices;
        uint64_t microbatch, microbatches, tokens;
        double efficiency, link_gb_per_s;
        bool inference;
        bool contiguous;
        double time_limit_sec;
        uint64_t seed, effort;
};

/* clang-format off */
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
        { .name = "replicas", .type = OPTION_STRING, .offset = offsetof(struct split_options, replicas),
          .value = "auto|N", .help = "chains: so many pipelines side by side, each with a part of the microbatches" },
        { .name = "network", .type = OPTION_STRING, .offset = offsetof(struct split_options, network),
          .value = "FILE", .help = "a network of operators with shapes, JSON or ONNX, instead of FILE" },
        { .name = "devices", .type = OPTION_LIST, .offset = offsetof(struct split_options, devices),
          .value = "NAME[=TFLOPS[,GIB]][*N]", .help = "network: N devices; again and again" },
        { .name = "machines", .type = OPTION_STRING, .offset = offsetof(struct split_options, machines),
          .value = "FILE", .help = "network: the devices of `remuda devices -o json`" },
        { .name = "microbatch", .type = OPTION_UINT64, .offset = offsetof(struct split_options, microbatch),
          .value = "N", .default_ = "1", .minimum = 1, .maximum = 1000000, .help = "network: samples at a time" },
        { .name = "microbatches", .type = OPTION_UINT64, .offset = offsetof(struct split_options, microbatches),
          .value = "N", .default_ = "8", .minimum = 1, .maximum = 1000000, .help = "network: microbatches of a step" },
        { .name = "tokens", .type = OPTION_UINT64, .offset = offsetof(struct split_options, tokens),
          .value = "N", .default_ = "128", .minimum = 1, .maximum = 1048576, .help = "network: for a size of ONNX that is only named" },
        { .name = "efficiency", .type = OPTION_DOUBLE, .offset = offsetof(struct split_options, efficiency),
          .value = "E", .default_ = "0.4", .help = "network: the share of the peak that is reached" },
        { .name = "link", .type = OPTION_DOUBLE, .offset = offsetof(struct split_options, link_gb_per_s),
          .value = "GB_PER_S", .default_ = "25", .help = "network: between two stages" },
        { .name = "inference", .type = OPTION_BOOL, .offset = offsetof(struct split_options, inference),
          .help = "network: forward alone" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_split_options = {
        .name = "remuda plan split",
        .operands = "[FILE]",
        .operands_max = 1,
        .summary = "Which layers go to which device, so that the most loaded one has the least to do.",
        .after = "FILE (- is standard input) holds a chain\n"
                 "  {\"layers\": [{\"name\": \"fc\", \"ms\": {\"gpu\": 1.5, \"cpu\": 9}, \"memory_bytes\": "
                 "8192,\n"
                 "               \"activation_bytes\": 1024}, ...],\n"
                 "   \"devices\": [{\"type\": \"gpu\", \"count\": 4, \"memory_bytes\": 80000000000,\n"
                 "                \"bytes_per_ms\": 25000000}, ...], \"schedule\": \"1f1b\", "
                 "\"microbatches\": 8}\n"
                 "or a graph of layers (\"nodes\", \"edges\"); or, without FILE, estimated from shapes:\n"
                 "  remuda plan split --network model.onnx --devices H100-SXM*4 --devices Ascend910B*4\n"
                 "See man remuda-plan.\n",
        .specs = specs,
};

static double now_ms(void)
{
        return (double) clock_monotonic_nsec() / 1e6;
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

/* "auto" is 0: as many as are best. Return: 0 or -EINVAL. */
static int replicas_wanted(const char *word, uint64_t *ret)
{
        *ret = 0;
        if (word == NULL || strcmp(word, "auto") == 0)
                return 0;
        return text_parse_uint64(word, ret) < 0 || *ret == 0 || *ret > 256 ? -EINVAL : 0;
}

static int answer_replicas(const struct split_options *options, const struct plan_split_input *input,
                           double start, struct text *out, struct err *err)
{
        struct replicas_plan plan = { 0 };
        uint64_t wanted;
        int r;

        (void) replicas_wanted(options->replicas, &wanted); /* looked at before */
        r = plan_replicas(input, (size_t) wanted, &plan, err);
        if (r == PIPELINE_NO_FIT)
                r = -ERANGE;
        if (r == 0 && strcmp(options->output, "json") == 0)
                r = dump(plan_replicas_encode(input, &plan, now_ms() - start), out, err);
        else if (r == 0)
                plan_replicas_table(input, &plan, now_ms() - start, out);
        replicas_plan_free(&plan);
        return r;
}

/* One pipeline is planned with one link a device. */
static int one_link(const struct plan_split_input *input, struct err *err)
{
        for (size_t c = 0; c < input->problem.class_count; c++)
                if (input->inside_bytes_per_ms[c] > 0)
                        return err_set(
                                err, -EINVAL,
                                "devices[%zu].inside_bytes_per_ms: --replicas alone tells links inside "
                                "a node from others; leave it out, or write --replicas 1",
                                c);
        return 0;
}

static int answer_chain(const struct split_options *options, const json_t *json, struct text *out,
                        struct err *err)
{
        struct plan_split_input input;
        struct chain_plan plan = { 0 };
        json_t *rows = NULL;
        double start = now_ms();
        int r = plan_split_input_decode(json, &input, err);

        if (r < 0)
                return r;
        if (options->rows != NULL) {
                r = plan_split_rows(&input, options->rows, &rows, err);
                if (r == 0)
                        r = dump(rows, out, err);
        } else if (options->replicas != NULL) {
                r = answer_replicas(options, &input, start, out, err);
        } else {
                r = one_link(&input, err);
                if (r == 0)
                        r = chain_split(&input.problem, &plan, err);
                if (r == CHAIN_NO_FIT)
                        r = -ERANGE;
                if (r == 0 && strcmp(options->output, "json") == 0)
                        r = dump(plan_split_encode(&input, &plan, now_ms() - start), out, err);
                else if (r == 0)
                        plan_split_table(&input, &plan, now_ms() - start, out);
                chain_plan_free(&plan);
        }
        plan_split_input_free(&input);
        return r;
}

static int answer_graph(const struct split_options *options, const json_t *json, struct text *out,
                        struct err *err)
{
        struct plan_graph_request request;
        struct graph_plan plan;
        struct plan_graph_effort effort = { .seed = options->seed, .effort = options->effort };
        double start = now_ms();
        int r = plan_graph_request_decode(json, options->contiguous, &request, err);

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
                        r = dump(plan_graph_answer_json(&request, &plan, &effort), out, err);
                else
                        plan_graph_answer_table(&request, &plan, &effort, out);
                graph_split_plan_free(&plan);
        }
        plan_graph_request_free(&request);
        return r;
}

/* A network on given devices, as a chain of its blocks. */
static int estimate_chain(const struct split_options *options, const char *file, json_t **ret,
                          struct err *err)
{
        struct network_estimate_device devices[GIVEN_DEVICES_MAX] = { 0 };
        struct network network = { 0 };
        struct network_forms_request request = { .network = &network, .devices = devices };
        struct text form = { 0 };
        int r = given_devices_collect(&options->devices, options->machines, devices, &request.device_count,
                                      err);

        if (r == 0 && request.device_count == 0)
                r = err_set(err, -EINVAL,
                            "--network needs devices; give --devices NAME*N or --machines FILE");
        if (r == 0)
                r = plan_network_read(file, options->tokens, &network, err);
        if (r < 0)
                return r;
        request.assumptions = network_estimate_default();
        request.assumptions.efficiency = options->efficiency;
        request.assumptions.training = !options->inference;
        request.assumptions.samples = options->microbatch;
        request.microbatches = options->microbatches;
        request.link_gb_per_s = options->link_gb_per_s;
        r = network_forms_split(&request, &form, err);
        if (r == 0) {
                *ret = form.data == NULL ? NULL : json_loads(form.data, 0, NULL);
                r = *ret == NULL ? err_set(err, -ENOMEM, "no memory for the chain") : 0;
        }
        text_free(&form);
        network_free(&network);
        return r;
}

static int answer(const struct split_options *options, const char *file, struct text *out, struct err *err)
{
        json_t *json = NULL;
        int r = options->network != NULL ? estimate_chain(options, file, &json, err)
                                         : plan_read_json(file, &json, err);

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

/* What must and must not be given together. */
static const char *misuse(const struct split_options *options, size_t operands)
{
        uint64_t wanted;

        if (!(options->time_limit_sec > 0 && options->time_limit_sec <= 1e6))
                return "--time-limit must be above 0 s and at most 1000000 s";
        if (replicas_wanted(options->replicas, &wanted) < 0)
                return "--replicas must be auto or a number in 1..256";
        if (options->replicas != NULL && options->rows != NULL)
                return "--replicas and --rows exclude each other";
        if ((options->network == NULL) == (operands == 0))
                return "give either FILE or --network FILE";
        if (!(options->efficiency > 0 && options->efficiency <= 1))
                return "--efficiency must be a share above 0, up to 1";
        if (!(options->link_gb_per_s >= 1e-6 && options->link_gb_per_s <= 1e6))
                return "--link must be GB per second, above 0";
        return NULL;
}

int plan_split(int argc, char **argv, const struct plan_host *host)
{
        struct split_options options = { 0 };
        struct text out = { 0 };
        struct err err = { 0 };
        size_t operands = 0;
        const char *wrong, *file;
        int r = options_start(&plan_split_options, REMUDA_VERSION, argc, argv, &options, &operands, stdout,
                              stderr);

        (void) host;
        if (r >= 0)
                return r;
        wrong = misuse(&options, operands);
        if (wrong != NULL) {
                fprintf(stderr, "remuda plan split: %s\n", wrong);
                return EXIT_USAGE;
        }
        file = options.network != NULL ? options.network : argv[1];
        r = answer(&options, file, &out, &err);
        return plan_finish("split", file, r, &out, &err);
}
