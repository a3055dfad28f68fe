/* The table of options, and what reads them from argv and the environment. */
#include "trainer/train_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define DEFAULT_EPOCHS 10

enum kind { FLAG, STRING, CHOICE, COUNT, RATIO, NUMBERS, PAIRS };

struct row {
        const char *name, *argument;
        enum kind kind;
        size_t offset;
        double least, most;
        const char *help; /* of a CHOICE, the argument lists the words */
};

#define AT(field) offsetof(struct train_options, field)

/* clang-format off */
static const struct row rows[] = {
        { "--data", "DIR", STRING, AT(data), 0, 0, "directory with the data files" },
        { "--model", "mlp|cnn|resnet|text", CHOICE, AT(model), 0, 0, "what to train" },
        { "--strategy", "serial|allreduce|ps-sync|ps-async|ps-ssp|split", CHOICE, AT(strategy), 0, 0,
          "how the ranks work together (default: serial alone, allreduce in a world)" },
        { "--batch", "B", COUNT, AT(batch), 1, 1 << 24, "samples of a global batch (default 128)" },
        { "--shares", "B1,B2,...", NUMBERS, AT(shares), 0, 1 << 24, "samples of each batch per worker, adding up to B (default equal); split: per pipeline, or per rank" },
        { "--epochs", "E", COUNT, AT(epochs), 1, 1 << 24, "passes over the data (default 10)" },
        { "--steps", "N", COUNT, AT(steps), 1, 1e12, "stop after N batches instead" },
        { "--seed", "N", COUNT, AT(seed), 0, 9e18, "of parameters, sample order, augmentation (default 1)" },
        { "--learning-rate", "R", RATIO, AT(rate), 1e-12, 1e6, "used as it is (default: the model's own, in proportion to the batch, falling with the epochs)" },
        { "--optimiser", "sgd|momentum", CHOICE, AT(optimiser), 0, 0, "default sgd" },
        { "--momentum", "M", RATIO, AT(momentum), 0, 0.999999, "of the optimiser momentum (default 0.9)" },
        { "--servers", "N", COUNT, AT(servers), 1, 4096, "ps-*: ranks 0..N-1 hold the parameters (default 1)" },
        { "--staleness", "S", COUNT, AT(staleness), 0, 1 << 24, "ps-ssp: steps that a worker may be ahead of the slowest (default 4)" },
        { "--load-segment", "N|auto", COUNT, AT(load_segment), 1, 1 << 24, "load a batch N samples at a time: the disk is told ahead, a device is sent each part, and computing starts with the first (auto: by the preset, small parts; only a step of which nothing is loaded is computed in parts)" },
        { "--checkpoint", "DIR", STRING, AT(checkpoint), 0, 0, "write checkpoints there" },
        { "--every", "N", COUNT, AT(every), 1, 1e12, "steps between checkpoints (default an epoch)" },
        { "--resume", NULL, FLAG, AT(resume), 0, 0, "go on from the newest whole checkpoint of --checkpoint, if there is one" },
        { "--clock-log", "FILE", STRING, AT(clock_log), 0, 0, "servers: usec rank clock slowest_clock of every gradient" },
        { "--preprocess", "SPEC", STRING, AT(preprocess), 0, 0, "resize:HxW, normalise, scale, flip[:P], crop[:N], tokenise:word|byte|wordpiece, with commas" },
        { "--distribute", "shared|manager|once", CHOICE, AT(distribute), 0, 0, "who reads the data: every rank, or rank 0, which sends each worker what it needs; once: every rank, and it keeps a shard of its own" },
        { "--poll", "SECONDS", COUNT, AT(poll), 0, 1e6, "look for new files between epochs, at most that often; they join at the next" },
        { "--order", "blocks|round-robin", CHOICE, AT(order), 0, 0, "how a batch is cut: neighbours together, or dealt (default blocks)" },
        { "--neighbour-exchange", "F", RATIO, AT(exchange), 0, 1, "share of the samples left of its own shard that a worker passes to the next one after each step" },
        { "--no-shuffle", NULL, FLAG, AT(as_it_lies), 0, 0, "workers go through shards of their own as the samples lie" },
        { "--stages", "F:L,F:L,...", PAIRS, AT(stages), 0, 1 << 20, "split: first and last layer of each rank; each that begins with layer 0 begins another pipeline, a replica of the model (default: equal numbers, or REMUDA_LAYERS)" },
        { "--microbatches", "M", COUNT, AT(microbatches), 1, 1 << 20, "split: parts of a batch that follow each other through the stages, of all pipelines together (default 4)" },
        { "--groups", "N1,N2,...|none", NUMBERS, AT(groups), 0, 4096, "workers of each group, which add up among themselves; only its first one speaks to the others (default: REMUDA_LEVELS, if it is the faster)" },
        { "--segments", "I,J,...|auto|none", NUMBERS, AT(segments), 0, 1 << 20, "gradient segments: last tensor of each, in backward order from 0" },
        { "--gradient-weights", "samples|plain", CHOICE, AT(gradient_weights), 0, 0, "weigh a worker by its share (default), or all alike (wrong for unequal shares; to compare)" },
        { "--evaluate", NULL, FLAG, AT(evaluate), 0, 0, "measure the accuracy on the test data at the end" },
        { "--evaluate-epochs", NULL, FLAG, AT(evaluate_epochs), 0, 0, "and after every epoch, as progress lines" },
        { "--evaluate-steps", "N", COUNT, AT(evaluate_steps), 1, 1e12, "and after every N steps" },
        { "--weights-out", "FILE", STRING, AT(weights_out), 0, 0, "write all parameters, little-endian float32" },
        { "--sample-log", "FILE", STRING, AT(sample_log), 0, 0, "write FILE.RANK: epoch step rank sample" },
        { "--timeline", "FILE", STRING, AT(timeline), 0, 0, "write FILE.RANK: what the rank did when, a trace that Perfetto opens" },
        { "--progress", "FD|FILE", STRING, AT(progress), 0, 0, "JSON lines after every step (default: REMUDA_PROGRESS)" },
        { "--measure", NULL, FLAG, AT(measure), 0, 0, "measure this rank's speed at --batch samples a step and stop" },
        { "--measure-layers", NULL, FLAG, AT(measure_layers), 0, 0, "with --measure: of every layer, too, for a split" },
        { "--measure-seconds", "S", RATIO, AT(measure_seconds), 0.01, 3600, "for how long (default 1)" },
        { "--no-fuse", NULL, FLAG, AT(no_fuse), 0, 0, "run every operator by itself" },
        { "--convolution", "direct|patches", CHOICE, AT(convolution), 0, 0, "cpu: one that is fused with its pooling: directly, or as a product of patches like an unfused one (default: as tuned, or direct)" },
        { "--tile-memory", "MB|auto|none", COUNT, AT(tile_mbytes), 1, 1 << 30, "what a rank's convolutions may take, in MB (10^6 bytes); large images that take more go through them in tiles (default auto: half the device's memory, over the ranks of this machine; none: never)" },
        { "--explain-fusion", NULL, FLAG, AT(explain_fusion), 0, 0, "print which operators run as one, and stop" },
        { "--operator", "NAME=FILE", STRING, AT(operator_library), 0, 0, "take kernel NAME from the shared library FILE" },
        { "--activation", "NAME=FILE", STRING, AT(activation), 0, 0, "in place of the ReLUs NAME, an operator of the shared library FILE" },
        { "--fusion", "FILE", STRING, AT(fusion), 0, 0, "rules of fusion of one's own: operators that a shared library does in one pass, or that stay apart" },
        { "--tune", NULL, FLAG, AT(tune), 0, 0, "search what the kernels of this build can be tuned by on this device, keep the best in the cache, and stop" },
        { "--cache", "FILE", STRING, AT(cache), 0, 0, "where they are kept (default ~/.cache/remuda/tuned)" },
        { "--no-preset", NULL, FLAG, AT(no_preset), 0, 0, "neither presets nor cache" },
        { "--traffic", NULL, FLAG, AT(traffic), 0, 0, "print the bytes that each rank holds, got and sent; sunway: those between main memory and local stores" },
        { "--simulate-slow", "P0,P1,...", NUMBERS, AT(slow), 0, 100000, "simulated: rank i loads and computes as a device that takes Pi percent of its time" },
        { "--simulate-slow-from", "STEP,P0,P1,...", NUMBERS, AT(slow_from), 0, 1000000000, "simulated: from step STEP on such percents, in place of those of --simulate-slow" },
        { "--simulate-speeds", "S0,S1,...", NUMBERS, AT(speeds), 0, 1000000000, "simulated: rank i loads and computes Si samples a second at most (0: as it is)" },
        { "--export", "FILE", STRING, AT(export_file), 0, 0, "write a compressed model after training; a name that ends in .onnx: as ONNX" },
        { "--import", "FILE", STRING, AT(import_file), 0, 0, "begin with the weights of an ONNX file that --export wrote" },
        { "--quantise", "int8|int8-tensor", CHOICE, AT(quantise), 0, 0, "of the export: weights in 8 bits, with a scale for each output channel, or (to compare) one for a whole tensor" },
        { "--sparsity", "P", RATIO, AT(sparsity), 0, 0.99, "of the export: share of the smallest weights left out" },
        { "--slave-cores", "N", COUNT, AT(cpes), 1, 4096, "sunway: slave cores of a group (default 64)" },
        { "--chip", "SW26010|SW26010-Pro", CHOICE, AT(chip), 0, 0, "sunway: whose core group: 64 or 256 KB a local store (default: the one that /proc/cpuinfo names, or else SW26010)" },
        { "--local-store", "KB", COUNT, AT(local_store), 16, 1024, "sunway: of each slave core, of which 6 KB are for its stack (default: the chip's)" },
        { "--variant", "threads|athread", CHOICE, AT(variant), 0, 0, "sunway: what the slave cores are: host threads that emulate them (default), or the real ones (compiled alone, never run)" },
        { "--gemm", "tiles|blas", CHOICE, AT(gemm), 0, 0, "sunway: matrix product in tiles (default) or by BLAS" },
        { "--no-staging", NULL, FLAG, AT(no_staging), 0, 0, "sunway: read operands straight from main memory" },
        { "--no-double-buffers", NULL, FLAG, AT(one_buffer), 0, 0, "sunway: wait for each transfer, instead of computing beside the next one" },
        { "--merge", "slave-cores|management-core", CHOICE, AT(merge), 0, 0, "sunway: who adds up the gradients of slave cores and other ranks (default slave-cores)" },
        { "--simulate-dma", "MB", COUNT, AT(simulate_dma), 1, 1 << 20, "sunway, simulated: --traffic also tells what a step would take slave cores that compute as this host does and transfer MB (10^6 bytes) a second each" },
        { "--device", "P:D|list", STRING, AT(device), 0, 0, "opencl: platform and device number (default: the chip that the rank was given, else the best: accelerators before processors), or print them all, and stop" },
        { "--conformance", NULL, FLAG, AT(conformance), 0, 0, "test every operator of this build against double precision, and stop" },
        { "--help", NULL, FLAG, AT(help), 0, 0, "this text" },
        { "--version", NULL, FLAG, AT(version), 0, 0, "version" },
};
/* clang-format on */

void train_options_help(const char *program)
{
        printf("usage: %s --data DIR --model mlp|cnn|resnet|text [OPTION]...\n"
               "Train a model, alone or as a rank of one mpirun. See remuda-train(1).\n\n",
               program);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                printf("  %s%s%s\n        %s\n", rows[i].name, rows[i].argument != NULL ? " " : "",
                       rows[i].argument != NULL ? rows[i].argument : "", rows[i].help);
}

void train_options_free(struct train_options *o)
{
        free(o->shares.values);
        free(o->segments.values);
        free(o->groups.values);
        free(o->stages.values);
        free(o->slow.values);
        free(o->slow_from.values);
        free(o->speeds.values);
        free(o->own_layers.values);
}

static void add_numbers(struct text *line, const char *name, const struct train_options_list *n)
{
        text_printf(line, " %s=", name);
        for (size_t i = 0; i < n->count; i++)
                text_printf(line, "%s%zu", i > 0 ? "," : "", n->values[i]);
}

static const char *mode_of(const struct train_options *o)
{
        const struct {
                bool wanted;
                const char *name;
        } modes[] = {
                { o->help, "help" },
                { o->version, "version" },
                { train_options_lists_devices(o), "devices" },
                { o->tune, "tune" },
                { o->conformance, "conformance" },
                { o->explain_fusion, "explain-fusion" },
                { o->measure, "measure" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
                if (modes[i].wanted)
                        return modes[i].name;
        return "train";
}

bool train_options_lists_devices(const struct train_options *o)
{
        return o->device != NULL && strcmp(o->device, "list") == 0;
}

bool train_options_owned(const struct train_options *o)
{
        return o->exchange > 0 || strcmp(o->distribute, "once") == 0;
}

char *train_options_line(const struct train_options *o)
{
        struct text line = { 0 };

        text_printf(&line, "do=%s model=%s strategy=%s batch=%zu", mode_of(o),
                    o->model != NULL ? o->model : "-", o->strategy != NULL ? o->strategy : "default",
                    o->batch);
        add_numbers(&line, "shares", &o->shares);
        text_printf(&line, " servers=%zu staleness=%zu microbatches=%zu", o->servers, o->staleness,
                    o->microbatches);
        add_numbers(&line, "groups", &o->groups);
        add_numbers(&line, "stages", &o->stages);
        text_printf(&line, " groups-proposed=%d segments=%s", o->groups_proposed,
                    o->segments_auto   ? "auto"
                    : o->segments_none ? "none"
                                       : "given");
        text_printf(&line, o->steps > 0 ? " steps=%zu" : " epochs=%zu", o->steps > 0 ? o->steps : o->epochs);
        text_printf(&line,
                    " seed=%zu rate=%.17g optimiser=%s momentum=%.17g order=%s exchange=%.17g shuffle=%d",
                    o->seed, o->rate, o->optimiser, o->momentum, o->order, o->exchange, !o->as_it_lies);
        text_printf(&line, " weights=%s distribute=%s poll=%zu preprocess=%s", o->gradient_weights,
                    o->distribute, o->poll, o->preprocess != NULL ? o->preprocess : "-");
        /* of NAME=FILE the name alone: each machine may have the file where it likes */
        text_printf(&line, " activation=%.*s", o->activation != NULL ? (int) strcspn(o->activation, "=") : 1,
                    o->activation != NULL ? o->activation : "-");
        text_printf(&line, " import=%d", o->import_file != NULL);
        text_printf(&line, " evaluate-epochs=%d evaluate-steps=%zu checkpoint=%d every=%zu resume=%d",
                    o->evaluate_epochs, o->evaluate_steps, o->checkpoint != NULL, o->every, o->resume);
        if (line.failed) {
                text_free(&line);
                return NULL;
        }
        return line.data;
}

static int parse_numbers(const char *s, const struct row *row, struct train_options_list *ret,
                         struct err *err)
{
        CLEANUP(free_p) char *copy = strdup(s);
        struct train_options_list n = { .values = calloc(TRAIN_OPTIONS_LIST_MAX, sizeof(*n.values)) };
        char *rest = copy, *word;
        uint64_t value;
        int r = copy == NULL || n.values == NULL ? -ENOMEM : 0;

        while (r == 0 && (word = strsep(&rest, row->kind == PAIRS && n.count % 2 == 0 ? ":" : ",")) != NULL) {
                if (n.count == TRAIN_OPTIONS_LIST_MAX || text_parse_uint64(word, &value) < 0 ||
                    value > (uint64_t) row->most)
                        r = -EINVAL;
                else
                        n.values[n.count++] = (size_t) value;
        }
        if (r == 0 && row->kind == PAIRS && n.count % 2 != 0)
                r = -EINVAL;
        if (r < 0) {
                free(n.values);
                if (row->kind == PAIRS)
                        return err_set(err, r, "%s '%.80s': first and last numbers are wanted, e.g. 0:1,2:2",
                                       row->name, s);
                return err_set(err, r,
                               "%s '%.80s': numbers up to %.0f with commas between are wanted, e.g. 96,32",
                               row->name, s, row->most);
        }
        free(ret->values);
        *ret = n;
        return 0;
}

static bool is_choice(const char *choices, const char *word)
{
        size_t length = strlen(word);

        for (const char *at = choices; length > 0 && at != NULL; at = strchr(at, '|')) {
                at += *at == '|';
                if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0'))
                        return true;
        }
        return false;
}

/* The rows that take a word in place of numbers. */
static bool set_auto(const struct row *row, const char *value, struct train_options *o)
{
        if (value != NULL && strcmp(value, "none") == 0) {
                o->segments_none = o->segments_none || row->offset == AT(segments);
                o->groups_none = o->groups_none || row->offset == AT(groups);
                o->tiles_none = o->tiles_none || row->offset == AT(tile_mbytes);
                return row->offset == AT(segments) || row->offset == AT(groups) ||
                       row->offset == AT(tile_mbytes);
        }
        if (value == NULL || strcmp(value, "auto") != 0)
                return false;
        o->segments_auto = o->segments_auto || row->offset == AT(segments);
        o->load_auto = o->load_auto || row->offset == AT(load_segment);
        if (row->offset == AT(tile_mbytes))
                o->tile_mbytes = 0;
        o->tiles_none = o->tiles_none && row->offset != AT(tile_mbytes);
        return row->offset == AT(segments) || row->offset == AT(load_segment) ||
               row->offset == AT(tile_mbytes);
}

static int set_value(const struct row *row, const char *value, struct train_options *o, struct err *err)
{
        if (set_auto(row, value, o))
                return 0;

        void *field = (char *) o + row->offset;
        uint64_t count;
        double ratio;

        switch (row->kind) {
        case FLAG:
                *(bool *) field = true;
                return 0;
        case CHOICE:
                if (!is_choice(row->argument, value))
                        return err_set(err, -EINVAL, "%s '%.80s': one of %s is wanted", row->name, value,
                                       row->argument);
                __attribute__((fallthrough));
        case STRING:
                *(const char **) field = value;
                return value[0] != '\0'
                               ? 0
                               : err_set(err, -EINVAL, "%s '': %s is wanted", row->name, row->argument);
        case COUNT:
                if (text_parse_uint64(value, &count) < 0 || (double) count < row->least ||
                    (double) count > row->most)
                        return err_set(err, -EINVAL, "%s '%.80s': a whole number from %.0f to %.0f is wanted",
                                       row->name, value, row->least, row->most);
                *(size_t *) field = (size_t) count;
                o->tiles_none = o->tiles_none && row->offset != AT(tile_mbytes);
                return 0;
        case RATIO:
                if (text_parse_double(value, &ratio) < 0 || ratio < row->least || ratio > row->most)
                        return err_set(err, -EINVAL, "%s '%.80s': a number from %g to %g is wanted",
                                       row->name, value, row->least, row->most);
                *(double *) field = ratio;
                return 0;
        case NUMBERS:
        case PAIRS:
                return parse_numbers(value, row, field, err);
        }
        return -EINVAL;
}

static const struct row *find_row(const char *word, size_t length)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (strlen(rows[i].name) == length && strncmp(rows[i].name, word, length) == 0)
                        return &rows[i];
        return NULL;
}

static int parse_arguments(int argc, char **argv, struct train_options *o, struct err *err)
{
        for (int i = 1; i < argc; i++) {
                const char *equals = strchr(argv[i], '=');
                size_t length = equals != NULL ? (size_t) (equals - argv[i]) : strlen(argv[i]);
                const struct row *row = find_row(argv[i], length);
                const char *value = equals != NULL ? equals + 1 : NULL;
                int r;

                if (row == NULL)
                        return err_set(err, -EINVAL, "no option '%.80s': see --help", argv[i]);
                if (row->kind == FLAG && value != NULL)
                        return err_set(err, -EINVAL, "%s takes no value", row->name);
                if (row->kind != FLAG && value == NULL) {
                        if (i + 1 == argc)
                                return err_set(err, -EINVAL, "%s wants a value: %s", row->name,
                                               row->argument);
                        value = argv[++i];
                }
                r = set_value(row, value, o, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_given(const struct row *row, const struct train_options *o)
{
        const void *field = (const char *) o + row->offset;

        if (row->kind >= NUMBERS)
                return ((const struct train_options_list *) field)->count > 0 ||
                       (row->offset == AT(segments) && (o->segments_auto || o->segments_none)) ||
                       (row->offset == AT(groups) && o->groups_none);
        return row->kind == STRING ? *(const char *const *) field != NULL : o->shares.count > 0;
}

static int from_environment(struct train_options *o, struct err *err)
{
        /* clang-format off */
        static const struct row variables[] = {
                { "REMUDA_BATCH", "B", COUNT, AT(own_batch), 0, 1 << 24, NULL },
                { "REMUDA_WEIGHT", "W", RATIO, AT(own_weight), 0, 1, NULL },
                { "REMUDA_LAYERS", "F:L", PAIRS, AT(own_layers), 0, 1 << 20, NULL },
                { "REMUDA_SEGMENTS", "I,J,...", NUMBERS, AT(segments), 0, 1 << 20, NULL },
                { "REMUDA_PROGRESS", "FD|FILE", STRING, AT(progress), 0, 0, NULL },
                { "REMUDA_SHARES", "FILE", STRING, AT(live_shares), 0, 0, NULL },
                { "REMUDA_VENDOR", "NAME", STRING, AT(chip_vendor), 0, 0, NULL },
                { "REMUDA_DEVICES", "ID", STRING, AT(chip_ids), 0, 0, NULL },
                { "REMUDA_PCI", "ADDRESS", STRING, AT(chip_places), 0, 0, NULL },
        };
        /* clang-format on */
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
                const char *value = getenv(variables[i].name);

                if (value != NULL && value[0] != '\0' && !is_given(&variables[i], o) &&
                    set_value(&variables[i], value, o, err) < 0)
                        return err->code;
        }
        return 0;
}

static bool sums_by_allreduce(const struct train_options *o)
{
        return o->strategy == NULL || strcmp(o->strategy, "allreduce") == 0;
}

/* REMUDA_LEVELS, "4,4" or "none" of the job, or "auto:4,4", what a launcher proposes: that is for those who
 * sum by allreduce, and for no listed segments, which are of one level. */
static int take_levels(struct train_options *o, struct err *err)
{
        static const struct row row = { "REMUDA_LEVELS", "N1,N2,...", NUMBERS, AT(groups), 1, 4096, NULL };
        static const char proposal[] = "auto:";
        const char *value = getenv(row.name);
        bool listed = o->segments.count > 0, given = o->groups.count > 0 || o->groups_none, proposed;
        int r = 0;

        proposed = !given && value != NULL && text_starts_with(value, proposal);
        if (!given && value != NULL && value[0] != '\0' && !(proposed && (listed || !sums_by_allreduce(o))))
                r = set_value(&row, value + (proposed ? strlen(proposal) : 0), o, err);
        o->groups_proposed = proposed && o->groups.count > 0;
        if (r == 0 && o->groups.count > 0 && listed && sums_by_allreduce(o))
                return err_set(err, -EINVAL,
                               "--segments lists those of one level, and --groups makes two, which send "
                               "pieces as they are ready: give one of them");
        return r;
}

/* A cut that would change nothing is refused. One rank alone has no exchange, and any cut is as good. */
static int check_segments(const struct train_options *o, struct err *err)
{
        const char *strategy = o->strategy != NULL ? o->strategy : "allreduce";

        if ((o->segments.count > 0 || o->segments_auto) && strcmp(strategy, "allreduce") != 0 &&
            strcmp(strategy, "serial") != 0)
                return err_set(
                        err, -EINVAL,
                        "--segments: are of strategy allreduce alone, and --strategy is %s, which cuts no "
                        "gradients; leave --segments out (or REMUDA_SEGMENTS), or give --strategy "
                        "allreduce",
                        strategy);
        return 0;
}

static int check(const struct train_options *o, struct err *err)
{
        if (o->help || o->version || o->conformance || o->tune || train_options_lists_devices(o))
                return 0;
        if (o->model == NULL)
                return err_set(err, -EINVAL, "--model is wanted: mlp, cnn, resnet or text");
        if (o->data == NULL)
                return err_set(err, -EINVAL, "--data is wanted: the directory with the data files");
        if (o->activation != NULL && o->quantise != NULL)
                return err_set(
                        err, -EINVAL,
                        "--quantise has no 8-bit form of the activation that --activation brings: give one "
                        "of them");
        if (o->activation != NULL && o->export_file != NULL && text_ends_with(o->export_file, ".onnx"))
                return err_set(err, -EINVAL,
                               "--export: ONNX has no operator for the activation that --activation brings: "
                               "give a file whose name does not end in .onnx, or leave one of them out");
        if (o->quantise != NULL && strcmp(o->quantise, "int8-tensor") == 0 && o->export_file != NULL &&
            text_ends_with(o->export_file, ".onnx"))
                return err_set(
                        err, -EINVAL,
                        "--quantise int8-tensor: an ONNX file has a scale for each channel: give int8");
        if (o->slow.count + o->slow_from.count > 0 && o->speeds.count > 0)
                return err_set(err, -EINVAL,
                               "--simulate-slow and --simulate-speeds both say how slow a rank is: give one "
                               "of them");
        return check_segments(o, err);
}

int train_options_parse(int argc, char **argv, struct train_options *ret, struct err *err)
{
        struct train_options o = { .optimiser = "sgd",
                                   .order = "blocks",
                                   .own_batch = SIZE_MAX,
                                   .own_weight = -1,
                                   .distribute = "shared",
                                   .gradient_weights = "samples",
                                   .gemm = "tiles",
                                   .merge = "slave-cores",
                                   .seed = 1,
                                   .momentum = 0.9,
                                   .measure_seconds = 1,
                                   .cpes = 64,
                                   .servers = 1,
                                   .microbatches = 4,
                                   .staleness = 4 };
        int r = parse_arguments(argc, argv, &o, err);

        if (r == 0 && !o.help && !o.version)
                r = from_environment(&o, err);
        if (r == 0 && !o.help && !o.version) /* which looks at what segments there are */
                r = take_levels(&o, err);
        if (r == 0)
                r = check(&o, err);
        if (r < 0) {
                train_options_free(&o);
                return r;
        }
        if (o.epochs == 0)
                o.epochs = DEFAULT_EPOCHS;
        *ret = o;
        return 0;
}

struct backend_options train_options_backend(const struct train_options *o, size_t cpus, size_t local_rank)
{
        const char *convolution = o->convolution != NULL ? o->convolution : "";

        return (struct backend_options){ .cpes = o->cpes,
                                         .variant = o->variant,
                                         .gemm_blas = strcmp(o->gemm, "blas") == 0,
                                         .no_staging = o->no_staging,
                                         .sunway_chip = o->chip,
                                         .store_bytes = o->local_store << 10,
                                         .one_buffer = o->one_buffer,
                                         .master_merges = strcmp(o->merge, "management-core") == 0,
                                         .dma_bytes_per_s = (uint64_t) o->simulate_dma * 1000000,
                                         .patches = strcmp(convolution, "patches") == 0,
                                         .direct = strcmp(convolution, "direct") == 0,
                                         .cpus = cpus,
                                         .device = o->device,
                                         .chip = { .vendor = o->chip_vendor,
                                                   .ids = o->chip_ids,
                                                   .places = o->chip_places,
                                                   .local_rank = local_rank } };
}
