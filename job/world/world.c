/* What facts change in the world; nothing is concluded here but who is judged as idle. */
#include "job/world/world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "job/world/blame.h"

/* What computes in several threads at once may say a little more than the clock; what counts in one and
 * speaks in another, the samples of a step that it has not counted yet. */
#define BUSY_RATIO   1.1
#define BUSY_SECONDS 1.0
#define STEPS_AHEAD  1

int world_init(struct world *world, const struct world_rules *rules, size_t place_count, uint64_t now_usec,
               struct err *err)
{
        *world = (struct world){ .rules = *rules, .place_count = place_count, .phase_usec = now_usec };
        world->places = calloc(place_count + 1, sizeof(*world->places));
        if (world->places == NULL)
                return err_set(err, -ENOMEM, "no memory for the places of the job");
        for (size_t i = 0; i < place_count; i++)
                world->places[i].stand_in = WORLD_NOBODY;
        return 0;
}

void world_free(struct world *world)
{
        free(world->places);
        free(world->ranks);
        free(world->seen);
        free(world->split.ranks);
        doubts_free(&world->doubts);
        *world = (struct world){ 0 };
}

int world_lay_out(struct world *world, size_t rank_count, struct err *err)
{
        doubts_keep(world);
        free(world->ranks);
        free(world->seen);
        free(world->split.ranks);
        world->split = (struct split_state){ 0 };
        world->ranks = calloc(rank_count + 1, sizeof(*world->ranks));
        world->seen = calloc(rank_count + 1, sizeof(*world->seen));
        world->rank_count = world->ranks == NULL || world->seen == NULL ? 0 : rank_count;
        world->words[0] = '\0';
        return world->rank_count < rank_count ? err_set(err, -ENOMEM, "no memory for the ranks") : 0;
}

void world_drop(struct world *world, size_t place)
{
        world->place_count--;
        memmove(&world->places[place], &world->places[place + 1],
                (world->place_count - place) * sizeof(*world->places));
}

bool world_is_there(const struct world_place *place)
{
        return place->there && !place->leaving;
}

bool world_is_worker(const struct world *world, size_t rank)
{
        return !world->places[world->ranks[rank].place].server;
}

bool world_has_ended(const struct world *world)
{
        for (size_t i = 0; i < world->rank_count; i++)
                if (!world->ranks[i].ended)
                        return false;
        return true;
}

/* Against what is known of the world: it has not lasted that long, the rank has no such share. */
static void doubt_totals(const struct world *world, const struct world_rank *rank, struct progress_rank *seen,
                         uint64_t now_usec)
{
        double seconds = (double) (now_usec - world->progress.began_usec) / 1e6;
        uint64_t most = rank->batch > rank->batch_next ? rank->batch : rank->batch_next;
        struct window_sum sum;

        if (fmax(seen->busy_seconds, seen->busy_ms / 1000) > BUSY_RATIO * seconds + BUSY_SECONDS)
                progress_doubt(seen, seen->busy_seconds > 0 ? PROGRESS_BUSY_LONG : PROGRESS_RATE,
                               seen->busy_seconds > 0 ? seen->busy_seconds : seen->samples_per_s);
        (void) window_of(&seen->window, WINDOW_RECENT, &sum);
        if (seen->live && seen->doubt != PROGRESS_STEP_ANEW &&
            sum.samples > (double) most * (sum.steps + STEPS_AHEAD))
                progress_doubt(seen, PROGRESS_SHARE, sum.samples / sum.steps);
}

static void end_rank(struct world *world, struct world_rank *rank, const struct world_fact *fact,
                     uint64_t now_usec)
{
        if (rank->ended)
                return; /* it is told again, by a clock that is a little off */
        if (fact->code != 0 && blame_find(world) == world->rank_count)
                world->failed_usec = now_usec;
        rank->ended = true;
        rank->asked = fact->asked;
        rank->exit_code = fact->code;
        rank->ended_usec = fact->usec;
}

/* Of a rank. */
static void observe_rank(struct world *world, const struct world_fact *fact, uint64_t now_usec)
{
        struct world_rank *rank = &world->ranks[fact->index];
        struct progress_rank *seen = &world->seen[fact->index], before = *seen;

        switch (fact->kind) {
        case WORLD_LINE:
                progress_say(seen, fact->line, now_usec);
                progress_look(&world->progress, seen, &before, fact->line, now_usec);
                doubt_totals(world, rank, seen, now_usec); /* before anything follows from them */
                break;
        case WORLD_EXIT:
                end_rank(world, rank, fact, now_usec);
                seen->idle = true;
                break;
        default: /* WORLD_STOPPED */
                rank->stuck = fact->code == 2;
                if (fact->code != 1)
                        rank->stopped_usec = 0;
                else if (rank->stopped_usec == 0)
                        rank->stopped_usec = now_usec;
                break;
        }
}

/* A place that comes back is as good as new: what was known of its loss is forgotten. */
static void come(struct world_place *place)
{
        place->there = true;
        place->leaving = place->ready = place->loss_unsaid = false;
        place->loss = WORLD_NOT_LOST;
        place->why[0] = '\0';
        place->stand_in = WORLD_NOBODY;
}

static void lose(struct world_place *place, const struct world_fact *fact)
{
        if (place->loss != WORLD_NOT_LOST && !place->there)
                return; /* the first word on it counts */
        place->there = place->ready = place->halting = false;
        place->loss = (enum world_loss) fact->code;
        place->loss_unsaid = true;
        (void) text_copy(place->why, sizeof(place->why), fact->text == NULL ? "" : fact->text);
}

static void observe_place(struct world_place *place, const struct world_fact *fact)
{
        switch (fact->kind) {
        case WORLD_HERE:
                come(place);
                break;
        case WORLD_READY:
                place->ready = true;
                break;
        case WORLD_LEAVING:
                place->leaving = true;
                break;
        case WORLD_HALTED:
                place->halting = false;
                break;
        case WORLD_LOST:
                lose(place, fact);
                break;
        default: /* WORLD_STAND_IN */
                place->stand_in = fact->code;
                (void) text_copy(place->stand_in_name, sizeof(place->stand_in_name),
                                 fact->text == NULL ? "" : fact->text);
                break;
        }
}

void world_observe(struct world *world, const struct world_fact *fact, uint64_t now_usec)
{
        switch (fact->kind) {
        case WORLD_LINE:
        case WORLD_EXIT:
        case WORLD_STOPPED:
                if (fact->index < world->rank_count)
                        observe_rank(world, fact, now_usec);
                break;
        case WORLD_HERE:
        case WORLD_READY:
        case WORLD_LEAVING:
        case WORLD_HALTED:
        case WORLD_LOST:
        case WORLD_STAND_IN:
                if (fact->index < world->place_count)
                        observe_place(&world->places[fact->index], fact);
                break;
        case WORLD_WORDS:
                (void) text_copy(world->words, sizeof(world->words), fact->text);
                break;
        case WORLD_MPIRUN:
                world->mpirun_runs = false;
                world->mpirun_code = fact->code;
                world->mpirun_usec = now_usec;
                break;
        case WORLD_SAVED:
                world->checkpoint = true;
                break;
        case WORLD_UNTOLD:
                world->progress.live.under_way = false;
                world->progress.live.off = true;
                break;
        case WORLD_CANCEL:
                world->cancelled = true;
                world->cancel_signal = fact->code;
                break;
        }
}
