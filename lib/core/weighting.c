#include "core/weighting.h"

#include <string.h>

static bool better(const struct ledger_group *a, const struct ledger_group *b, uint32_t chips, bool fastest)
{
        bool a_fits = group_open(a) >= chips, b_fits = group_open(b) >= chips;

        if (a_fits != b_fits)
                return a_fits;
        if (!a_fits)
                return false; /* neither has room: the first accepted one stands for them */
        if (fastest && a->tflops != b->tflops)
                return a->tflops > b->tflops;
        return group_open(a) < group_open(b);
}

const struct ledger_group *weighting_group(const struct ledger_group *groups, size_t group_count,
                                           const struct ask *ask, bool fastest)
{
        const struct ledger_group *best = NULL;

        if (ask->item_count == 0)
                return NULL;
        for (size_t i = 0; i < group_count; i++)
                if (groups[i].resource == ask->items[0].resource && ask_accepts(ask, groups[i].model) &&
                    (best == NULL || better(&groups[i], best, ask->items[0].chips, fastest)))
                        best = &groups[i];
        return best;
}

const struct weighting_row *weighting_row(const struct weighting *weighting, const struct ledger_group *group)
{
        if (weighting == NULL || group == NULL)
                return NULL;
        for (size_t i = 0; i < weighting->row_count; i++)
                if (weighting->rows[i].runtime == group->runtime && weighting->rows[i].model == group->model)
                        return &weighting->rows[i];
        return NULL;
}

static const struct ledger_program *program_of(const struct ledger_program *programs, size_t count,
                                               uint32_t runtime)
{
        for (size_t i = 0; i < count; i++)
                if (programs[i].runtime == runtime)
                        return &programs[i];
        return NULL;
}

bool weighting_has_program(const struct weighting *weighting, const struct ask *ask,
                           const struct ledger_node *node, const struct ledger_group *groups)
{
        const struct ledger_group *group = weighting_group(groups, node->group_count, ask, false);
        const struct ledger_program *wanted, *reported;

        if (!weighting->of_training_job || group == NULL)
                return true;
        wanted = program_of(weighting->programs, weighting->program_count, group->runtime);
        if (wanted == NULL)
                return false;
        reported = program_of(node->programs, node->program_count, group->runtime);
        return wanted->sha256[0] == '\0' || reported == NULL || reported->sha256[0] == '\0' ||
               strcmp(wanted->sha256, reported->sha256) == 0;
}

enum reason weighting_judge(const struct weighting *weighting, const struct ask *ask,
                            const struct ledger_node *node, const struct ledger_group *groups)
{
        const struct weighting_row *row =
                weighting_row(weighting, weighting_group(groups, node->group_count, ask, false));

        return row == NULL ? REASON_NONE : row->verdict;
}
