/* The first kind of figure that all members have, and the shard planner's workers made of it. */
#include "planner/speeds/chip_speed.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define SAMPLES_PER_TFLOPS 1000 /* what a chip of so much is taken to do a second: ratios matter */

const char *const chip_speed_names[] = { "assumed", "table", "kernel", "measured", NULL };
const char *const chip_speed_precision_names[] = { "bf16", "fp16", "fp32", "mixed", "", NULL };

enum chip_speed_precision chip_speed_precision(const char *name)
{
        for (unsigned p = 0; p < CHIP_SPEED_PEAKS; p++)
                if (strcmp(name, chip_speed_precision_names[p]) == 0)
                        return (enum chip_speed_precision) p;
        return CHIP_SPEED_FP32;
}

static bool has_peak(const struct chip_speed_figures *figures)
{
        for (unsigned p = 0; p < CHIP_SPEED_PEAKS; p++)
                if (figures->tflops[p] > 0)
                        return true;
        return false;
}

bool chip_speed_any_figure(const struct chip_speed_figures *figures)
{
        return has_peak(figures) || figures->kernel_gflops > 0;
}

bool chip_speed_same_figures(const struct chip_speed_figures *a, const struct chip_speed_figures *b)
{
        return a->tflops[CHIP_SPEED_BF16] == b->tflops[CHIP_SPEED_BF16] &&
               a->tflops[CHIP_SPEED_FP16] == b->tflops[CHIP_SPEED_FP16] &&
               a->tflops[CHIP_SPEED_FP32] == b->tflops[CHIP_SPEED_FP32] &&
               a->kernel_gflops == b->kernel_gflops && a->kernel_precision == b->kernel_precision &&
               a->estimated == b->estimated;
}

bool chip_speed_same_kind(const struct chip_speed_verdict *a, const struct chip_speed_verdict *b)
{
        return a->source == b->source && a->precision == b->precision;
}

/* The figure itself, in TFLOP/s; one that was measured alone stands for the data sheet that nobody has. */
static double own_peak(const struct chip_speed_figures *figures, enum chip_speed_precision precision)
{
        if (!has_peak(figures) && figures->kernel_precision == precision)
                return figures->kernel_gflops / 1000;
        return figures->tflops[precision];
}

static double highest_peak(const struct chip_speed_figures *figures)
{
        for (unsigned p = 0; p < CHIP_SPEED_PEAKS; p++)
                if (own_peak(figures, (enum chip_speed_precision) p) > 0)
                        return own_peak(figures, (enum chip_speed_precision) p);
        return 0;
}

static double peak(const struct chip_speed_figures *figures, enum chip_speed_precision precision)
{
        return precision == CHIP_SPEED_MIXED || figures->estimated ? highest_peak(figures)
                                                                   : own_peak(figures, precision);
}

/* The highest that all have; one that none but estimates have is nobody's. */
static enum chip_speed_precision common_precision(const struct chip_speed_member *members, size_t count)
{
        for (unsigned p = 0; p < CHIP_SPEED_PEAKS; p++) {
                bool own = false, all = true;

                for (size_t i = 0; i < count && all; i++) {
                        if (members[i].aside)
                                continue;
                        own = own || own_peak(&members[i].figures, (enum chip_speed_precision) p) > 0;
                        all = peak(&members[i].figures, (enum chip_speed_precision) p) > 0;
                }
                if (own && all)
                        return (enum chip_speed_precision) p;
        }
        return CHIP_SPEED_MIXED;
}

static double ranks_a_chip(const struct chip_speed_member *member)
{
        return member->ranks_a_chip > 0 ? member->ranks_a_chip : 1;
}

const struct speed_table_row *chip_speed_row(const struct speed_table *table, const char *model,
                                             const struct chip_speed_member *member, double *ret_part)
{
        double ranks = ranks_a_chip(member);
        const struct speed_table_row *row = NULL;
        char device[SPEED_TABLE_DEVICE_BYTES];

        *ret_part = 1;
        if (table == NULL || table->count == 0 || member->device == NULL || member->device[0] == '\0')
                return NULL;
        if (ranks > 1) {
                speed_table_device(device, member->device, (size_t) ceil(ranks));
                row = speed_table_find(table, member->program, model, device);
        }
        if (row != NULL)
                return row;
        *ret_part = ranks;
        speed_table_device(device, member->device, 1);
        return speed_table_find(table, member->program, model, device);
}

static void set_speed(struct shard_worker *worker, double speed)
{
        worker->model = SHARD_SPEED;
        worker->speed = speed;
        worker->alpha_ms = worker->beta_ms = 0;
}

static bool same_chip(const struct chip_speed_member *a, const struct chip_speed_member *b)
{
        return a->ranks_a_chip == b->ranks_a_chip && a->program == b->program && a->device == b->device;
}

static bool all_measured(const struct speed_table *table, const char *model,
                         const struct chip_speed_member *members, size_t count,
                         struct shard_worker *ret_workers)
{
        const struct chip_speed_member *last = NULL;
        const struct speed_table_row *row = NULL;
        double part = 1;

        for (size_t i = 0; i < count; i++) {
                if (members[i].aside)
                        continue;
                if (row == NULL || !same_chip(last, &members[i]))
                        row = chip_speed_row(table, model, &members[i], &part);
                last = &members[i];
                if (row == NULL)
                        return false;
                ret_workers[i].model = SHARD_AFFINE;
                ret_workers[i].speed = 0;
                ret_workers[i].alpha_ms = row->alpha_ms;
                ret_workers[i].beta_ms = row->beta_ms * part;
        }
        return last != NULL;
}

/* Return: the precision in which all have a kernel's figure; CHIP_SPEED_NO_PRECISION = there is none. */
static enum chip_speed_precision kernel_of_all(const struct chip_speed_member *members, size_t count)
{
        enum chip_speed_precision ret = CHIP_SPEED_NO_PRECISION;

        for (size_t i = 0; i < count; i++) {
                const struct chip_speed_figures *figures = &members[i].figures;

                if (members[i].aside)
                        continue;
                if (!(figures->kernel_gflops > 0) ||
                    (ret != CHIP_SPEED_NO_PRECISION && ret != figures->kernel_precision))
                        return CHIP_SPEED_NO_PRECISION;
                ret = figures->kernel_precision;
        }
        return ret;
}

/* Return: the first member that has no figure but perhaps a measurement; count = each has one. */
static size_t find_lacking(const struct chip_speed_member *members, size_t count)
{
        size_t i = 0;

        while (i < count && (members[i].aside || chip_speed_any_figure(&members[i].figures)))
                i++;
        return i;
}

static double speed_of(const struct chip_speed_verdict *verdict, const struct chip_speed_member *member)
{
        const struct chip_speed_figures *figures = &member->figures;

        if (verdict->source == CHIP_SPEED_ASSUMED)
                return SAMPLES_PER_TFLOPS;
        return (verdict->source == CHIP_SPEED_KERNEL
                        ? figures->kernel_gflops
                        : SAMPLES_PER_TFLOPS * peak(figures, verdict->precision)) /
               ranks_a_chip(member);
}

struct chip_speed_verdict chip_speed_find(const struct speed_table *table, const char *model,
                                          const struct chip_speed_member *members, size_t count,
                                          struct shard_worker *ret_workers)
{
        struct chip_speed_verdict ret = { .source = CHIP_SPEED_MEASURED,
                                          .precision = CHIP_SPEED_NO_PRECISION };

        if (all_measured(table, model, members, count, ret_workers))
                return ret;
        ret.lacking = find_lacking(members, count);
        ret.precision = kernel_of_all(members, count);
        if (ret.lacking < count || count == 0) {
                ret.source = CHIP_SPEED_ASSUMED;
                ret.precision = CHIP_SPEED_NO_PRECISION;
        } else if (ret.precision != CHIP_SPEED_NO_PRECISION) {
                ret.source = CHIP_SPEED_KERNEL;
        } else {
                ret.source = CHIP_SPEED_TABLE;
                ret.precision = common_precision(members, count);
        }
        for (size_t i = 0; i < count; i++)
                if (!members[i].aside)
                        set_speed(&ret_workers[i], speed_of(&ret, &members[i]));
        return ret;
}

double chip_speed_samples_per_s(const struct shard_worker *worker)
{
        return worker->model == SHARD_AFFINE ? 1000 / worker->beta_ms : worker->speed;
}

void chip_speed_rank(const struct speed_table *table, const char *model, struct chip_speed_member *members,
                     size_t count, struct shard_worker *ret_workers)
{
        for (int measured = 1; measured >= 0; measured--) {
                for (size_t i = 0; i < count; i++) {
                        double part;

                        members[i].aside =
                                !chip_speed_any_figure(&members[i].figures) &&
                                (!measured || chip_speed_row(table, model, &members[i], &part) == NULL);
                }
                if (chip_speed_find(table, model, members, count, ret_workers).source != CHIP_SPEED_ASSUMED)
                        break;
        }
        for (size_t i = 0; i < count; i++)
                if (members[i].aside)
                        set_speed(&ret_workers[i], 0);
}

const char *chip_speed_remark(const struct chip_speed_verdict *speeds, const char *member, const char *node,
                              char ret[CHIP_SPEED_REMARK_BYTES])
{
        if (speeds->source == CHIP_SPEED_ASSUMED) {
                (void) text_format(ret, CHIP_SPEED_REMARK_BYTES,
                                   "%.60s has no figure of speed to be compared by, so all count alike; "
                                   "`remuda devices --measure --save` on %.60s measures it",
                                   member, node[0] != '\0' ? node : "this machine");
                return "SpeedAssumed";
        }
        if (speeds->source == CHIP_SPEED_TABLE && speeds->precision == CHIP_SPEED_MIXED) {
                (void) text_copy(ret, CHIP_SPEED_REMARK_BYTES,
                                 "no precision is known of all chips, so each counts by its highest; `remuda "
                                 "devices --measure --save` on their nodes measures all in one");
                return "SpeedMixed";
        }
        return NULL;
}
