/* remuda simulate: a trace replayed through the extender's own scoring code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/commands.h"
#include "io/clock.h"
#include "io/read_file.h"
#include "scheduler-extender/replay/replay.h"
#include "scheduler-extender/replay/trace_csv.h"

struct simulate_options {
        const char *nodes, *pods, *policy, *placements, *output;
        uint64_t seed;
        double load;
        unsigned shortlist;
        bool departures;
};

#define AT(member) offsetof(struct simulate_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "nodes", .type = OPTION_STRING, .offset = AT(nodes), .value = "CSV",
          .help = "nodes: sn,cpu_milli,memory_mib,gpu,model" },
        { .name = "pods", .type = OPTION_STRING, .offset = AT(pods), .value = "CSV",
          .help = "pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli..." },
        { .name = "policy", .type = OPTION_CHOICE, .offset = AT(policy),
          .value = "packed|uniform|largest-free|fastest|bestfit|fgd", .default_ = "packed",
          .help = "bestfit and fgd are baselines" },
        { .name = "seed", .type = OPTION_UINT64, .offset = AT(seed), .value = "N", .default_ = "1",
          .help = "of the order of arrival" },
        { .name = "load", .type = OPTION_DOUBLE, .offset = AT(load), .value = "F", .default_ = "1.3",
          .help = "chips asked for / chips there are" },
        { .name = "shortlist", .type = OPTION_UNSIGNED, .offset = AT(shortlist), .value = "N", .default_ = "1",
          .minimum = 1, .maximum = 100000, .help = "kube-scheduler chooses among the N best nodes" },
        { .name = "departures", .type = OPTION_BOOL, .offset = AT(departures),
          .help = "pods leave again after their own duration" },
        { .name = "placements", .type = OPTION_STRING, .offset = AT(placements), .value = "CSV",
          .help = "write where each pod went" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = AT(output), .value = "table|json",
          .default_ = "table", .help = "how to print" },
        { 0 },
};
/* clang-format on */

const struct option_program command_simulate_options = {
        .name = "remuda simulate",
        .summary = "Replays a trace of pods on a list of nodes through the extender's scoring code.",
        .after = "All of it is simulated: no cluster is asked or changed. See remuda-simulate(1).",
        .specs = specs,
};

struct simulation {
        struct trace_csv_models models;
        struct trace_csv_nodes nodes;
        struct trace_csv_pods pods;
        FILE *placements;
};

/* Published half-precision peaks of the models that traces name; a model that is not here is of unknown
 * speed. */
static double speed_of(const char *model)
{
        /* clang-format off */
        static const struct {
                const char *model;
                double tflops;
        } table[] = {
                { "P100", 18.7 }, { "V100M16", 112 }, { "V100M32", 125 }, { "T4", 65 }, { "A10", 125 },
        };
        /* clang-format on */

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (strcmp(table[i].model, model) == 0)
                        return table[i].tflops;
        return 0;
}

static int load(const struct simulate_options *o, struct simulation *s, struct err *err)
{
        CLEANUP(free_p) char *nodes = NULL, *pods = NULL;
        size_t node_bytes = 0, pod_bytes = 0;
        int r = read_file(o->nodes, READ_FILE_MAX_BYTES, &nodes, &node_bytes, err);

        if (r == 0)
                r = read_file(o->pods, READ_FILE_MAX_BYTES, &pods, &pod_bytes, err);
        if (r < 0)
                return r;
        r = trace_csv_nodes_decode(nodes, node_bytes, &s->models, &s->nodes, err);
        if (r < 0)
                return err_wrap(err, r, "--nodes '%s'", o->nodes);
        for (size_t i = 0; i < s->nodes.count; i++)
                s->nodes.nodes[i].speed = speed_of(s->models.names[s->nodes.nodes[i].model]);
        r = trace_csv_pods_decode(pods, pod_bytes, &s->models, &s->pods, err);
        return r < 0 ? err_wrap(err, r, "--pods '%s'", o->pods) : 0;
}

static void write_placement(void *userdata, const struct replay_placement *p)
{
        const struct simulation *s = userdata;
        const struct fragmentation_pod *request = &s->pods.pods[p->pod].request;

        if (s->placements == NULL)
                return;
        fprintf(s->placements, "%s,%s,%u,", s->pods.names[p->pod], p->node < 0 ? "" : s->nodes.names[p->node],
                request->chips);
        for (uint8_t i = 0; i < p->chips; i++)
                fprintf(s->placements, "%s%u", i > 0 ? ";" : "", p->chip[i]);
        fprintf(s->placements, ",%u\n", request->milli);
}

static void print_result(const struct simulate_options *o, const struct replay_result *result, double seconds)
{
        const char *form =
                strcmp(o->output, "json") == 0
                        ? "{\"policy\":\"%s\",\"seed\":%llu,\"pods_arrived\":%zu,\"pods_placed\":%zu,"
                          "\"chips_requested\":%.3f,\"chips_allocated\":%.3f,"
                          "\"allocation_percent\":%.4f,\"seconds\":%.3f}\n"
                        : "policy %s, seed %llu (simulated)\n%zu pods arrived, %zu were placed\n"
                          "%.3f chips asked for, %.3f allocated: %.4f %%\n%.3f s\n";

        printf(form, o->policy, (unsigned long long) o->seed, result->arrived, result->placed,
               result->chips_requested, result->chips_allocated, result->allocation_percent, seconds);
}

static int simulate(const struct simulate_options *o, struct simulation *s, struct err *err)
{
        struct replay_options options = {
                .seed = o->seed, .load = o->load, .shortlist = o->shortlist, .departures = o->departures
        };
        struct replay_result result;
        uint64_t begin, end;
        int r = load(o, s, err);

        if (r < 0)
                return r;
        (void) replay_policy_parse(o->policy, &options.policy); /* the option table knows the same words */
        if (o->placements != NULL) {
                s->placements = fopen(o->placements, "we");
                if (s->placements == NULL)
                        return err_set(err, -errno, "--placements: open '%s': %m", o->placements);
                fputs("pod,node,chips,chip_indices,milli\n", s->placements);
        }
        options.placed = write_placement;
        options.userdata = s;
        begin = clock_monotonic_nsec();
        r = replay_run(s->nodes.nodes, s->nodes.count, s->pods.pods, s->pods.count, &options, &result, err);
        end = clock_monotonic_nsec();
        if (r < 0)
                return r;
        if (s->placements != NULL && (fflush(s->placements) != 0 || ferror(s->placements)))
                return err_set(err, -EIO, "--placements: '%s' cannot be written", o->placements);
        print_result(o, &result, (double) (end - begin) / 1e9);
        return 0;
}

int command_simulate(int argc, char **argv)
{
        struct simulate_options options = { 0 };
        struct simulation simulation = { 0 };
        struct err err = { 0 };
        size_t operands;
        int r = options_start(&command_simulate_options, REMUDA_VERSION, argc, argv, &options, &operands,
                              stdout, stderr);

        if (r >= 0)
                return r;
        if (options.nodes == NULL || options.pods == NULL) {
                fprintf(stderr, "remuda simulate: --nodes CSV and --pods CSV are needed; see --help\n");
                return EXIT_USAGE;
        }
        r = simulate(&options, &simulation, &err);
        if (simulation.placements != NULL)
                (void) fclose(simulation.placements);
        trace_csv_nodes_free(&simulation.nodes);
        trace_csv_pods_free(&simulation.pods);
        return options_end(&command_simulate_options, r, &err, stderr);
}
