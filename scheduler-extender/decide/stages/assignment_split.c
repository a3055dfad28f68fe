/* Offers from open groups, and parts from what was chosen of them. */
#include "scheduler-extender/decide/stages/assignment_split.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "job/stages/stage_profile.h"
#include "scheduler-extender/decide/stages/stage_choice.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

struct offers {
        struct stage_mix_offer *items;
        size_t count, capacity;
};

static void offers_free(struct offers *offers)
{
        free(offers->items);
}

/* A plan of stages is by ranks with a chip each. */
static bool have_chips(const struct assignment *made)
{
        for (size_t i = 0; i < made->count; i++)
                if (made->parts[i].server || made->parts[i].ranks != made->parts[i].chips)
                        return false;
        return made->count > 0;
}

static size_t ranks_of(const struct assignment *made)
{
        size_t ranks = 0;

        for (size_t i = 0; i < made->count; i++)
                ranks += made->parts[i].ranks;
        return ranks;
}

static uint32_t taken_of(const struct assignment *made, uint32_t entry, const struct ledger_group *group)
{
        for (size_t i = 0; i < made->count; i++)
                if (made->parts[i].entry == entry && made->parts[i].group == group)
                        return made->parts[i].chips;
        return 0;
}

static int add_offer(const struct open_groups_claim *claim, const struct assignment *made, uint32_t entry,
                     const struct open_groups *groups, size_t index, struct offers *offers)
{
        const struct symbols *symbols = &claim->job.ledger->symbols;
        const struct job_role *role = &claim->job.job->workers[entry];
        const struct open_group *group = &groups->items[index];
        struct stage_mix_offer *offer =
                array_add(&offers->items, &offers->count, &offers->capacity, sizeof(*offer));

        if (offer == NULL)
                return -ENOMEM;
        *offer = (struct stage_mix_offer){
                .worker = { .role = role, .chips = 1, .memory_bytes = group->group->memory_bytes },
                .place = { .open = group->found, .node = group->node->name, .index = group->choice.index },
                .tag = index,
                .network_mbps = group->node->hardware.network_mbps,
                .chips = taken_of(made, entry, group->group),
        };
        (void) text_copy(offer->worker.chip.vendor, sizeof(offer->worker.chip.vendor),
                         symbols_name(symbols, group->group->vendor));
        (void) text_copy(offer->worker.chip.runtime, sizeof(offer->worker.chip.runtime),
                         open_groups_runtime(symbols, role, group->group));
        (void) text_copy(offer->worker.chip.model, sizeof(offer->worker.chip.model),
                         symbols_name(symbols, group->group->model));
        (void) text_copy(offer->worker.chip.group, sizeof(offer->worker.chip.group),
                         symbols_name(symbols, group->group->name));
        return 0;
}

static int make_offers(const struct open_groups_claim *claim, struct open_groups *groups,
                       const struct assignment *made, struct offers *offers)
{
        for (uint32_t entry = 0; entry < claim->job.job->worker_count; entry++) {
                open_groups_consider(&claim->job, &claim->job.job->workers[entry], groups);
                for (size_t i = 0; i < groups->count; i++)
                        if (groups->items[i].fits && groups->items[i].found > 0 &&
                            add_offer(claim, made, entry, groups, i, offers) < 0)
                                return -ENOMEM;
        }
        return 0;
}

/* How fast each offer's chips are, by the figure that all have; where one has none, as `fastest` ranks. */
static int compare_speeds(const struct open_groups_claim *claim, const struct open_groups *groups,
                          struct offers *offers)
{
        const struct batch_cut_job *job = &claim->job;
        struct ledger_speeds_programs programs = { .ledger = job->ledger,
                                                   .job = job->job,
                                                   .table = job->programs,
                                                   .table_count = job->program_count };
        CLEANUP(free_p) struct chip_speed_member *members = calloc(offers->count + 1, sizeof(*members));
        CLEANUP(free_p) struct shard_worker *workers = calloc(offers->count + 1, sizeof(*workers));
        const struct speed_table *table = &job->ledger->speeds;
        bool measured;

        if (members == NULL || workers == NULL)
                return -ENOMEM;
        ledger_speeds_collect(&programs);
        for (size_t i = 0; i < offers->count; i++)
                members[i] = ledger_speeds_member(&programs, offers->items[i].worker.chip.runtime,
                                                  groups->items[offers->items[i].tag].group);
        measured = chip_speed_find(table, job->job->model, members, offers->count, workers).source ==
                   CHIP_SPEED_MEASURED;
        if (!measured)
                chip_speed_rank(table, job->job->model, members, offers->count, workers);
        for (size_t i = 0; i < offers->count; i++) {
                offers->items[i].worker.speed = chip_speed_samples_per_s(&workers[i]);
                offers->items[i].worker.samples_per_s = measured ? offers->items[i].worker.speed : 0;
        }
        return 0;
}

/* What the policy said of its own chips is history. */
static void forget_notes(struct assignment *made)
{
        for (size_t i = made->note_count; i-- > 0;)
                if (text_starts_with(made->notes[i], "NotAdded: "))
                        memmove(made->notes[i], made->notes[i + 1],
                                (--made->note_count - i) * sizeof(*made->notes));
}

/* "ChipsChosen: a planned step takes 12 ms (period 2), 31 (7) on the chips that are fastest one by one: 2 x
 * A100 of b" */
static void say(const struct offers *offers, const struct stage_choice *choice, struct assignment *made)
{
        struct text said = { 0 };
        bool first = true;

        if (made->note_count == ASSIGNMENT_NOTES_MAX)
                return;
        if (!isfinite(choice->before.ms))
                text_append(&said,
                            "ChipsChosen: no split fits the chips that are fastest one by one, one does");
        else if (choice->after.compared)
                text_printf(&said,
                            "ChipsChosen: a planned step takes %.3g of that on the chips that are fastest "
                            "one by one",
                            choice->after.ms / choice->before.ms);
        else
                text_printf(
                        &said,
                        "ChipsChosen: a planned step takes %.4g ms (period %.4g), %.4g (%.4g) on the chips "
                        "that are fastest one by one",
                        choice->after.ms, choice->after.period_ms, choice->before.ms,
                        choice->before.period_ms);
        for (size_t i = 0; i < offers->count; i++) {
                const struct stage_mix_offer *offer = &offers->items[i];

                if (offer->chips == 0)
                        continue;
                text_printf(&said, "%s%u x %s of %s", first ? ": " : ", ", offer->chips,
                            offer->worker.chip.model[0] != '\0' ? offer->worker.chip.model
                                                                : offer->worker.chip.vendor,
                            offer->place.node);
                first = false;
        }
        if (said.data != NULL)
                (void) snprintf(made->notes[made->note_count++], ASSIGNMENT_NOTE_BYTES, "%s", said.data);
        text_free(&said);
}

/* In the order of the offers: by entry, then alike ones beside each other. */
static int take_offers(const struct job *job, const struct open_groups *groups, const struct offers *offers,
                       size_t parts_max, struct assignment *made)
{
        struct assignment_part *parts;
        size_t count = 0;

        for (size_t i = 0; i < offers->count; i++)
                count += offers->items[i].chips > 0;
        if (count > parts_max)
                return 0;
        parts = calloc(count + 1, sizeof(*parts));
        if (parts == NULL)
                return -ENOMEM;
        free(made->parts);
        made->parts = parts;
        made->count = 0;
        for (size_t i = 0; i < offers->count; i++) {
                const struct stage_mix_offer *offer = &offers->items[i];
                struct assignment_part *part = &parts[made->count];

                if (offer->chips == 0)
                        continue;
                *part = (struct assignment_part){ .entry = (uint32_t) (offer->worker.role - job->workers),
                                                  .chips = offer->chips,
                                                  .ranks = offer->chips,
                                                  .node = groups->items[offer->tag].node,
                                                  .group = groups->items[offer->tag].group };
                made->count++;
        }
        return 1;
}

static bool is_asked(const struct job *job)
{
        return job->strategy == JOB_STRATEGY_SPLIT && job->shards == JOB_SHARDS_WEIGHTED &&
               placement_of_job(job) == PLACEMENT_FASTEST;
}

int assignment_split(const struct open_groups_claim *claim, struct open_groups *groups, size_t parts_max,
                     struct assignment *made)
{
        CLEANUP(job_split_profile_free) struct job_split_profile own = { .samples = 1 };
        CLEANUP(offers_free) struct offers offers = { 0 };
        struct stage_mix_problem problem = { .job = claim->job.job,
                                             .apart = claim->processes,
                                             .effort = STAGE_CHOICE_EFFORT };
        struct stage_choice choice;
        int r;

        if (!is_asked(problem.job) || !have_chips(made))
                return 0;
        problem.profile = stage_profile_of(problem.job, 0, &own);
        problem.fixed = problem.profile == NULL; /* else stages that are bound, one to each chip, are all */
        if (problem.fixed)
                problem.profile = stage_profile_of(problem.job, ranks_of(made), &own);
        if (problem.profile == NULL)
                return 0;
        if (make_offers(claim, groups, made, &offers) < 0 || compare_speeds(claim, groups, &offers) < 0)
                return -ENOMEM;
        problem.offers = offers.items;
        problem.count = offers.count;
        r = stage_choice(&problem, &choice);
        if (r == 0 && choice.changed)
                r = take_offers(problem.job, groups, &offers, parts_max, made);
        if (r > 0) {
                forget_notes(made);
                say(&offers, &choice, made);
        }
        return r < 0 ? r : 0;
}
