/* Options: the command line of a trainer, one row an option, completed from the environment that a launcher
 * sets (REMUDA_BATCH, REMUDA_LEVELS, REMUDA_PROGRESS; the list is in remuda-run(1)). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "trainer/operators/backend.h"

#define TRAIN_OPTIONS_LIST_MAX 4096

struct train_options_list {
        size_t count;
        size_t *values; /* owned */
};

struct train_options {
        const char *data, *model, *strategy; /* borrowed from argv */
        const char *distribute;
        size_t poll; /* seconds, 0 = never */
        const char *preprocess, *operator_library, *activation, *fusion, *cache, *export_file, *import_file,
                *quantise;
        struct train_options_list speeds; /* simulated: samples a second at most, by rank; 0: as it is */
        struct train_options_list slow;   /* simulated: percent of the time that computing takes, by rank */
        struct train_options_list slow_from; /* a step, and such percents from there on */
        const char *variant, *convolution, *chip, *merge;
        const char *optimiser, *order, *gradient_weights, *gemm;
        const char *weights_out, *sample_log, *clock_log, *timeline, *progress, *checkpoint, *device;
        const char *live_shares; /* REMUDA_SHARES: the file in which new shares come */
        const char *chip_vendor, *chip_ids, *chip_places; /* REMUDA_VENDOR, REMUDA_DEVICES, REMUDA_PCI */
        struct train_options_list shares, segments, groups;
        struct train_options_list stages;     /* first, last, first, last... */
        struct train_options_list own_layers; /* REMUDA_LAYERS: first, last */
        size_t batch;                         /* global; 0 = not given */
        size_t own_batch;                     /* REMUDA_BATCH, SIZE_MAX = not set */
        double own_weight;                    /* REMUDA_WEIGHT, negative = not set */
        size_t load_segment;                  /* 0 = whole chunks */
        size_t tile_mbytes;                   /* 0 = auto */
        size_t evaluate_steps;                /* 0 = not */
        size_t epochs, steps, seed, cpes, local_store, simulate_dma, every, servers, staleness, microbatches;
        double rate; /* 0 = the model's */
        double sparsity, momentum, exchange, measure_seconds;
        bool evaluate, evaluate_epochs, no_fuse, explain_fusion, no_staging, one_buffer, resume, measure,
                conformance;
        bool measure_layers, as_it_lies;
        bool tune, no_preset, traffic, segments_auto, segments_none, load_auto, tiles_none;
        bool groups_none, groups_proposed; /* --groups none; groups that REMUDA_LEVELS names */
        bool help, version;
};

/* train_options_parse() - argv, then the environment. Return: 0, or -EINVAL naming the option and what it
 * takes. */
int train_options_parse(int argc, char **argv, struct train_options *ret, struct err *err);
void train_options_free(struct train_options *o);

/* train_options_owned() - do workers keep shards of their own? */
bool train_options_owned(const struct train_options *o);

/* train_options_line() - everything that the ranks of one world must agree on, as words `name=value`; what
 * each may have for itself (its environment, files, device, kernels) is left out. Return: allocated, NULL =
 * no memory. */
char *train_options_line(const struct train_options *o);

/* train_options_help() - the text of --help; for the manual's check too. */
void train_options_help(const char *program);

/* train_options_lists_devices() - is `--device list` all that is wanted? */
bool train_options_lists_devices(const struct train_options *o);

/* train_options_backend() - what the command line and the launcher say about the backend. @cpus: that this
 * process may use; @local_rank: among the ranks of this machine */
struct backend_options train_options_backend(const struct train_options *o, size_t cpus, size_t local_rank);
