/* The stories of a training job in trouble: what is seen over time, and the verdict. Each is played on one
 * host, where every rank has a chip of its own, and on a cluster, where two device groups have two ranks
 * each; the verdict is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/world/verdict.h"

#define RANKS  4
#define LOOK   250000ULL /* between two looks, and of a step */
#define SECOND 1000000ULL

struct setting {
        uint64_t restarts, min, patience, hang, last_step; /* min 0 = all four */
        bool recut, silent, saved, stay, spare, no_checkpoints, stubborn;
};

struct story {
        const char *sentence;
        struct setting setting;
        const char *script, *verdicts;
};

/* What the script's words mean:
 *   run S         S seconds; every rank that is not mute makes a step of 100 ms every look
 *   wait S        S seconds without a word
 *   slow R F      rank R's steps take F times as long from now on
 *   paced S       S seconds, then one step of every rank
 *   mute R, mute all, talk R   it makes no steps; it says its last step again and again
 *   exit R CODE, end CODE      a rank ends; mpirun does
 *   good          all ranks and mpirun end with 0
 *   obey          all ranks end with 143, as asked
 *   stop R, cont R, stuck R    its process is stopped, goes on, is in the kernel
 *   sick R, gone R, left R, node R     the place of rank R is lost
 *   leave R       it is asked to end
 *   back R        the place that rank R had is there again
 *   halt          all places have ended what they ran (the stubborn ones do not by themselves)
 *   cancel N      signal N
 *   saved         a checkpoint was written
 * A verdict is its reason and what is done; "Lost" is the word of the door for a lost place. */
/* clang-format off */
static const struct story stories[] = {
        /* ends */
        { "a job whose ranks all end well has succeeded", { 0 }, "run 2; good", "Completed/succeeded 0" },
        { "one that ends in its first second has, too", { 0 }, "good", "Completed/succeeded 0" },
        { "mpirun's good end waits for the last words of the ranks", { 0 }, "run 2; end 0; wait 0", "" },
        { "but not for ever", { 0 }, "run 2; end 0; wait 2", "Completed/succeeded 0" },
        { "a rank that failed is not made good by mpirun's good end", { 0 }, "run 2; exit 1 7; end 0", "RankFailed/failed 7" },
        { "a rank's code is the job's when nothing is repaired", { 0 }, "run 2; exit 1 7; wait 1", "RankFailed/failed 7" },
        { "so is the signal that killed it", { 0 }, "run 2; exit 3 137; wait 1", "RankKilled/failed 137" },
        { "mpirun may speak first: the rank's words come in time", { 0 }, "run 2; end 7; wait 0; exit 2 7; wait 1", "RankFailed/failed 7" },
        { "mpirun that fails alone is a fault of the world", { 0 }, "run 2; end 1; wait 2", "WorldFailed/failed 1" },
        { "so is mpirun that is killed", { 0 }, "run 2; end 137; wait 2", "WorldFailed/failed 137" },
        { "that is repaired", { .restarts = 1 }, "run 2; end 137; wait 2; run 1", "WorldFailed/restart start Resumed" },
        { "mpirun that is not there would not be there again", { .restarts = 3 }, "end 127; wait 2", "WorldFailed/failed 127" },
        { "of two ranks the one that failed first is named", { 0 }, "run 1; exit 2 9; exit 0 8; wait 1", "RankFailed/failed 9" },
        { "ranks that end well one after the other are waited for", { 0 }, "run 1; exit 0 0; wait 4; exit 1 0; exit 2 0; wait 4; exit 3 0; end 0; wait 1", "Completed/succeeded 0" },
        /* final codes */
        { "wrong options are refused again", { .restarts = 3 }, "exit 0 2; wait 1", "RankFailed/failed 2" },
        { "data that is missing is missing again", { .restarts = 3 }, "exit 0 3; wait 1", "RankFailed/failed 3" },
        { "what is not allowed is not allowed again", { .restarts = 3 }, "exit 0 5; wait 1", "RankFailed/failed 5" },
        { "a program that cannot be executed never can", { .restarts = 3 }, "exit 0 126; wait 1", "RankFailed/failed 126" },
        { "nor one that is not there", { .restarts = 3 }, "exit 0 127; wait 1", "RankFailed/failed 127" },
        { "an exit code of its own is repaired", { .restarts = 3 }, "exit 0 4; run 1", "RankFailed/restart start Resumed" },
        { "running out of time is, too", { .restarts = 1 }, "exit 0 124; run 1", "RankFailed/restart start Resumed" },
        /* restarts */
        { "a killed rank is repaired", { .restarts = 1 }, "run 2; exit 1 137; run 2; good", "RankKilled/restart start Resumed Completed/succeeded 0" },
        { "as often as allowed", { .restarts = 2 }, "run 1; exit 1 137; run 1; exit 1 137; run 1; exit 1 137; wait 1",
          "RankKilled/restart start Resumed RankKilled/restart start Resumed RankKilled/failed 137" },
        { "each fault counts, whatever it is", { .restarts = 1 }, "run 1; exit 1 1; run 1; end 1; wait 2", "RankFailed/restart start Resumed WorldFailed/failed 1" },
        { "a job without checkpoints begins again where it may", { .restarts = 1, .no_checkpoints = true }, "run 1; exit 1 1; run 1", "RankFailed/restart start Resumed" },
        { "a rank that fails before its first step is repaired", { .restarts = 1 }, "exit 1 1; run 1", "RankFailed/restart start Resumed" },
        { "training goes on once every worker has made a step", { .restarts = 1 }, "run 1; exit 1 1; wait 0; mute 2; run 3", "RankFailed/restart start" },
        { "what a rank of the last world said counts no more", { .restarts = 1 }, "run 1; exit 1 1; mute all; wait 1; good", "RankFailed/restart start Completed/succeeded 0" },
        /* hangs */
        { "ranks that are silent too long hang", { .restarts = 1 }, "run 3; mute all; run 11; run 1", "RankHung/restart start Resumed" },
        { "not before", { .restarts = 1 }, "run 3; mute all; run 9", "" },
        { "five usual steps are waited for, however long they are", { .hang = 4 }, "paced 3; paced 3; paced 3; paced 3; wait 10", "" },
        { "and no more", { .hang = 4 }, "paced 3; paced 3; paced 3; paced 3; wait 16", "RankHung/failed 1" },
        { "a hang without restarts ends the job", { 0 }, "run 3; mute all; run 11", "RankHung/failed 1" },
        { "one that never makes a step hangs after five times as long", { .hang = 2 }, "mute all; run 9; run 2", "RankHung/failed 1" },
        { "if its program is known to report", { .hang = 2, .silent = true }, "mute all; run 60", "" },
        { "a program that reports all the same is judged", { .hang = 2, .silent = true }, "run 3; mute all; run 3", "RankHung/failed 1" },
        { "evaluation after the last step is no hang", { .hang = 2, .last_step = 12 }, "run 3; run 1; mute all; run 30", "" },
        { "a rank that says the same step evaluates: it is waited for", { .hang = 2 }, "run 3; mute all; talk 1; run 30", "" },
        { "ranks that have ended do not hang", { .hang = 2 }, "run 3; exit 0 0; exit 1 0; exit 2 0; exit 3 0; wait 10", "" },
        { "a stopped rank hangs whether or not it reports", { .hang = 2, .silent = true }, "mute all; stop 2; run 1; run 2", "RankHung/failed 1" },
        { "one that goes on in time does not", { .hang = 2, .silent = true }, "mute all; stop 2; run 1; cont 2; run 20", "" },
        { "the others wait for the stopped one, which is named", { .hang = 5 }, "run 3; mute all; run 3; stop 3; run 3", "RankHung/failed 1" },
        { "so is one that is stuck in the kernel", { .hang = 5 }, "run 3; mute all; stuck 3; run 6", "RankHung/failed 1" },
        { "which is no hang while steps are made", { .hang = 2 }, "run 2; stuck 3; run 10", "" },
        { "a rank that hangs again in the new world is seen again", { .restarts = 1, .hang = 2 }, "run 2; mute all; run 3; mute all; run 11", "RankHung/restart start Resumed RankHung/failed 1" },
        /* stragglers */
        { "a rank that is twice as slow for seconds is named, once", { 0 }, "slow 2 2; run 8; run 30", "Straggler" },
        { "a slow moment is not", { 0 }, "run 3; slow 2 3; run 1; slow 2 1; run 20", "" },
        { "nor one that is a little slower", { 0 }, "slow 2 1.2; run 40", "" },
        { "it gets a smaller share where shares follow speeds", { .recut = true, .saved = true }, "slow 2 3; run 8; slow 2 1; run 1", "Straggler Resharding/reshard start Resumed" },
        { "not before there is a checkpoint", { .recut = true }, "slow 2 3; run 20", "Straggler" },
        { "but as soon as there is", { .recut = true }, "slow 2 3; run 20; saved; run 1", "Straggler Resharding/reshard start Resumed" },
        { "equal shares and stages of a split stay", { .saved = true }, "slow 2 3; run 20", "Straggler" },
        { "a rank that has become fast again keeps its share: a gain of less than a tenth is not worth a new world", { .recut = true }, "slow 2 3; run 8; slow 2 1; run 10; saved; run 5", "Straggler" },
        { "new shares use up no restart", { .recut = true, .saved = true, .restarts = 1 }, "slow 2 3; run 8; slow 2 1; run 1; exit 0 137; run 1",
          "Straggler Resharding/reshard start Resumed RankKilled/restart start Resumed" },
        { "nor are they a repair of a job that has none", { .recut = true, .saved = true }, "slow 2 3; run 8; slow 2 1; run 1; exit 0 137; wait 1",
          "Straggler Resharding/reshard start Resumed RankKilled/failed 137" },
        { "after new shares there is a pause of ten seconds", { .recut = true, .saved = true }, "slow 2 3; run 8; run 6", "Straggler Resharding/reshard start Resumed Straggler" },
        { "then they may be cut anew again", { .recut = true, .saved = true }, "slow 2 3; run 8; run 10", "Straggler Resharding/reshard start Resumed Straggler Resharding/reshard start Resumed" },
        /* lost places */
        { "without a spare place a job of fixed size ends", { .restarts = 1 }, "run 2; sick 2; wait 1", "Lost/restart NoSpareChip/failed 1" },
        { "a range goes on with fewer", { .restarts = 1, .min = 2 }, "run 2; sick 2; run 1", "Lost/restart leave-out start Resumed" },
        { "a spare place is used", { .restarts = 1, .spare = true }, "run 2; sick 2; run 1", "Lost/restart move start Resumed" },
        { "also where fewer would do", { .restarts = 1, .spare = true, .min = 2 }, "run 2; sick 2; run 1", "Lost/restart move start Resumed" },
        { "a job that may not migrate uses none: it ends", { .restarts = 1, .spare = true, .stay = true }, "run 2; sick 2; wait 1", "Lost/restart Lost/failed 1" },
        { "or goes on with fewer", { .restarts = 1, .spare = true, .stay = true, .min = 2 }, "run 2; sick 2; run 1", "Lost/restart leave-out start Resumed" },
        { "a lost place is a fault like any other", { .spare = true }, "run 2; sick 2; wait 1", "Lost/failed 1" },
        { "a node that is lost takes its place with it", { .restarts = 1, .min = 2 }, "run 2; node 3; run 1", "Lost/restart leave-out start Resumed" },
        { "a place that is gone, too", { .restarts = 1, .min = 2 }, "run 2; gone 0; run 1", "Lost/restart leave-out start Resumed" },
        { "it may come back while the last world is being ended", { .restarts = 1, .stubborn = true }, "run 2; gone 2; wait 1; back 2; end 137; halt; run 1", "Lost/restart start Resumed" },
        { "lost places are waited for before the job does without them", { .restarts = 1, .min = 2, .patience = 5 }, "run 2; gone 2; wait 4", "Lost/restart" },
        { "and come back in that time", { .restarts = 1, .min = 2, .patience = 5 }, "run 2; gone 2; wait 4; back 2; run 1", "Lost/restart start Resumed" },
        { "or do not", { .restarts = 1, .min = 2, .patience = 5 }, "run 2; gone 2; wait 6; run 1", "Lost/restart leave-out start Resumed" },
        { "or too many do not", { .restarts = 1, .patience = 5 }, "run 2; gone 2; wait 6", "Lost/restart NoSpareChip/failed 1" },
        { "a spare place is not waited for", { .restarts = 1, .patience = 60, .spare = true }, "run 2; gone 2; run 1", "Lost/restart move start Resumed" },
        { "a lost place explains the ranks that failed with it", { .restarts = 1, .min = 2 }, "run 2; exit 2 1; sick 2; run 1", "Lost/restart leave-out start Resumed" },
        { "a place that is found lost after a fault is left out, too", { .restarts = 1, .min = 2, .stubborn = true }, "run 2; exit 2 1; wait 0; sick 2; end 137; halt; run 1", "RankFailed/restart Lost leave-out start Resumed" },
        { "what is lost after a good end is not missed", { 0 }, "run 2; end 0; gone 2; wait 2", "Lost Completed/succeeded 0" },
        { "a world is not begun before the last one has ended", { .restarts = 1, .stubborn = true }, "run 2; exit 1 1; wait 30", "RankFailed/restart" },
        { "then it is", { .restarts = 1, .stubborn = true }, "run 2; exit 1 1; wait 2; end 137; halt; run 1", "RankFailed/restart start Resumed" },
        { "a place that is lost with all its chips ends the smallest range", { .restarts = 1, .min = 4 }, "run 2; node 0; wait 1", "Lost/restart NoSpareChip/failed 1" },
        /* asked to end */
        { "a cancelled job gives its ranks time for a checkpoint", { .restarts = 3 }, "run 2; cancel 2; wait 2", "Cancelling/terminate" },
        { "and ends when they have", { .restarts = 3 }, "run 2; cancel 2; wait 1; obey; wait 0", "Cancelling/terminate Interrupted/cancelled 130" },
        { "or when their time is over", { .restarts = 3 }, "run 2; cancel 15; wait 4", "Cancelling/terminate Interrupted/cancelled 143" },
        { "whatever code they end with", { .restarts = 3 }, "run 2; cancel 15; exit 1 1; exit 0 7; exit 2 2; exit 3 0; wait 0", "Cancelling/terminate Interrupted/cancelled 143" },
        { "also when mpirun goes first", { .restarts = 3 }, "run 2; cancel 2; wait 0; end 1; wait 0", "Cancelling/terminate Interrupted/cancelled 130" },
        { "or has gone already", { .restarts = 3 }, "run 2; end 1; cancel 2; wait 0", "Interrupted/cancelled 130" },
        { "a second signal changes nothing", { 0 }, "run 2; cancel 2; wait 1; cancel 2; wait 1", "Cancelling/terminate" },
        { "cancelled while it is repaired, it ends at once", { .restarts = 3, .stubborn = true }, "run 2; exit 1 1; wait 1; cancel 2; wait 0", "RankFailed/restart Interrupted/cancelled 130" },
        { "a place that is asked to end gives all ranks time for a checkpoint", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 2", "terminate" },
        { "then the job goes on without it", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 1; obey; run 1", "terminate Evicted/restart leave-out start Resumed" },
        { "or when their time is over", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 4; run 1", "terminate Evicted/restart leave-out start Resumed" },
        { "or elsewhere", { .restarts = 1, .spare = true }, "run 2; leave 2; obey; run 1", "terminate Evicted/restart move start Resumed" },
        { "or ends", { 0 }, "run 2; leave 2; obey; wait 0", "terminate Evicted/failed 143" },
        { "that it has left by then is no second fault", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 0; left 2; obey; run 1", "terminate Evicted/restart Lost leave-out start Resumed" },
        { "a job that is cancelled meanwhile is cancelled", { .restarts = 1, .min = 2 }, "run 2; leave 2; wait 1; cancel 15; obey; wait 0", "terminate Interrupted/cancelled 143" },
};
/* clang-format on */

struct play {
        const struct story *story;
        struct world world;
        enum world_kind kind;
        uint64_t now;
        bool mute[RANKS], talk[RANKS], spare;
        size_t place_of[RANKS]; /* of the ranks of the last world */
        double slow[RANKS], busy[RANKS];
        int64_t step[RANKS];
        char said[2048], last[WORLD_TEXT_BYTES + 64]; /* all verdicts; the last sentence */
};

static void fact(struct play *play, struct world_fact what)
{
        world_observe(&play->world, &what, play->now);
}

static void halt_all(struct play *play)
{
        for (size_t i = 0; i < play->world.place_count; i++)
                fact(play, (struct world_fact){ .kind = WORLD_HALTED, .index = i });
}

/* One host: for each chip that lacks a spare one is looked for, when all has ended. */
static void offer_chips(struct play *play)
{
        for (size_t i = 0; play->kind == WORLD_CHIPS && i < play->world.place_count; i++)
                fact(play, (struct world_fact){ .kind = WORLD_STAND_IN,
                                                .index = i,
                                                .code = play->spare ? 9 : WORLD_NOBODY,
                                                .text = "GPU-9" });
}

static void lay_out(struct play *play)
{
        struct world *world = &play->world;
        size_t count = 0, rank = 0;

        for (size_t i = world->place_count; i-- > 0;) {
                if (play->kind == WORLD_CHIPS && !world->places[i].used)
                        world_drop(world, i);
                else if (world->places[i].used)
                        count += world->places[i].chips;
        }
        assert_int_equal(world_lay_out(world, count, NULL), 0);
        for (size_t i = 0; i < world->place_count; i++)
                for (uint64_t k = 0; world->places[i].used && k < world->places[i].chips; k++) {
                        play->place_of[rank] = i;
                        play->mute[rank] = play->talk[rank] = false;
                        play->step[rank] = -1;
                        play->busy[rank] = 0;
                        world->ranks[rank++] = (struct world_rank){ .place = i, .batch = 64 / count };
                }
        for (size_t i = 0; i < world->place_count; i++)
                fact(play, (struct world_fact){ .kind = WORLD_READY, .index = i });
}

static const char *word_of(const struct verdict *v)
{
        static const char *const losses[] = { "GroupLost", "GroupLeft", "DeviceUnhealthy", "NodeLost" };

        for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
                if (strcmp(v->reason, losses[i]) == 0)
                        return "Lost";
        return v->reason;
}

static void say(struct play *play, const struct verdict *v)
{
        static const char *const ends[] = { "succeeded", "failed", "cancelled" };
        size_t length = strlen(play->said);
        char *to = play->said + length;
        size_t room = sizeof(play->said) - length;

        if (v->message[0] != '\0')
                (void) text_copy(play->last, sizeof(play->last), v->message);
        if (v->kind == VERDICT_TELL || strcmp(v->reason, "Restarting") == 0)
                return;
        if (length > 0) {
                *to++ = ' ';
                room--;
        }
        if (v->kind == VERDICT_SAY)
                (void) text_format(to, room, "%s", word_of(v));
        else if (v->kind == VERDICT_START)
                (void) text_format(to, room, "start");
        else if (v->kind == VERDICT_TERMINATE)
                (void) text_format(to, room, "%s%sterminate", v->reason, v->reason[0] == '\0' ? "" : "/");
        else if (v->kind == VERDICT_MOVE || v->kind == VERDICT_LEAVE_OUT)
                (void) text_format(to, room, v->kind == VERDICT_MOVE ? "move" : "leave-out");
        else if (v->kind == VERDICT_END)
                (void) text_format(to, room, "%s/%s %d", word_of(v), ends[v->end], v->exit_code);
        else
                (void) text_format(to, room, "%s/%s", word_of(v),
                                   v->kind == VERDICT_RESHARD ? "reshard" : "restart");
}

static void judge(struct play *play)
{
        struct verdict v;

        offer_chips(play);
        while ((v = verdict_on(&play->world, play->now)).kind != VERDICT_GO_ON) {
                say(play, &v);
                if (v.kind == VERDICT_TELL)
                        lay_out(play);
                if ((v.kind == VERDICT_RESTART || v.kind == VERDICT_RESHARD) &&
                    !play->story->setting.stubborn) {
                        fact(play, (struct world_fact){ .kind = WORLD_MPIRUN, .code = 137 });
                        halt_all(play);
                }
                if (v.kind == VERDICT_MOVE && play->kind == WORLD_CHIPS)
                        fact(play, (struct world_fact){ .kind = WORLD_HERE, .index = v.place });
        }
}

static void speak(struct play *play, size_t rank)
{
        struct progress_line line = { .epoch = -1 };

        if (play->world.ranks[rank].ended || (play->mute[rank] && !play->talk[rank]))
                return;
        if (!play->mute[rank]) {
                play->step[rank]++;
                play->busy[rank] += 0.1 * play->slow[rank];
        }
        line.step = play->step[rank];
        line.samples = 16 * (line.step + 1);
        line.samples_per_s = (double) line.samples / play->busy[rank];
        fact(play, (struct world_fact){ .kind = WORLD_LINE, .index = rank, .line = &line });
}

static void pass(struct play *play, double seconds, bool steps)
{
        uint64_t end = play->now + (uint64_t) (seconds * (double) SECOND);

        judge(play);
        while (play->now < end) {
                play->now += LOOK;
                for (size_t i = 0; steps && play->world.phase == WORLD_RUNNING && i < play->world.rank_count;
                     i++)
                        speak(play, i);
                judge(play);
        }
}

static void set_all(bool *flags, const char *who)
{
        for (size_t i = 0; i < RANKS; i++)
                if (strcmp(who, "all") == 0 || (size_t) atoi(who) == i)
                        flags[i] = true;
}

static void lose(struct play *play, size_t rank, enum world_loss loss)
{
        fact(play, (struct world_fact){ .kind = WORLD_LOST,
                                        .index = play->place_of[rank],
                                        .code = (int) loss,
                                        .text = play->kind == WORLD_CHIPS ? "it fell off the bus" : "" });
}

static void end_all(struct play *play, int code)
{
        for (size_t i = 0; i < play->world.rank_count; i++)
                if (!play->world.ranks[i].ended)
                        fact(play, (struct world_fact){
                                           .kind = WORLD_EXIT, .index = i, .code = code, .usec = play->now });
}

/* Whole places: a rank of a cluster shares its place with another. */
static bool act_on_place(struct play *play, const char *verb, const char *who)
{
        size_t rank = (size_t) atoi(who);

        if (strcmp(verb, "sick") == 0)
                lose(play, rank, WORLD_SICK);
        else if (strcmp(verb, "gone") == 0)
                lose(play, rank, WORLD_GONE);
        else if (strcmp(verb, "left") == 0)
                lose(play, rank, WORLD_LEFT);
        else if (strcmp(verb, "node") == 0)
                lose(play, rank, WORLD_NODE_LOST);
        else if (strcmp(verb, "leave") == 0)
                fact(play, (struct world_fact){ .kind = WORLD_LEAVING, .index = play->place_of[rank] });
        else if (strcmp(verb, "back") == 0)
                fact(play, (struct world_fact){ .kind = WORLD_HERE, .index = play->place_of[rank] });
        else
                return false;
        return true;
}

static bool act_on_rank(struct play *play, const char *verb, const char *who, const char *what)
{
        size_t rank = (size_t) atoi(who);

        if (strcmp(verb, "mute") == 0) {
                set_all(play->mute, who);
        } else if (strcmp(verb, "talk") == 0) {
                set_all(play->talk, who);
        } else if (strcmp(verb, "slow") == 0) {
                for (size_t i = 0; i < RANKS; i++)
                        if (strcmp(who, "all") == 0 || i == rank)
                                play->slow[i] = atof(what);
        } else if (strcmp(verb, "exit") == 0) {
                play->now++;
                fact(play,
                     (struct world_fact){
                             .kind = WORLD_EXIT, .index = rank, .code = atoi(what), .usec = play->now });
        } else if (strcmp(verb, "stop") == 0 || strcmp(verb, "cont") == 0 || strcmp(verb, "stuck") == 0) {
                fact(play, (struct world_fact){ .kind = WORLD_STOPPED,
                                                .index = rank,
                                                .code = verb[0] == 'c'              ? 0
                                                        : strcmp(verb, "stop") == 0 ? 1
                                                                                    : 2 });
        } else {
                return false;
        }
        return true;
}

static void act(struct play *play, const char *order)
{
        char verb[16] = "", who[16] = "", what[16] = "";

        (void) sscanf(order, "%15s %15s %15s", verb, who, what);
        if (strcmp(verb, "run") == 0 || strcmp(verb, "wait") == 0) {
                pass(play, atof(who), verb[0] == 'r');
        } else if (strcmp(verb, "paced") == 0) {
                pass(play, atof(who), false);
                for (size_t i = 0; i < play->world.rank_count; i++)
                        speak(play, i);
        } else if (strcmp(verb, "end") == 0) {
                fact(play, (struct world_fact){ .kind = WORLD_MPIRUN, .code = atoi(who) });
        } else if (strcmp(verb, "good") == 0) {
                end_all(play, 0);
                fact(play, (struct world_fact){ .kind = WORLD_MPIRUN, .code = 0 });
        } else if (strcmp(verb, "obey") == 0) {
                end_all(play, 143);
        } else if (strcmp(verb, "halt") == 0) {
                halt_all(play);
        } else if (strcmp(verb, "saved") == 0) {
                fact(play, (struct world_fact){ .kind = WORLD_SAVED });
        } else if (strcmp(verb, "cancel") == 0) {
                fact(play, (struct world_fact){ .kind = WORLD_CANCEL, .code = atoi(who) });
        } else if (!act_on_place(play, verb, who) && !act_on_rank(play, verb, who, what)) {
                fail_msg("'%s' is no order", order);
        }
}

static void open_play(struct play *play, const struct story *story, enum world_kind kind)
{
        const struct setting *setting = &story->setting;
        const struct world_rules rules = { .kind = kind,
                                           .restart_max = setting->restarts,
                                           .hang_usec = (setting->hang == 0 ? 10 : setting->hang) * SECOND,
                                           .grace_usec = 3 * SECOND,
                                           .patience_usec = setting->patience * SECOND,
                                           .global_batch = 64,
                                           .last_step = setting->last_step,
                                           .speaks = !setting->silent,
                                           .recut = setting->recut,
                                           .migrate = !setting->stay,
                                           .checkpoints = !setting->no_checkpoints,
                                           .log = "its words are above",
                                           .address = "10.0.0.1:7000" };
        size_t count = kind == WORLD_CHIPS ? RANKS : setting->spare ? 3 : 2;

        *play = (struct play){ .story = story, .kind = kind, .now = 100 * SECOND, .spare = setting->spare };
        assert_int_equal(world_init(&play->world, &rules, count, play->now, NULL), 0);
        for (size_t i = 0; i < RANKS; i++)
                play->slow[i] = 1;
        for (size_t i = 0; i < count; i++) {
                struct world_place *place = &play->world.places[i];

                (void) text_format(place->name, sizeof(place->name), kind == WORLD_CHIPS ? "GPU-%zu" : "g%zu",
                                   i);
                (void) text_copy(place->runtime, sizeof(place->runtime), "cuda");
                place->chips = kind == WORLD_CHIPS ? 1 : 2;
                place->role_min = setting->min == 0 ? RANKS : setting->min;
                place->spare = kind == WORLD_GROUPS && i == 2;
                fact(play, (struct world_fact){ .kind = WORLD_HERE, .index = i });
        }
        if (setting->saved)
                fact(play, (struct world_fact){ .kind = WORLD_SAVED });
        judge(play);
        assert_string_equal(play->said, "start");
        play->said[0] = '\0';
}

static void act_all(struct play *play)
{
        char script[1024], *rest = script, *order;

        (void) text_copy(script, sizeof(script), play->story->script);
        while ((order = strsep(&rest, ";")) != NULL)
                act(play, order);
        judge(play);
}

static bool tell(const struct story *story, enum world_kind kind)
{
        struct play play;
        bool good;

        open_play(&play, story, kind);
        act_all(&play);
        good = strcmp(play.said, story->verdicts) == 0;
        if (!good)
                print_error("%s, %s:\n  expected: %s\n  verdicts: %s\n",
                            kind == WORLD_CHIPS ? "one host" : "cluster", story->sentence, story->verdicts,
                            play.said);
        world_free(&play.world);
        return good;
}

static void every_story_has_one_verdict_at_both_doors(void **state)
{
        size_t bad = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(stories); i++)
                bad += (size_t) !tell(&stories[i], WORLD_CHIPS) + (size_t) !tell(&stories[i], WORLD_GROUPS);
        print_message("%zu stories\n", ARRAY_SIZE(stories));
        assert_int_equal(bad, 0);
}

/* What people read, and what scripts look for. */
static void the_sentences_name_rank_and_place(void **state)
{
        static const struct {
                enum world_kind kind;
                struct setting setting;
                const char *script, *sentence;
        } cases[] = {
                { WORLD_CHIPS,
                  { 0 },
                  "run 1; exit 1 7",
                  "rank 1 (cuda on GPU-1) ended with exit code 7; its log says why" },
                { WORLD_GROUPS,
                  { 0 },
                  "run 1; exit 3 137",
                  "rank 3 of group g1 was killed by signal 9 (Killed)" },
                { WORLD_GROUPS,
                  { .hang = 2 },
                  "mute 2; run 12",
                  "rank 2 of group g1 hangs: it has not made one step" },
                { WORLD_CHIPS,
                  { .hang = 2 },
                  "run 1; mute all; run 3",
                  "rank 0 (cuda on GPU-0) has made no progress since step 3" },
                { WORLD_CHIPS,
                  { 0 },
                  "sick 2",
                  "chip GPU-2 of rank 2 cannot be used any more: it fell off the bus" },
                { WORLD_GROUPS, { 0 }, "gone 2", "group g1 is gone" },
                { WORLD_CHIPS,
                  { .restarts = 1 },
                  "sick 2",
                  "chip GPU-2 of rank 2 cannot be used (it fell off the bus) and there is no spare one" },
                { WORLD_GROUPS,
                  { .restarts = 1 },
                  "gone 2",
                  "group g1 is gone; 1 of its groups are lost and 2 chips are fewer than the job can do "
                  "with" },
                { WORLD_CHIPS,
                  { .restarts = 1 },
                  "exit 0 1; wait 0; exit 0 1",
                  "rank 0 (cuda on GPU-0) ended with exit code 1; its log says why; no restart is left" },
                { WORLD_GROUPS,
                  { 0 },
                  "end 1; wait 2",
                  "mpirun ended with exit code 1; its words are above" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct story story = { "", cases[i].setting, cases[i].script, "" };
                struct play play;

                open_play(&play, &story, cases[i].kind);
                act_all(&play);
                assert_string_equal(play.last, cases[i].sentence);
                world_free(&play.world);
        }
}

static void groups_of_the_first_world_are_waited_for(void **state)
{
        const struct story story = { "", { .restarts = 1, .spare = true }, "", "" };
        struct play play;

        (void) state;
        open_play(&play, &story, WORLD_GROUPS);
        play.world.phase = WORLD_GATHERING;
        play.world.rules.wait_usec = 10 * SECOND;
        play.world.phase_usec = play.now;
        play.world.places[1].used = false;
        play.world.places[1].there = play.world.places[2].there = false;
        pass(&play, 9, false);
        assert_string_equal(play.said, "");
        fact(&play,
             (struct world_fact){ .kind = WORLD_HERE, .index = 2 }); /* the spare one, when time is up */
        pass(&play, 2, false);
        assert_string_equal(play.said, "move start");
        play.world.phase = WORLD_GATHERING;
        play.world.places[2].there = false;
        pass(&play, 20, false);
        assert_string_equal(play.said, "move start GroupsMissing/failed 124");
        assert_string_equal(play.last,
                            "not every group came within 10 seconds (--wait-seconds): 1 did not, g1 first; "
                            "start remuda-launch --join 10.0.0.1:7000 there, or wait longer");
        world_free(&play.world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_story_has_one_verdict_at_both_doors),
                cmocka_unit_test(the_sentences_name_rank_and_place),
                cmocka_unit_test(groups_of_the_first_world_are_waited_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
