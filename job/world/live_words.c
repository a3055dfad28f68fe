/* One function a kind of sentence. */
#include "job/world/live_words.h"

#include <math.h>

#include "base/text.h"
#include "job/world/names.h"

#define RANKS_MAX 12 /* whose shares are listed */

static void say_shares(const struct world *world, uint64_t (*batch)(const struct world_rank *),
                       struct text *to)
{
        size_t said = 0;

        for (size_t i = 0; i < world->rank_count; i++) {
                if (!world_is_worker(world, i))
                        continue;
                if (said == RANKS_MAX) {
                        text_printf(to, " + ...");
                        return;
                }
                text_printf(to, "%s%llu", said++ == 0 ? "" : " + ",
                            (unsigned long long) batch(&world->ranks[i]));
        }
}

static uint64_t batch_now(const struct world_rank *rank)
{
        return rank->batch;
}

static uint64_t batch_before(const struct world_rank *rank)
{
        return rank->batch_before;
}

static void say_taken(const struct world *world, const struct live *found, struct text *to)
{
        text_printf(to, "from step %llu on the shares are ", (unsigned long long) found->step);
        say_shares(world, batch_now, to);
        text_printf(to, ", before ");
        say_shares(world, batch_before, to);
        if (found->after_ms < found->before_ms)
                text_printf(
                        to,
                        ", by the speeds that are seen now: a step is expected to take %.2f ms instead of "
                        "%.2f ms (%.2f times shorter)",
                        found->after_ms, found->before_ms, found->before_ms / found->after_ms);
        else
                text_printf(to, ": with those, steps took longer for no reason that a rank gives");
}

/* What a rank says and cannot be: the field, why not if that is not plain, what to give instead. */
static const struct {
        const char *field, *why, *remedy;
} doubts[PROGRESS_DOUBTS] = {
        [PROGRESS_STEP] = { "step", "", "give the number of the step made last, from 0 on" },
        [PROGRESS_SAMPLES] = { "samples", "",
                               "give all samples of this rank since the world began, which never fall" },
        [PROGRESS_BUSY] = { "busy_seconds", "",
                            "give all seconds that it computed since the world began, which never fall" },
        [PROGRESS_BUSY_LONG] = { "busy_seconds", ", which is longer than the world lasts",
                                 "give the seconds that it computed since the world began" },
        [PROGRESS_SHARE] = { "samples", " a step, which is more than its share",
                             "give its own samples, not those of all ranks" },
        [PROGRESS_RATE] = { "samples_per_s", ", by which it cannot have computed as long as the world lasts",
                            "give samples and busy_seconds, the seconds that it computed them" },
        [PROGRESS_FAST] = { "that it computes", " samples a second, which no chip does",
                            "give samples, and busy_seconds in seconds" },
        [PROGRESS_UNTRUE] = { "that it computes",
                              " ms less a step than it does: with its larger share steps take longer, and in "
                              "so much of a step no rank says that it computes",
                              "measure busy_seconds until the device is done, without the waiting for "
                              "others" },
};

static void say_doubt(const struct progress_rank *rank, struct text *to)
{
        if (rank->doubt == PROGRESS_NO_LINE) {
                text_printf(to,
                            " writes a line to REMUDA_PROGRESS that is no JSON object and is not read; leave "
                            "out what is not known: NaN and Infinity are no JSON");
                return;
        }
        if (rank->doubt == PROGRESS_STEP_ANEW) {
                text_printf(to,
                            " says step %g after it said more; count steps over all epochs, as shares are in "
                            "force from a step on: until then they stay",
                            rank->doubted);
                return;
        }
        if (isnan(rank->doubted))
                text_printf(to, " says a %s that is no number", doubts[rank->doubt].field);
        else
                text_printf(to, " says %s %g%s", doubts[rank->doubt].field, rank->doubted,
                            doubts[rank->doubt].why);
        text_printf(to, "; %s; its speed is not taken to be known, and the shares stay",
                    doubts[rank->doubt].remedy);
}

static void say_mute(const struct world *world, const struct live *found, struct text *to)
{
        const struct progress_rank *rank = &world->seen[found->rank];

        if (rank->busy_ms <= 0)
                text_printf(
                        to,
                        " %s: its speed is not known, and the shares stay as they were cut; write samples "
                        "and busy_seconds, as libremuda-train and remuda.torch do",
                        !rank->reported      ? "writes no progress lines, and others do"
                        : rank->samples == 0 ? "says no samples in its progress lines"
                                             : "says no busy_seconds in its progress lines");
        else
                text_printf(to,
                            " says in its progress lines that it takes no new shares (shares_step null), and "
                            "%s does: they "
                            "cannot change while the job runs; start programs of one version",
                            names_rank(world, found->other).text);
}

void live_words(const struct world *world, const struct live *found, char *text)
{
        struct text line = { .max_bytes = WORLD_TEXT_BYTES - 1 };
        unsigned long long step = found->step;

        if (found->kind != LIVE_TELL && found->kind != LIVE_TAKEN)
                text_printf(&line, "%s", names_rank(world, found->rank).text);
        switch (found->kind) {
        case LIVE_TAKEN:
                say_taken(world, found, &line);
                break;
        case LIVE_UNTAKEN_BY:
                text_printf(&line,
                            " has not taken the shares that were told for step %llu; until all ranks say "
                            "that they "
                            "have, those of before count, and new ones need a new world; read the file that "
                            "REMUDA_SHARES names once a step",
                            step);
                break;
        case LIVE_UNLIKE:
                text_printf(
                        &line,
                        " uses the shares of step %llu, %s those of step %llu: samples are used twice or not "
                        "at all; let the ranks agree on the step with a collective",
                        (unsigned long long) world->seen[found->rank].shares_step,
                        names_rank(world, found->other).text,
                        (unsigned long long) world->seen[found->other].shares_step);
                break;
        case LIVE_DOUBTED:
                say_doubt(&world->seen[found->rank], &line);
                break;
        case LIVE_MUTE:
                say_mute(world, found, &line);
                break;
        case LIVE_SILENT_RANK:
                text_printf(&line,
                            " has said nothing since step %llu, and others go on: its speed is not known any "
                            "more, and the shares stay; write a line to REMUDA_PROGRESS after every step",
                            step);
                break;
        case LIVE_NOTHING:
        case LIVE_TELL:
                break;
        }
        (void) text_copy(text, WORLD_TEXT_BYTES, line.data == NULL ? "" : line.data);
        text_free(&line);
}
