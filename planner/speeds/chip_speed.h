/* Chip speed: how fast is a program on each chip of a job? The one answer, whoever asks: the extender, the
 * controller, `remuda run`, `remuda plan` and the pages.
 *
 * Only ratios matter, so figures of two kinds never mix. The first that all members have counts:
 *
 *      measured   a step of b samples of this program and model takes alpha + beta b ms: the SpeedTable
 *      kernel     GFLOP/s that `remuda devices --measure` saw, all of one precision
 *      table      dense peaks of data sheets, in the highest precision that all have. A processors' estimate
 *                 stands for every precision; one that has a kernel's figure alone counts by that.
 *                 Without a common precision each counts by its highest: `mixed`
 *      assumed    all alike, for there is one that has no figure to be compared by
 *
 * Example: an H100 (989 in bf16 and fp16) and a V100 (125 in fp16) are 989 : 125, `table`, fp16: of a batch
 * of 1024 they take 909 and 115. Pure; O(members x rows). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "planner/shards/shard.h"
#include "planner/speeds/speed_table.h"

enum chip_speed {
        CHIP_SPEED_ASSUMED,
        CHIP_SPEED_TABLE,
        CHIP_SPEED_KERNEL,
        CHIP_SPEED_MEASURED,
        CHIP_SPEED_COUNT /* what says more comes later */
};
extern const char *const chip_speed_names[CHIP_SPEED_COUNT + 1]; /* ended by NULL */

enum chip_speed_precision {
        CHIP_SPEED_BF16, /* the highest comes first */
        CHIP_SPEED_FP16,
        CHIP_SPEED_FP32,
        CHIP_SPEED_MIXED,
        CHIP_SPEED_NO_PRECISION, /* the program's own, or none */
        CHIP_SPEED_PRECISION_COUNT
};
#define CHIP_SPEED_PEAKS CHIP_SPEED_MIXED /* precisions that a peak can be of */
/* "bf16" ..., "" for none */
extern const char *const chip_speed_precision_names[CHIP_SPEED_PRECISION_COUNT + 1];

/* chip_speed_precision() - "bf16", "fp16", "fp32"; anything else is fp32, which every kernel can. */
enum chip_speed_precision chip_speed_precision(const char *name);

/* What is known of a chip, whatever runs on it. 0 = not known. */
struct chip_speed_figures {
        double tflops[CHIP_SPEED_PEAKS]; /* dense */
        double kernel_gflops;
        enum chip_speed_precision kernel_precision;
        bool estimated; /* the peaks are, from what the processors are */
};

struct chip_speed_member {
        const char *program, *device; /* SHA-256, NULL or "" = not known; the model, without one the vendor */
        double ranks_a_chip;          /* above 1 they share it; 0 = 1 */
        struct chip_speed_figures figures;
        bool aside; /* not of the comparison */
};

struct chip_speed_verdict {
        enum chip_speed source; /* of all members */
        enum chip_speed_precision precision;
        size_t lacking; /* CHIP_SPEED_ASSUMED: a member that has no figure to be compared by */
};

/* chip_speed_find() - @model: of the job; @table: may be NULL; @ret_workers: [count], name and limits are
 * left as they are. A peak is a thousand, a kernel's GFLOP/s one sample a second: no speed that anybody saw.
 * Ranks that share a chip have what was measured of such a part, else their part of the chip. */
struct chip_speed_verdict chip_speed_find(const struct speed_table *table, const char *model,
                                          const struct chip_speed_member *members, size_t count,
                                          struct shard_worker *ret_workers);

/* chip_speed_same_kind() - do speeds of the one verdict compare with the other's? */
bool chip_speed_same_kind(const struct chip_speed_verdict *a, const struct chip_speed_verdict *b);

/* chip_speed_rank() - which of these chips is the fastest? As above, but that chips without a figure do not
 * make the others alike: they come last, and so do those that were measured alone where others were not.
 * @members: set aside or not as is found; @ret_workers: those aside have speed 0 */
void chip_speed_rank(const struct speed_table *table, const char *model, struct chip_speed_member *members,
                     size_t count, struct shard_worker *ret_workers);

/* chip_speed_samples_per_s() - of a worker, with many samples: larger is faster. */
double chip_speed_samples_per_s(const struct shard_worker *worker);

/* chip_speed_row() - what is measured of one member, or NULL. @ret_part: by how much its beta grows */
const struct speed_table_row *chip_speed_row(const struct speed_table *table, const char *model,
                                             const struct chip_speed_member *member, double *ret_part);

/* chip_speed_any_figure() - is there one at all? chip_speed_same_figures() - do two chips have the same
 * ones? */
bool chip_speed_any_figure(const struct chip_speed_figures *figures);
bool chip_speed_same_figures(const struct chip_speed_figures *a, const struct chip_speed_figures *b);

#define CHIP_SPEED_REMARK_BYTES 240

/* chip_speed_remark() - what people have to be told of these speeds, as an event: its word, and the sentence
 * in @ret. @member: the lacking one's name; @node: where it is, "" = here.
 * Return: "SpeedAssumed", "SpeedMixed"; NULL = nothing. */
const char *chip_speed_remark(const struct chip_speed_verdict *speeds, const char *member, const char *node,
                              char ret[CHIP_SPEED_REMARK_BYTES]);
